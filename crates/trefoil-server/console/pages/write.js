// Write an event, under conditions; or only try the conditions and see why they fail.

import { html, useState } from '../view.js';
import { call, readPage, useLoad } from '../api.js';
import { Verbatim, hasDigits, parseExactly } from '../exact.js';
import { route, linkTo } from '../route.js';
import { count } from '../format.js';
import { Failure, Head, Snippets } from '../parts/basics.js';
import { EventList } from '../parts/events.js';
import { NameInput, NamesInput } from '../parts/names.js';
import { QueryForm, parseQuery, tidied } from '../parts/query.js';
import { curl, python, pythonOf, script, scriptOf } from '../commands.js';

/** @typedef {import('../trefoil.js').Condition} Condition */
/** @typedef {{ kind: string, stream: string, version: string, query: any, after: string, key: string, field: string, value: string }} Draft */

/** A command that reads: with it a commit checks its conditions and writes nothing. */
const NOTHING = [['EXISTS', '']];
const KINDS = { query: 'No event matches', version: 'A stream is at a version', exists: 'A key exists', absent: 'A key does not exist', equals: 'A key has a value', differs: 'A key has another value' };
const EMPTY = { kind: 'query', stream: '', version: '-1', query: {}, after: '', key: '', field: '', value: '' };

/** @param {Draft} draft @returns {Condition} */
function conditionOf({ kind, stream, version, query, after, key, field, value }) {
  if (kind === 'query') return { query: tidied(query), ...(after.trim() && { after: wholeNumber(after, 'The position') }) };
  if (kind === 'version') return { stream, expectedVersion: wholeNumber(version, 'The version') };
  const place = { key, ...(field && { field }) };
  return kind === 'equals' ? { ...place, equals: value } : kind === 'differs' ? { ...place, differs: value } : { ...place, exists: kind === 'exists' };
}

/** @param {string} text @param {string} what */
function wholeNumber(text, what) {
  const number = Number(text);
  if (!/^\s*-?\d+\s*$/.test(text) || !Number.isSafeInteger(number)) throw new Error(`${what} of a condition is not a whole number that can be: ${text}`);
  return number;
}

/** What the address asks to begin with. @param {URLSearchParams} place */
function beginning(place) {
  let draft = { stream: place.get('stream') ?? '', type: '', data: /** @type {any} */ ({}), metadata: /** @type {any} */ (undefined), tags: /** @type {string[]} */ ([]) };
  try { draft = { ...draft, ...parseExactly(place.get('draft') ?? '{}') }; } catch { /* Then it begins empty. */ }
  const query = parseQuery(place.get('condition'));
  return {
    stream: String(draft.stream), type: String(draft.type), data: JSON.stringify(draft.data, null, 2),
    metadata: draft.metadata ? JSON.stringify(draft.metadata, null, 2) : '', tags: draft.tags.map(String), conditions: query ? [{ ...EMPTY, query }] : [],
  };
}

/** @param {string} text @param {string} what */
function parsed(text, what) {
  try {
    return parseExactly(text);
  } catch (error) {
    throw new Error(`${what} is not JSON: ${/** @type {Error} */ (error).message}`);
  }
}

export function Write() {
  const [form, setForm] = useState(() => beginning(route.value.query));
  const [result, setResult] = useState(/** @type {any} */ (null));
  const set = (/** @type {string} */ name) => (/** @type {any} */ event) => setForm({ ...form, [name]: event.target.value });
  let conditions = /** @type {Condition[]} */ ([]);
  let [typed, read] = /** @type {any[]} */ ([null, null]);
  let problem = '';
  try {
    conditions = form.conditions.map(conditionOf);
    const whole = (/** @type {any} */ data, /** @type {any} */ metadata) => ({ ...(conditions.length && { conditions }), events: [{ ...(form.stream && { stream: form.stream }),
      type: form.type, data, ...(metadata && { metadata }), ...(form.tags.length && { tags: form.tags }) }] });
    read = whole(parsed(form.data, 'Data'), form.metadata.trim() && parsed(form.metadata, 'Metadata'));
    typed = whole(new Verbatim(form.data), form.metadata.trim() && new Verbatim(form.metadata));
  } catch (error) {
    problem = /** @type {Error} */ (error).message;
  }
  const run = async (/** @type {any} */ what, /** @type {boolean} */ isTrial) => {
    try {
      setResult({ isTrial, done: await call('commit', what) });
    } catch (error) {
      setResult({ isTrial, error });
    }
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    if (problem) setResult({ error: { code: 'Not sent', message: problem } });
    else run(typed, false);
  };
  return html`<${Head} title="Write" subtitle="One event, under any number of conditions: written as a whole or not at all." />
    <form class="column" onSubmit=${submit}>
      <section class="card" aria-label="Event">
        <div class="fields">
          <label>Stream, or none<${NameInput} kind="streams" value=${form.stream} onValue=${(/** @type {string} */ stream) => setForm({ ...form, stream })} /></label>
          <label>Type<${NameInput} kind="types" value=${form.type} required onValue=${(/** @type {string} */ type) => setForm({ ...form, type })} /></label>
        </div>
        <label>Data, any JSON<textarea rows="5" spellcheck=${false} value=${form.data} onInput=${set('data')}></textarea></label>
        <label>Metadata, an object or nothing<textarea rows="2" spellcheck=${false} value=${form.metadata} onInput=${set('metadata')}></textarea></label>
        <div><h2>Tags</h2><${NamesInput} label="Add a tag to the event" kind="tags" names=${form.tags}
          onNames=${(/** @type {string[]} */ tags) => setForm({ ...form, tags })} /></div>
      </section>
      <section class="card" aria-label="Conditions"><div class="card-head"><h2>Conditions</h2>
        <button type="button" onClick=${() => setForm({ ...form, conditions: [...form.conditions, { ...EMPTY }] })}>Add a condition</button></div>
        ${form.conditions.length ? form.conditions.map((draft, index) => html`<${ConditionForm} draft=${draft} index=${index}
          failed=${result?.error?.details?.condition === index}
          onDraft=${(/** @type {Draft | null} */ next) => setForm({ ...form, conditions: form.conditions.flatMap((other, at) => (at !== index ? [other] : next ? [next] : [])) })} />`)
          : html`<p class="muted">None: the event is written in any case.</p>`}
      </section>
      <div class="bar"><button class="primary">Write</button>
        <button type="button" disabled=${!conditions.length || problem !== ''} onClick=${() => run({ conditions, state: NOTHING }, true)}>Only check the conditions</button>
        <span class="wrong" aria-live="polite">${problem}</span></div>
    </form>
    <div aria-live="polite">${result && html`<${Outcome} result=${result} />`}</div>
    ${typed && html`<${Snippets} snippets=${commitCommands(typed, read)} />`}`;
}

/** The commit as commands; not in a language that would change one of its numbers.
 * @param {any} typed @param {any} read @returns {import('../commands.js').Snippets} */
function commitCommands(typed, read) {
  const parts = Object.entries(read).map(([name, value]) => `${name}=${pythonOf(value)}`);
  const programs = { Python: python(`db.commit(${parts.join(', ')})`), TypeScript: script(`await db.commit(${scriptOf(read)});`) };
  return { curl: curl('commit', typed), ...(hasDigits(read) ? {} : programs) };
}

/** @param {{ draft: Draft, index: number, failed: boolean, onDraft: (draft: Draft | null) => void }} props */
function ConditionForm({ draft, index, failed, onDraft }) {
  const field = (/** @type {keyof Draft} */ name, /** @type {string} */ label, others = {}) => html`<label>${label}<input value=${draft[name]} autocomplete="off"
    spellcheck=${false} ...${others} onInput=${(/** @type {any} */ event) => onDraft({ ...draft, [name]: event.target.value })} /></label>`;
  const isKey = draft.kind !== 'query' && draft.kind !== 'version';
  return html`<fieldset class=${`condition${failed ? ' failed' : ''}`}><legend>Condition ${index}${failed ? ': does not hold' : ''}</legend>
    <div class="bar"><select aria-label="Kind of condition" value=${draft.kind} onChange=${(/** @type {any} */ event) => onDraft({ ...draft, kind: event.target.value })}>
      ${Object.entries(KINDS).map(([kind, name]) => html`<option value=${kind}>${name}</option>`)}</select>
      <button type="button" class="quiet" onClick=${() => onDraft(null)}>Remove</button></div>
    ${draft.kind === 'query' && html`<${QueryForm} query=${draft.query} onQuery=${(/** @type {any} */ query) => onDraft({ ...draft, query })} />
      <div class="fields">${field('after', 'after this global position, or at all', { inputmode: 'numeric', placeholder: 'the head that you read' })}<${HeadButton} onHead=${(/** @type {number} */ head) => onDraft({ ...draft, after: String(head) })} /></div>`}
    ${draft.kind === 'version' && html`<div class="fields">${field('stream', 'Stream')}${field('version', 'Version; -1 if it must not exist', { inputmode: 'numeric' })}</div>`}
    ${isKey && html`<div class="fields">${field('key', 'Key')}${field('field', 'Field of the hash, or none')}
      ${(draft.kind === 'equals' || draft.kind === 'differs') && field('value', 'Value')}</div>`}
  </fieldset>`;
}

/** @param {{ onHead: (head: number) => void }} props */
function HeadButton({ onHead }) {
  return html`<button type="button" class="end" onClick=${() => call('events.head').then(onHead, () => {})}>Use the head of the log</button>`;
}

/** @param {{ result: any }} props */
function Outcome({ result: { isTrial, done, error } }) {
  if (done) {
    const [event] = done.events;
    return html`<p class="note good">${isTrial ? 'Every condition holds. Nothing was written.'
      : html`Written as <a href=${linkTo('event', [String(event.globalPosition)])}>event ${count(event.globalPosition)}</a>${event.stream && ` of ${event.stream}, position ${event.position}`}.`}</p>`;
  }
  const { globalPosition, condition, actual } = error.details ?? {};
  return html`<${Failure} error=${error} />
    ${condition !== undefined && html`<p class="muted">Nothing was written. Condition ${condition} does not hold${actual !== undefined ? `: the stream is at version ${actual}` : ''}.</p>`}
    ${globalPosition !== undefined && html`<${Match} key=${globalPosition} position=${globalPosition} />`}`;
}

/** The event that a query must not find. @param {{ position: number }} props */
function Match({ position }) {
  const { data } = useLoad(() => readPage({}, { from: position, batchSize: 1 }), [position]);
  return data?.events.length ? html`<p>This event matches:</p><${EventList} events=${data.events} />` : null;
}
