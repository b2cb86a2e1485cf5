// One event: its data and metadata, where it is, what led to it, and how other programs read it.

import { html } from '../view.js';
import { call, readPage, useLoad } from '../api.js';
import { linkTo } from '../route.js';
import { count } from '../format.js';
import { Copy, Empty, Facts, Failure, Head, Snippets, Tag, Time, Waiting } from '../parts/basics.js';
import { Json } from '../parts/json.js';
import { eventCommands } from '../commands.js';

/** @typedef {import('../trefoil.js').StoredEvent} StoredEvent */

/** The event and its neighbours in the log and in its stream. @param {number} position */
async function load(position) {
  const [{ events, head }, before] = await Promise.all([
    readPage({}, { from: position, batchSize: 2 }),
    readPage({}, { after: position, direction: 'backwards', batchSize: 1 }),
  ]);
  const [event, next] = events[0]?.globalPosition === position ? events : [undefined, events[0]];
  const stream = event?.stream ? await neighbours(event) : {};
  return { event, head, next: next?.globalPosition, previous: before.events[0]?.globalPosition, stream, cause: event && await causeOf(event) };
}

/** @param {StoredEvent} event @returns {Promise<{ next?: number, previous?: number }>} */
async function neighbours({ stream, globalPosition: after }) {
  const one = (/** @type {string} */ direction) => readPage({ stream }, { after, direction, batchSize: 1 });
  const [next, previous] = await Promise.all([one('forwards'), one('backwards')]);
  return { next: next.events[0]?.globalPosition, previous: previous.events[0]?.globalPosition };
}

/**
 * The global position of the event that caused this one, as its metadata says by the convention of
 * Message DB. @param {StoredEvent} event @returns {Promise<number | undefined>}
 */
async function causeOf({ metadata }) {
  const { causationMessageGlobalPosition, causationMessageStreamName, causationMessagePosition } = metadata ?? {};
  if (Number.isInteger(causationMessageGlobalPosition)) return causationMessageGlobalPosition;
  if (typeof causationMessageStreamName !== 'string' || !Number.isInteger(causationMessagePosition)) return undefined;
  const [event] = await call('stream.get', causationMessageStreamName, { position: causationMessagePosition, batchSize: 1, as: 'objects' });
  return event?.position === causationMessagePosition ? event.globalPosition : undefined;
}

/** @param {{ names: string[] }} props */
export function EventPage({ names: [text = ''] }) {
  const position = Number(text);
  const { data, error, isLoading, reload } = useLoad(() => load(position), []);
  const { event, next, previous } = data ?? {};
  return html`<${Head} title=${event ? event.type : `Event ${text}`} subtitle=${`Event ${count(position)}`}>
      <${Step} to=${previous} label="← Before" /><${Step} to=${next} label="After →" /><//>
    <${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${event ? html`<${Details} event=${event} cause=${data?.cause} stream=${data?.stream} />`
      : data && html`<${Empty}>There is no event at this position. The log ends at ${count(data.head)}.<//>`}<//>`;
}

/** @param {{ to?: number, label: string }} props */
function Step({ to, label }) {
  return to === undefined ? html`<span class="button" aria-disabled="true">${label}</span>`
    : html`<a class="button" href=${linkTo('event', [String(to)])}>${label}</a>`;
}

/** @param {{ event: StoredEvent, cause?: number, stream: any }} props */
function Details({ event, cause, stream: { previous, next } }) {
  const { id, stream, type, position, globalPosition, data, metadata, time, tags } = event;
  const draft = JSON.stringify({ stream, type, data, metadata: metadata ?? undefined, tags });
  const inStream = (/** @type {number | undefined} */ to, /** @type {string} */ label) =>
    to !== undefined && html` <a href=${linkTo('event', [String(to)])}>${label}</a>`;
  return html`<section class="card" aria-label="Event">
      <${Facts} facts=${[
        ['Global position', count(globalPosition)],
        ['Stream', stream ? html`<a href=${linkTo('stream', [stream])}>${stream}</a> <span class="muted">@${position}</span>
          ${inStream(previous, '← before')}${inStream(next, 'after →')}` : html`<span class="muted">no stream</span>`],
        ['Type', html`<a href=${linkTo('query', [], { q: JSON.stringify({ items: [{ types: [type] }] }) })}>${type}</a>`],
        ['Time', html`<${Time} time=${time} />`],
        ['Id', html`<code>${id}</code> <${Copy} text=${id} name="Copy the id" />`],
        ['Tags', tags.length ? tags.map((tag) => html`<${Tag} tag=${tag} /> `) : undefined],
        ...origins(metadata, cause),
      ]} />
    </section>
    <section class="card" aria-label="Data"><div class="card-head"><h2>Data</h2><${Copy} text=${() => JSON.stringify(data, null, 2)} name="Copy the data" /></div>
      <${Json} value=${data} /></section>
    ${metadata && html`<section class="card" aria-label="Metadata"><div class="card-head"><h2>Metadata</h2>
      <${Copy} text=${() => JSON.stringify(metadata, null, 2)} name="Copy the metadata" /></div><${Json} value=${metadata} /></section>`}
    <${Snippets} snippets=${eventCommands(event)} title="Read it elsewhere" />
    ${draft.length < 20_000 && html`<p><a href=${linkTo('write', [], { draft })}>Write one like this</a></p>`}`;
}

/**
 * What the event belongs to and what caused it, as far as its metadata says. @param {any} metadata
 * @param {number} [cause] @returns {[string, any][]}
 */
function origins(metadata, cause) {
  const { correlationStreamName: correlation, causationMessageStreamName: stream, causationMessagePosition: position } = metadata ?? {};
  const isName = typeof correlation === 'string' && correlation;
  return [
    ['Correlation', isName ? html`<a href=${linkTo('stream', [correlation])}>${correlation}</a>` : undefined],
    ['Caused by', cause !== undefined ? html`<a href=${linkTo('event', [String(cause)])}>event ${count(cause)}</a>
      ${typeof stream === 'string' && html` <span class="muted">${stream}@${String(position)}</span>`}` : undefined],
  ];
}
