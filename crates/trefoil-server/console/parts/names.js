// A field for several names, such as types or tags, that offers those of the newest events.

import { html, useEffect, useState } from '../view.js';
import { readPage } from '../api.js';
import { session } from '../session.js';

const [SAMPLE, FRESH_MS, OFFERED] = [500, 30_000, 200];

/** @typedef {{ types: string[], tags: string[], streams: string[] }} KnownNames */

/** @type {{ token: string | null, time: number, names: Promise<KnownNames> } | null} */
let kept = null;

/** @returns {Promise<KnownNames>} */
async function sample() {
  const { events } = await readPage({}, { direction: 'backwards', batchSize: SAMPLE });
  const sorted = (/** @type {string[]} */ names) => [...new Set(names)].filter(Boolean).sort().slice(0, OFFERED);
  return {
    types: sorted(events.map((event) => event.type)),
    tags: sorted(events.flatMap((event) => event.tags)),
    streams: sorted(events.map((event) => event.stream)),
  };
}

/** The names that the newest events have. @returns {KnownNames} */
export function useKnownNames() {
  const [names, setNames] = useState(/** @type {KnownNames} */ ({ types: [], tags: [], streams: [] }));
  useEffect(() => {
    const { token } = session.value;
    if (kept?.token !== token || Date.now() - kept.time > FRESH_MS) kept = { token, time: Date.now(), names: sample() };
    let isWanted = true;
    kept.names.then((found) => isWanted && setNames(found), () => { kept = null; });
    return () => { isWanted = false; };
  }, []);
  return names;
}

/** @param {{ label: string, names: string[], offered: string[], onNames: (names: string[]) => void }} props */
export function NamesInput({ label, names, offered, onNames }) {
  const [text, setText] = useState('');
  const [id] = useState(() => `names-${Math.random().toString(36).slice(2)}`);
  const add = (/** @type {string} */ name) => {
    const clean = name.trim();
    setText('');
    if (clean && !names.includes(clean)) onNames([...names, clean]);
  };
  const type = (/** @type {any} */ event) => {
    const { value } = event.target;
    // Choosing an offered name comes as one input of the whole name.
    if (event.inputType === 'insertReplacementText' || (!event.inputType && offered.includes(value))) add(value);
    else setText(value);
  };
  const press = (/** @type {any} */ event) => {
    if (event.key === 'Enter' || (event.key === ',' && text.trim())) {
      event.preventDefault();
      add(text);
    } else if (event.key === 'Backspace' && !text) onNames(names.slice(0, -1));
  };
  return html`<div class="names">${names.map((name) => html`<span class="tag chosen">${name}
      <button type="button" aria-label=${`Remove ${name}`} onClick=${() => onNames(names.filter((other) => other !== name))}>✕</button></span>`)}
    <input aria-label=${label} placeholder=${label} value=${text} list=${id} autocomplete="off" spellcheck=${false}
      onInput=${type} onKeyDown=${press} onBlur=${() => add(text)} />
    <datalist id=${id}>${offered.filter((name) => !names.includes(name)).map((name) => html`<option value=${name} />`)}</datalist></div>`;
}
