// A field for several names, such as types or tags, that offers the known ones while one types.

import { html, useEffect, useState } from '../view.js';
import { call } from '../api.js';

const [OFFERED, SILENCE_MS] = [30, 150];

/** How the names of a kind are listed. @type {{ [kind: string]: (prefix: string) => Promise<string[]> }} */
const LISTS = {
  types: async (prefix) => (await call('events.types', { prefix, limit: OFFERED })).map((/** @type {any} */ { name }) => name),
  tags: async (prefix) => (await call('events.tags', { prefix, limit: OFFERED })).map((/** @type {any} */ { name }) => name),
  streams: async (prefix) => (await call('ns.streams', { prefix, limit: OFFERED })).map((/** @type {any} */ { stream }) => stream),
};

/** The known names that begin with what is typed. @param {string} kind @param {string} prefix @param {boolean} isWanted */
function useOffered(kind, prefix, isWanted) {
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    let isCurrent = isWanted;
    const ask = () => LISTS[kind](prefix).then((found) => isCurrent && setNames(found), () => {});
    const timer = isWanted ? setTimeout(ask, SILENCE_MS) : 0;
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [kind, prefix, isWanted]);
  return names;
}

/** A field for one name.
 * @param {{ kind: string, value: string, onValue: (value: string) => void, [attribute: string]: any }} props */
export function NameInput({ kind, value, onValue, ...others }) {
  const [id] = useState(() => `names-${Math.random().toString(36).slice(2)}`);
  const [isHere, setHere] = useState(false);
  const offered = useOffered(kind, value, isHere);
  return html`<input value=${value} list=${id} autocomplete="off" spellcheck=${false} onFocus=${() => setHere(true)}
    onInput=${(/** @type {any} */ event) => onValue(event.target.value)} ...${others} />
    <datalist id=${id}>${offered.map((name) => html`<option value=${name} />`)}</datalist>`;
}

/** @param {{ label: string, kind: string, names: string[], onNames: (names: string[]) => void }} props */
export function NamesInput({ label, kind, names, onNames }) {
  const [text, setText] = useState('');
  const [id] = useState(() => `names-${Math.random().toString(36).slice(2)}`);
  const [isHere, setHere] = useState(false);
  const offered = useOffered(kind, text, isHere);
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
      onFocus=${() => setHere(true)} onInput=${type} onKeyDown=${press} onBlur=${() => add(text)} />
    <datalist id=${id}>${offered.filter((name) => !names.includes(name)).map((name) => html`<option value=${name} />`)}</datalist></div>`;
}
