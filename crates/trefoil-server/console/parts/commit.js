// What a commit brought: the events that came together, and what it changed of the state.

import { html } from '../view.js';
import { linkTo } from '../route.js';
import { count, counted, localTime, size } from '../format.js';
import { Empty } from './basics.js';
import { keyText, shown } from './value.js';

/** @typedef {import('./value.js').Bytes} Bytes */
/** @typedef {{ edit: string, entry: string, key?: Bytes, [fact: string]: any }} Change */
/** @typedef {{ commit: number, eventCount: number, events: import('../trefoil.js').StoredEvent[], changeCount: number | null, changes: Change[] | null }} StoredCommit */

const EDITS = /** @type {{ [edit: string]: string }} */ ({ insert: 'new', replace: 'changed', delete: 'removed', patch: 'changed in part' });

const time = (/** @type {number} */ ms) => localTime(new Date(ms).toISOString());
/** Entries that the database keeps for itself. */
const OWN = new Set(['root', 'garbage', 'replies']);
const TEXT_MAX = 400;

/** @param {Bytes} value */
function text(value) {
  const whole = shown(value);
  return whole.length > TEXT_MAX ? `${whole.slice(0, TEXT_MAX)}…` : whole;
}

/** A value, or the part of it that is told. @param {Change} change @param {string} name */
function valueOf(change, name) {
  if (change[name] === undefined) return '';
  return html` <code>${text(change[name])}</code>${change.bytes !== undefined && html` <span class="muted">of ${size(change.bytes)}</span>`}`;
}

/** What is under a key now. @param {Change} change */
function keyFacts(change) {
  if (!change.type) return change.edit === 'delete' ? 'The key is gone.' : 'The key';
  const fields = /** @type {[Bytes, Bytes][] | undefined} */ (change.fields);
  return html`${change.type}${change.value === undefined && !fields && html`<span class="muted"> of ${change.type === 'string' ? size(change.length) : count(change.length)}</span>`}${valueOf(change, 'value')}
    ${fields?.map(([name, value]) => html` <code>${text(name)}: ${text(value)}</code>`)}
    ${change.expiresAt !== undefined && html` <span class="muted">expires ${time(change.expiresAt)}</span>`}`;
}

/** What each kind of entry is, in words. @type {{ [entry: string]: (change: Change) => any }} */
const ENTRIES = {
  key: keyFacts,
  field: (change) => html`Field <code>${text(change.name)}</code>${valueOf(change, 'value')}`,
  // A field whose key is known is told as one.
  member: (change) => html`${change.key === undefined ? 'Member or field' : 'Member'} <code>${text(change.name)}</code>${change.score !== undefined && ` with the score ${change.score}`}`,
  chunk: (change) => `Chunk ${change.chunk} of a long string`,
  block: () => 'A block of elements in their order',
  expiry: (change) => `The key expires ${time(change.time)}`,
  fieldExpiry: (change) => `Fields expire ${time(change.time)}`,
  timer: (change) => `A timer is due ${time(change.time)}`,
  tracking: (change) => html`Tracked position of <code>${change.source}</code>${change.position !== undefined && `: ${count(Number(change.position))}`}`,
};

/** @param {{ change: Change }} props */
function Row({ change }) {
  const { key, collection } = change;
  return html`<tr><td class="muted">${EDITS[change.edit] ?? change.edit}</td>
    <td>${key !== undefined ? html`<a href=${linkTo('state', [], { key: keyText(key) })}>${shown(key) || '(empty)'}</a>`
      : collection !== undefined ? html`<span class="muted">collection ${count(collection)}</span>` : ''}</td>
    <td>${ENTRIES[change.entry]?.(change) ?? change.entry}${change.offset !== undefined && html`, bytes from ${count(change.offset)}:${valueOf(change, 'part')}`}</td></tr>`;
}

/** What the commit changed of the state, as far as the log still has it. @param {{ commit: StoredCommit }} props */
export function Changes({ commit: { changes, changeCount } }) {
  if (changes === null) {
    return html`<p class="note">The log no longer has what this commit changed of the state, or whether it changed anything: a snapshot
      of the state has taken its place.</p>`;
  }
  if (!changeCount) return html`<${Empty}>It changed nothing of the state.<//>`;
  const told = changes.filter(({ entry }) => !OWN.has(entry));
  const own = changes.length - told.length;
  return html`${told.length > 0 && html`<table><thead><tr><th>Change</th><th>Key</th><th>What it is now</th></tr></thead>
    <tbody>${told.map((change, index) => html`<${Row} key=${index} change=${change} />`)}</tbody></table>`}
    ${own > 0 && html`<p class="muted">${counted(own, 'entry', 'entries')} that the database keeps for itself ${own === 1 ? 'is' : 'are'} left out.</p>`}`;
}
