// A value of the state by its type, a part at a time, with what can be seen in it.

import { html, useState } from '../view.js';
import { look, useLoad } from '../api.js';
import { parseExactly } from '../exact.js';
import { count, size } from '../format.js';
import { Failure, Waiting } from './basics.js';
import { Json } from './json.js';

/** @typedef {import('../trefoil.js').Word} Word */
/** @typedef {string | { $base64: string }} Bytes a reply that is text, or bytes that are none */

const [STRING_BYTES, ELEMENTS, CELLS] = [65_536, 200, 4096];

/** @param {Bytes} value @returns {Uint8Array} */
export function bytesOf(value) {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  return Uint8Array.from(atob(value.$base64), (character) => character.charCodeAt(0));
}

/** A key or member as it is shown. @param {Bytes} value */
export function shown(value) {
  if (typeof value !== 'object' || value === null) return String(value);
  return [...bytesOf(value)].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`)).join('');
}

/** A key in an address. @param {Bytes} key */
export const keyText = (key) => (typeof key === 'string' ? key : `base64:${key.$base64}`);
/** @param {string} text @returns {Bytes} */
export const keyOf = (text) => (text.startsWith('base64:') ? { $base64: text.slice(7) } : text);

/** @param {any} reply */
export function orFail(reply) {
  if (reply && typeof reply === 'object' && typeof reply.error === 'string') throw new Error(reply.error);
  return reply;
}

/** How the parts of each type are read: the length, and a page from a cursor.
 * @type {{ [type: string]: { length: (key: Bytes) => Word[], page: (key: Bytes, cursor: string) => Word[], head: string[] } }} */
const KINDS = {
  hash: { length: (key) => ['HLEN', key], page: (key, cursor) => ['HSCAN', key, cursor, 'COUNT', ELEMENTS], head: ['Field', 'Value'] },
  set: { length: (key) => ['SCARD', key], page: (key, cursor) => ['SSCAN', key, cursor, 'COUNT', ELEMENTS], head: ['Member'] },
  zset: { length: (key) => ['ZCARD', key],
    page: (key, cursor) => ['ZRANGE', key, Number(cursor), Number(cursor) + ELEMENTS - 1, 'WITHSCORES'], head: ['Member', 'Score'] },
  list: { length: (key) => ['LLEN', key], page: (key, cursor) => ['LRANGE', key, Number(cursor), Number(cursor) + ELEMENTS - 1], head: ['Index', 'Element'] },
};

/** The rows of a page, and where the next one begins. @param {string} type @param {string} cursor @param {any} reply
 * @returns {{ rows: any[][], next: string | null }} */
function rowsOf(type, cursor, reply) {
  if (type === 'hash' || type === 'set') {
    const [next, flat] = reply;
    const width = type === 'hash' && !Array.isArray(flat[0]) ? 2 : 1;
    const rows = [];
    for (let at = 0; at < flat.length; at += width) rows.push(Array.isArray(flat[at]) ? flat[at] : flat.slice(at, at + width));
    return { rows, next: String(next) === '0' ? null : String(next) };
  }
  const first = Number(cursor);
  const pairs = type === 'zset' && !Array.isArray(reply[0]);
  const rows = [];
  for (let at = 0; at < reply.length; at += pairs ? 2 : 1) {
    rows.push(type === 'list' ? [first + at, reply[at]] : pairs ? reply.slice(at, at + 2) : reply[at]);
  }
  return { rows, next: rows.length < ELEMENTS ? null : String(first + ELEMENTS) };
}

/** @param {{ name: Bytes, type: string, turn: number }} props */
export function Value({ name, type, turn }) {
  if (type === 'string') return html`<${StringValue} name=${name} turn=${turn} />`;
  return KINDS[type] ? html`<${Elements} name=${name} type=${type} turn=${turn} />` : html`<p class="muted">A value of the type ${type}.</p>`;
}

/** @param {{ name: Bytes, type: string, turn: number }} props */
function Elements({ name, type, turn }) {
  const kind = KINDS[type];
  const [cursors, setCursors] = useState(['0']);
  const cursor = cursors[cursors.length - 1];
  const { data, error, isLoading } = useLoad(async () => {
    const [length, reply] = (await look(kind.length(name), kind.page(name, cursor))).map(orFail);
    return { length, ...rowsOf(type, cursor, reply) };
  }, [cursor, turn]);
  return html`<${Failure} error=${error} /><${Waiting} isLoading=${isLoading && !data}>${data && html`
    <p class="muted">${count(data.length)} in all</p>
    <table><thead><tr>${kind.head.map((name) => html`<th>${name}</th>`)}</tr></thead>
    <tbody>${data.rows.map((row) => html`<tr>${row.map((cell) => html`<td><${Cell} value=${cell} /></td>`)}</tr>`)}</tbody></table>
    ${(cursors.length > 1 || data.next) && html`<nav class="pager" aria-label="Pages of the value">
      <button type="button" disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>Back</button>
      <button type="button" disabled=${!data.next} onClick=${() => setCursors([...cursors, /** @type {string} */ (data.next)])}>Next</button></nav>`}`}<//>`;
}

/** @param {{ value: any }} props */
function Cell({ value }) {
  if (typeof value === 'number') return html`<span>${value}</span>`;
  const text = shown(value);
  return html`<code>${text.length > 400 ? `${text.slice(0, 400)}…` : text}</code>`;
}

/** @param {string} text @returns {any} the value of JSON that is more than a word or a number */
function jsonIn(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try { return parseExactly(text); } catch { return undefined; }
}

/** @param {{ name: Bytes, turn: number }} props */
function StringValue({ name, turn }) {
  const [view, setView] = useState('');
  const { data, error, isLoading } = useLoad(async () => {
    const [length, begin] = (await look(['STRLEN', name], ['GETRANGE', name, 0, STRING_BYTES - 1])).map(orFail);
    return { length, begin: /** @type {Bytes} */ (begin) };
  }, [turn]);
  if (!data) return html`<${Failure} error=${error} /><${Waiting} isLoading=${isLoading} />`;
  const { length, begin } = data;
  const json = typeof begin === 'string' && length <= STRING_BYTES ? jsonIn(begin) : undefined;
  // Bits and counters in a string are valid text as often as not.
  const isText = typeof begin === 'string' && !/[\0-\x08\x0e-\x1f]/.test(begin);
  const views = [...(json === undefined ? [] : ['JSON']), ...(isText ? ['Text'] : []), 'Bits', 'Bytes'];
  const chosen = views.includes(view) ? view : views[0];
  return html`<div class="tabs" role="group" aria-label="Show as">${views.map((name) => html`<button type="button" class="tab"
      aria-pressed=${name === chosen} onClick=${() => setView(name)}>${name}</button>`)}<span class="muted">${size(length)}</span></div>
    ${chosen === 'JSON' ? html`<${Json} value=${json} />` : chosen === 'Text' ? html`<pre>${begin}</pre>`
      : chosen === 'Bits' ? html`<${Bits} bytes=${bytesOf(begin)} />` : html`<${Hex} bytes=${bytesOf(begin)} />`}
    ${length > STRING_BYTES && html`<p class="muted">The first ${size(STRING_BYTES)} of ${size(length)} are shown.</p>`}`;
}

/** @param {{ bytes: Uint8Array }} props */
function Hex({ bytes }) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, CELLS); at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const hex = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ').padEnd(48);
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex} ${part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')}`);
  }
  return html`<pre class="hex" tabindex="0">${lines.join('\n')}</pre>`;
}

/** The unsigned integers of some bits each, as BITFIELD counts them: #0 is the first. @param {{ bytes: Uint8Array }} props */
function Bits({ bytes }) {
  const [width, setWidth] = useState(2);
  const number = Math.min(CELLS, Math.floor((bytes.length * 8) / width));
  const cells = Array.from({ length: number }, (_, index) => {
    let value = 0;
    for (let bit = index * width; bit < (index + 1) * width; bit++) value = value * 2 + ((bytes[bit >> 3] >> (7 - (bit & 7))) & 1);
    return value;
  });
  return html`<div class="bar"><label class="check">Bits per cell <select value=${String(width)} onChange=${(/** @type {any} */ event) => setWidth(Number(event.target.value))}>
      ${[1, 2, 4, 8, 16].map((bits) => html`<option value=${String(bits)}>u${bits}</option>`)}</select></label>
      <span class="muted">${count(cells.filter(Boolean).length)} of ${count(number)} shown are not 0</span></div>
    <div class="grid" role="img" aria-label=${`${number} cells of ${width} bits`}>${cells.map((value, index) => html`<span
      class=${`cell level-${Math.min(value, 3)}`} title=${`#${index}: ${value}`}>${width > 2 && value ? value : ''}</span>`)}</div>`;
}
