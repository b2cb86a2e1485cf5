// The state: keys by pattern and type, their values, and beside them a line for commands.

import { html, useState } from '../view.js';
import { look, pause, useLoad, useRepeated } from '../api.js';
import { go, linkTo, route } from '../route.js';
import { count, remaining } from '../format.js';
import { Copy, Empty, Facts, Failure, Head, Search, Waiting } from '../parts/basics.js';
import { CommandLine } from '../parts/command.js';
import { Value, keyOf, keyText, orFail, shown } from '../parts/value.js';

/** @typedef {import('../parts/value.js').Bytes} Bytes */

const [KEYS, STEP, STEPS, LIVE_MS, PATIENCE_MS] = [100, 1000, 20, 2000, 20_000];
const TYPES = ['string', 'hash', 'set', 'zset', 'list'];

/** @typedef {{ next: string | null, keys: { key: Bytes, type: string, ttl: number }[] }} Scanned */

/** Keys from a cursor on: a page of them, or what some steps of SCAN find.
 * @param {string} pattern @param {string} type @param {string} cursor @returns {Promise<Scanned>} */
async function scan(pattern, type, cursor) {
  /** @type {Bytes[]} */
  const keys = [];
  let next = cursor;
  for (let step = 0; step < STEPS && keys.length < KEYS; step++) {
    const words = ['SCAN', next, ...(pattern ? ['MATCH', pattern] : []), 'COUNT', pattern || type ? STEP : KEYS, ...(type ? ['TYPE', type] : [])];
    const [after, found] = orFail((await look(words))[0]);
    keys.push(...found);
    next = String(after);
    if (next === '0') break;
  }
  keys.sort((a, b) => (shown(a) < shown(b) ? -1 : 1));
  const facts = keys.length ? await look(...keys.flatMap((key) => [['TYPE', key], ['PTTL', key]])) : [];
  return { next: next === '0' ? null : next, keys: keys.map((key, index) => ({ key, type: facts[2 * index], ttl: facts[2 * index + 1] })) };
}

export function StatePage() {
  const { query } = route.value;
  const [pattern, type, key] = ['pattern', 'type', 'key'].map((name) => query.get(name) ?? '');
  const set = (/** @type {{ [name: string]: string }} */ next) => go(linkTo('state', [], { pattern, type, key, ...next }), { replace: true });
  const [size, setSize] = useState(/** @type {number | undefined} */ (undefined));
  useRepeated(async (isWanted) => {
    const [keys] = await look(['DBSIZE']);
    if (isWanted()) setSize(keys);
  }, LIVE_MS, []);
  return html`<${Head} title="State" subtitle=${size === undefined ? '' : `${count(size)} keys`} />
    <div class="bar"><${Search} label="Pattern, such as user:*" value=${pattern} onValue=${(/** @type {string} */ text) => set({ pattern: text })} />
      <select aria-label="Type" value=${type} onChange=${(/** @type {any} */ event) => set({ type: event.target.value })}>
        <option value="">All types</option>${TYPES.map((name) => html`<option value=${name}>${name}</option>`)}</select></div>
    <div class=${`columns${key ? ' keyed' : ''}`}>
      <section class="card" aria-label="Keys"><${Keys} key=${`${pattern} ${type}`} pattern=${pattern} type=${type} chosen=${key}
        onChoose=${(/** @type {Bytes} */ found) => linkTo('state', [], { pattern, type, key: keyText(found) })} /></section>
      <div class="column">${key ? html`<${Entry} key=${key} name=${keyOf(key)} />` : html`<section class="card"><${Empty}>Choose a key to see its value.<//></section>`}
        <${CommandLine} /></div>
    </div>`;
}

/** @param {{ pattern: string, type: string, chosen: string, onChoose: (key: Bytes) => string }} props */
function Keys({ pattern, type, chosen, onChoose }) {
  const [cursors, setCursors] = useState(['0']);
  const cursor = cursors[cursors.length - 1];
  const { data: first, error, isLoading, reload } = useLoad(() => scan(pattern, type, cursor), [cursor]);
  const [news, setNews] = useState(/** @type {{ of: unknown, data: Scanned } | null} */ (null));
  const data = news && news.of === first ? news.data : first;
  useRepeated(async (isWanted) => {
    if (!first) return;
    const began = performance.now();
    const found = await scan(pattern, type, cursor);
    const seconds = (performance.now() - began) / 1000;
    if (isWanted()) setNews({ of: first, data: found });
    // A search through many keys is repeated the less often the longer it takes.
    await pause(seconds * PATIENCE_MS);
  }, LIVE_MS, [first]);
  return html`<div class="card-head"><h2>Keys</h2></div>
    <${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${data && (data.keys.length ? html`<table><thead><tr><th>Key</th><th>Type</th><th class="wide">Expires in</th></tr></thead>
      <tbody>${data.keys.map(({ key, type, ttl }) => html`<tr key=${keyText(key)} class=${keyText(key) === chosen ? 'chosen' : ''}>
        <td><a data-row href=${onChoose(key)} aria-current=${keyText(key) === chosen ? 'true' : undefined}>${shown(key) || '(empty)'}</a></td>
        <td class="muted">${type}</td><td class="wide muted">${ttl >= 0 ? remaining(ttl) : ''}</td></tr>`)}</tbody></table>`
      : html`<${Empty}>${data.next ? 'Nothing so far. Search on below.' : pattern || type ? 'No key matches.' : 'There are no keys.'}<//>`)}
      ${data && (cursors.length > 1 || data.next) && html`<nav class="pager" aria-label="Pages of keys">
        <button type="button" disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>Back</button>
        <button type="button" disabled=${!data.next} onClick=${() => setCursors([...cursors, /** @type {string} */ (data.next)])}>Next</button></nav>`}<//>`;
}

/** @param {{ name: Bytes }} props */
function Entry({ name }) {
  const [fact, setFact] = useState(/** @type {{ type: string, ttl: number, bytes: number } | null} */ (null));
  const [turn, setTurn] = useState(0);
  useRepeated(async (isWanted) => {
    const [type, ttl, bytes] = await look(['TYPE', name], ['PTTL', name], ['MEMORY', 'USAGE', name]);
    if (!isWanted()) return;
    setFact({ type, ttl, bytes });
    setTurn((old) => old + 1);
  }, LIVE_MS, []);
  const title = shown(name);
  return html`<section class="card" aria-label="Value"><div class="card-head"><h2 class="name">${title}</h2><${Copy} text=${title} name="Copy the key" /></div>
    ${!fact ? html`<${Waiting} isLoading />` : fact.type === 'none' ? html`<${Empty}>There is no such key.<//>` : html`
      <${Facts} facts=${[['Type', fact.type], ['Expires in', fact.ttl >= 0 ? remaining(fact.ttl) : 'never'],
        ['Stored bytes', typeof fact.bytes === 'number' ? count(fact.bytes) : undefined]]} />
      <${Value} key=${fact.type} name=${name} type=${fact.type} turn=${turn} />`}
  </section>`;
}
