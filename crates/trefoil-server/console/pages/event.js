// One event: its data and metadata, where it is, what led to it, and how other programs read it.

import { html } from '../view.js';
import { call, readCommit, readEvent, readPage, useLoad } from '../api.js';
import { linkTo } from '../route.js';
import { count, counted } from '../format.js';
import { Copy, Empty, Facts, Failure, Head, Snippets, Step, Tag, Time, Waiting } from '../parts/basics.js';
import { Changes } from '../parts/commit.js';
import { EventList } from '../parts/events.js';
import { Json } from '../parts/json.js';
import { eventCommands } from '../commands.js';

/** @typedef {import('../trefoil.js').StoredEvent} StoredEvent */

/** How many events and changes of its commit are shown with an event. */
const TOGETHER = 20;

/** The event at a position, or of an id, with its commit, and its neighbours in the log and in its stream. @param {string} text */
async function load(text) {
  const address = /^\d+$/.test(text) ? Number(text) : text;
  const event = await readEvent(address);
  const position = event?.globalPosition ?? address;
  const around = typeof position === 'number' ? await neighbours({}, position) : {};
  if (!event) return { event, around };
  const [commit, inStream, cause] = await Promise.all([
    readCommit({ globalPosition: event.globalPosition }, { limit: TOGETHER }),
    event.stream ? neighbours({ stream: event.stream }, event.globalPosition) : {},
    causeOf(event),
  ]);
  return { event, around, commit, inStream, cause };
}

/** @typedef {{ next?: number, previous?: number }} Neighbours */

/** The positions before and after one, among the events that match. @param {import('../trefoil.js').Query} query @param {number} after
 * @returns {Promise<Neighbours>} */
async function neighbours(query, after) {
  const one = (/** @type {string} */ direction) => readPage(query, { after, direction, batchSize: 1 });
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
  const { data, error, isLoading, reload } = useLoad(() => load(text), []);
  const { event, around = {} } = data ?? {};
  const to = (/** @type {number | undefined} */ position) => (position === undefined ? undefined : linkTo('event', [String(position)]));
  return html`<${Head} title=${event ? event.type : `Event ${text}`} subtitle=${event && `Event ${count(event.globalPosition)}`}>
      <${Step} to=${to(around.previous)} label="← Before" /><${Step} to=${to(around.next)} label="After →" /><//>
    <${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${event ? html`<${Details} ...${data} />`
      : data && html`<${Empty}>There is no such event.<//>`}<//>`;
}

/** The commit that wrote the event: what came with it. @param {{ event: StoredEvent, commit: import('../parts/commit.js').StoredCommit }} props */
function Together({ event, commit }) {
  const others = commit.events.filter(({ globalPosition }) => globalPosition !== event.globalPosition);
  const left = commit.eventCount - commit.events.length + ((commit.changeCount ?? 0) - (commit.changes?.length ?? 0));
  const link = linkTo('commit', [String(commit.commit)]);
  return html`<section class="card" aria-label="Commit"><div class="card-head"><h2>Came in <a href=${link}>commit ${count(commit.commit)}</a></h2></div>
    ${commit.eventCount > 1 ? html`<p>with ${counted(commit.eventCount - 1, 'other event')}${others.length < commit.eventCount - 1 ? `, of which ${others.length} are shown` : ''}:</p>
      <${EventList} events=${others} />` : html`<p class="muted">It was the only event.</p>`}
    <${Changes} commit=${commit} />
    ${left > 0 && html`<p><a href=${link}>All of the commit</a></p>`}</section>`;
}

/** @param {{ event: StoredEvent, cause?: number, inStream: Neighbours, commit: any }} props */
function Details({ event, cause, inStream: { previous, next }, commit }) {
  const { id, stream, type, position, globalPosition, data, metadata, time, tags } = event;
  const draft = JSON.stringify({ stream, type, data, metadata: metadata ?? undefined, tags });
  const step = (/** @type {number | undefined} */ to, /** @type {string} */ label) =>
    to !== undefined && html` <a href=${linkTo('event', [String(to)])}>${label}</a>`;
  return html`<section class="card" aria-label="Event">
      <${Facts} facts=${[
        ['Global position', count(globalPosition)],
        ['Stream', stream ? html`<a href=${linkTo('stream', [stream])}>${stream}</a> <span class="muted">@${position}</span>
          ${step(previous, '← before')}${step(next, 'after →')}` : html`<span class="muted">no stream</span>`],
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
    ${commit && html`<${Together} event=${event} commit=${commit} />`}
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
