// Who follows the events: open subscriptions, and the positions that consumers track, with how far
// each is behind.

import { html, useState } from '../view.js';
import { call, useLoad, useRepeated } from '../api.js';
import { linkTo, go, route } from '../route.js';
import { ago, count, duration, localTime } from '../format.js';
import { Empty, Failure, Head, Pager, Search, Waiting } from '../parts/basics.js';

/** @typedef {{ id: number, protocol: string, endpoint: string, since: string, query: any, position: number, events: number, lag: number, lagMs: number | null }} OpenSubscription */
/** @typedef {{ source: string, position: number, lag: number | null }} Tracked */

const [LIVE_MS, LIMIT] = [2000, 100];

export function Consumers() {
  const prefix = route.value.query.get('source') ?? '';
  const search = (/** @type {string} */ source) => go(linkTo('consumers', [], { source }), { replace: true });
  return html`<${Head} title="Consumers" subtitle="Who follows the events of this namespace, and how far each is behind." />
    <section class="card" aria-label="Subscriptions"><${Subscriptions} /></section>
    <section class="card" aria-label="Tracked positions"><div class="card-head"><h2>Tracked positions</h2></div>
      <div class="bar"><${Search} label="Sources that begin with …" value=${prefix} onValue=${search} /></div>
      <${TrackedPositions} key=${prefix} prefix=${prefix} /></section>`;
}

/**
 * A page of a list that is read again and again. It reads one more than it shows, to know whether
 * there is more. @template T @param {(cursor: any) => Promise<T[]>} read @param {(last: T) => any} cursorOf
 */
function useLivePages(read, cursorOf) {
  const [cursors, setCursors] = useState(/** @type {any[]} */ ([undefined]));
  const cursor = cursors[cursors.length - 1];
  const { data, error, isLoading, reload } = useLoad(() => read(cursor), [cursor]);
  useRepeated(reload, LIVE_MS, [cursor]);
  const all = data ?? [];
  const shown = all.slice(0, LIMIT);
  const onNext = all.length > LIMIT ? () => setCursors([...cursors, cursorOf(shown[LIMIT - 1])]) : undefined;
  const onBack = cursors.length > 1 ? () => setCursors(cursors.slice(0, -1)) : undefined;
  return { shown, error, isWaiting: isLoading && !data, onNext, onBack };
}

function Subscriptions() {
  const { shown, error, isWaiting, onNext, onBack } = useLivePages(
    (cursor) => call('ns.subscriptions', { limit: LIMIT + 1, ...(cursor && { cursor }) }), (/** @type {OpenSubscription} */ { id }) => id);
  return html`<div class="card-head"><h2>Open subscriptions</h2></div><${Failure} error=${error} />
    <${Waiting} isLoading=${isWaiting}>${shown.length ? html`<table><thead><tr><th>Over</th><th>Follows</th><th class="wide">Since</th>
      <th class="number wide">Sent</th><th class="number wide">At position</th><th class="number">Behind</th></tr></thead>
      <tbody>${shown.map((one) => html`<tr key=${one.id}><td>${one.protocol} <span class="muted">${one.endpoint}</span></td><td><${Followed} query=${one.query} /></td>
        <td class="wide muted"><time datetime=${one.since} title=${localTime(one.since)}>${ago(one.since)}</time></td>
        <td class="number wide">${count(one.events)}</td><td class="number wide">${count(one.position)}</td><td class="number"><${Lag} lag=${one.lag} ms=${one.lagMs} /></td></tr>`)}</tbody></table>`
      : html`<${Empty}>Nobody is subscribed.<//>`}
      <${Pager} name="subscriptions" onBack=${onBack} onNext=${onNext} /><//>`;
}

/** @param {{ lag: number | null, ms?: number | null }} props */
function Lag({ lag, ms }) {
  if (lag === null) return html`<span class="muted">not of this log</span>`;
  if (!lag) return html`<span class="muted">up to date</span>`;
  return html`${count(lag)}${ms ? html` <span class="muted">${duration(ms / 1000)}</span>` : ''}`;
}

/** What a subscription follows, as a link to the same query. @param {{ query: any }} props */
function Followed({ query }) {
  if (!query) return html`<span class="muted">a long query</span>`;
  const { items = [], stream, category, correlation, consumerGroup } = query;
  const names = items.map((/** @type {any} */ { types = [], tags = [] }) => [types.join(' or '), ...tags].filter(Boolean).join(' + '));
  const what = [stream ? `stream ${stream}` : category ? `category ${category}` : 'all streams', ...(names.length ? [names.join(', or ')] : [])];
  const rest = [correlation && `correlated with ${correlation}`, consumerGroup && `member ${consumerGroup.member} of ${consumerGroup.size}`].filter(Boolean);
  const q = JSON.stringify({ items, ...(stream ? { stream } : category ? { category } : {}) });
  return html`<a data-row href=${linkTo('query', [], { q })}>${what.join(': ')}</a>${rest.length > 0 && html` <span class="muted">${rest.join(', ')}</span>`}`;
}

/** @param {{ prefix: string }} props */
function TrackedPositions({ prefix }) {
  const { shown, error, isWaiting, onNext, onBack } = useLivePages(
    (cursor) => call('ns.tracking', { prefix, limit: LIMIT + 1, ...(cursor && { cursor }) }), (/** @type {Tracked} */ { source }) => source);
  return html`<${Failure} error=${error} /><${Waiting} isLoading=${isWaiting}>${shown.length ? html`<table><thead><tr><th>Source</th><th class="number">At position</th><th class="number">Behind</th></tr></thead>
      <tbody>${shown.map(({ source, position, lag }) => html`<tr key=${source}><td class="name">${source}</td><td class="number">${count(position)}</td>
        <td class="number"><${Lag} lag=${lag} /></td></tr>`)}</tbody></table>
      <p class="muted">A source is a log that somebody reads, this one or another. What it is behind is counted in events of this namespace, so it says
        something of sources that read this one, such as the projections of the clients.</p>`
    : html`<${Empty}>${prefix ? 'No source begins like this.' : 'No positions are tracked.'}<//>`}
    <${Pager} name="sources" onBack=${onBack} onNext=${onNext} /><//>`;
}
