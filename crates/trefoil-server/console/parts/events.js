// Events as a list, and a list that is read a page at a time and says when there is more.

import { html, useEffect, useState } from '../view.js';
import { go, linkTo, route } from '../route.js';
import { call, readPage, useLoad, useRepeated } from '../api.js';
import { clockTime, count, counted, localTime, preview } from '../format.js';
import { Empty, Failure, Tag, Waiting } from './basics.js';

/** @typedef {import('../trefoil.js').StoredEvent} StoredEvent */
/** @typedef {import('../trefoil.js').Query} Query */

export const PAGE = 50;
const [WATCH_MS, NEWS_MAX, TAGS_SHOWN] = [2000, 100, 6];

/** @param {{ events: StoredEvent[], isNew?: (event: StoredEvent) => boolean, hideStream?: boolean, isToday?: boolean }} props */
export function EventList({ events, isNew = () => false, hideStream = false, isToday = false }) {
  return html`<ol class=${`events${hideStream ? ' of-stream' : isToday ? ' of-today' : ''}`}>${events.map((event) => html`<${Row} key=${event.globalPosition}
    event=${event} isNew=${isNew(event)} hideStream=${hideStream} isToday=${isToday} />`)}</ol>`;
}

/** @param {{ event: StoredEvent, isNew: boolean, hideStream: boolean, isToday: boolean }} props */
function Row({ event, isNew, hideStream, isToday }) {
  const { stream, type, position, globalPosition, data, time, tags } = event;
  const place = hideStream ? `@${position}` : html`<a href=${linkTo('stream', [stream])}>${stream}</a><span class="muted">@${position}</span>`;
  return html`<li class=${`event${isNew ? ' fresh' : ''}`}>
    <a class="event-position row-link" data-row href=${linkTo('event', [String(globalPosition)])}>${count(globalPosition)}</a>
    <time class="event-time" datetime=${time} title=${localTime(time)}>${isToday ? clockTime(time) : localTime(time)}</time>
    <span class="event-type">${type}</span>
    <span class="event-stream">${stream ? place : html`<span class="muted">no stream</span>`}</span>
    <span class="event-data"><span class="event-tags">${tags.slice(0, TAGS_SHOWN).map((tag) => html`<${Tag} tag=${tag} />`)}
      ${tags.length > TAGS_SHOWN && html`<span class="muted">+${tags.length - TAGS_SHOWN}</span>`}</span>
      <code>${preview(data)}</code></span>
  </li>`;
}

/**
 * The page of the address: events before `before`, after `after`, or the newest. Newest come first.
 * @param {Query} query @param {URLSearchParams} place
 */
async function pageOf(query, place) {
  const after = place.get('after');
  const before = place.get('before');
  if (after === null) {
    const start = before === null ? {} : { after: Number(before) };
    const page = await readPage(query, { direction: 'backwards', batchSize: PAGE, ...start });
    return { ...page, isFirst: before === null, isLast: page.events.length < PAGE };
  }
  const page = await readPage(query, { after: Number(after), batchSize: PAGE });
  return { ...page, events: page.events.reverse(), isFirst: page.events.length < PAGE, isLast: after === '0' };
}

/**
 * All events that match, a page at a time; where it is, is in the address. On the first page it
 * watches for new events: with `isLive` it shows them, otherwise it says how many there are.
 * @param {{ query: Query, hideStream?: boolean, isLive?: boolean, onLoaded?: (head: number) => void }} props
 */
export function EventBrowser({ query, hideStream = false, isLive = false, onLoaded }) {
  const text = JSON.stringify(query);
  const place = route.value.query;
  const where = `${place.get('before')}/${place.get('after')}`;
  const { data: page, error, isLoading, reload } = useLoad(() => pageOf(query, place), [text, where]);
  const [news, setNews] = useState(/** @type {{ of: unknown, events: StoredEvent[] }} */ ({ of: null, events: [] }));
  const [fresh, setFresh] = useState(0);
  const isWatched = page?.isFirst ?? false;
  const added = news.of === page ? news.events : [];
  useEffect(() => { if (page) onLoaded?.(page.head); }, [page]);
  useRepeated(async (isWanted) => {
    if (!page || !isWatched || added.length >= NEWS_MAX) return;
    const after = added.at(-1)?.globalPosition ?? page.head;
    const found = await readPage(query, { after, batchSize: NEWS_MAX });
    if (!isWanted() || !found.events.length) return;
    if (!isLive) return setNews({ of: page, events: [...added, ...found.events] });
    setFresh(page.head);
    reload();
  }, isLive ? WATCH_MS / 2 : WATCH_MS, [page, isWatched, isLive, added.length, text]);
  if (error && !page) return html`<${Failure} error=${error} onRetry=${reload} />`;
  if (!page) return html`<${Waiting} isLoading=${isLoading} />`;
  const show = () => {
    setFresh(page.head);
    reload();
  };
  return html`<${Failure} error=${error} onRetry=${reload} />
    <div class="news" aria-live="polite">${added.length > 0 && html`<button type="button" class="primary" onClick=${show}>
      ${added.length >= NEWS_MAX ? `${NEWS_MAX}+ new events` : counted(added.length, 'new event')}: show</button>`}</div>
    ${page.events.length ? html`<${EventList} events=${page.events} hideStream=${hideStream}
      isNew=${(/** @type {StoredEvent} */ event) => fresh > 0 && event.globalPosition > fresh} />`
      : html`<${Empty}>No events${where === 'null/null' ? '' : ' here'}.<//>`}
    <${Pager} page=${page} />`;
}

/** @param {{ page: { events: StoredEvent[], isFirst: boolean, isLast: boolean } }} props */
function Pager({ page: { events, isFirst, isLast } }) {
  const { page, names, query } = route.value;
  const to = (/** @type {{ before?: number, after?: number }} */ place) => {
    const others = Object.fromEntries([...query].filter(([name]) => name !== 'before' && name !== 'after'));
    return () => go(linkTo(page, names, { ...others, ...place }));
  };
  const [first, last] = [events[0]?.globalPosition, events.at(-1)?.globalPosition];
  const jump = async (/** @type {any} */ event) => {
    const time = new Date(event.target.value);
    if (Number.isNaN(time.getTime())) return;
    const position = await call('position.at', time.toISOString());
    // Without an event of that time or later, the newest ones are the nearest.
    to(position === null ? {} : { after: position - 1 })();
  };
  if (isFirst && isLast && !query.has('after') && !query.has('before')) return null;
  return html`<nav class="pager" aria-label="Pages of events">
    <button type="button" disabled=${isFirst && !query.has('after') && !query.has('before')} onClick=${to({})}>Newest</button>
    <button type="button" disabled=${isFirst || first === undefined} onClick=${to({ after: first })}>Newer</button>
    <button type="button" disabled=${isLast || last === undefined} onClick=${to({ before: last })}>Older</button>
    <button type="button" disabled=${isLast && !isFirst} onClick=${to({ after: 0 })}>Oldest</button>
    <label class="check muted">From the time <input type="datetime-local" step="1" onChange=${jump} /></label>
  </nav>`;
}
