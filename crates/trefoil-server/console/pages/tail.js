// Events as they are written: with a filter, a pause and the rate.

import { html, useEffect, useRef, useState } from '../view.js';
import { call, noteFailure } from '../api.js';
import { client, session } from '../session.js';
import { go, linkTo, route } from '../route.js';
import { count, short } from '../format.js';
import { Empty, Failure, Head, Search, Snippets } from '../parts/basics.js';
import { EventList } from '../parts/events.js';
import { cli, python, pythonOf, quoted, script, scriptOf } from '../commands.js';

/** @typedef {import('../trefoil.js').StoredEvent} StoredEvent */

const [SHOWN, DRAW_MS, RATE_SECONDS] = [200, 250, 5];

/** @param {string} text */
const listed = (text) => text.split(',').map((part) => part.trim()).filter(Boolean);

/** The query of the address, and its parts as they are typed. @param {URLSearchParams} place */
function filterOf(place) {
  const [stream, category, type, tag] = ['stream', 'category', 'type', 'tag'].map((name) => place.get(name) ?? '');
  const [types, tags] = [listed(type), listed(tag)];
  const item = { ...(types.length && { types }), ...(tags.length && { tags }) };
  const query = { items: types.length || tags.length ? [item] : [], ...(stream ? { stream } : category ? { category } : {}) };
  return { fields: { stream, category, type, tag }, query };
}

export function Tail() {
  const { fields, query } = filterOf(route.value.query);
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) =>
    go(linkTo('tail', [], { ...fields, [name]: value }), { replace: true });
  const text = JSON.stringify(query);
  return html`<${Feed} key=${text} query=${query}>
    <div class="bar filters">
      <${Search} label="Category" value=${fields.category} onValue=${set('category')} disabled=${Boolean(fields.stream)} />
      <${Search} label="Stream" value=${fields.stream} onValue=${set('stream')} />
      <${Search} label="Types, any of: A, B" value=${fields.type} onValue=${set('type')} />
      <${Search} label="Tags, all of: a:1, b:2" value=${fields.tag} onValue=${set('tag')} />
    </div><//>
    <${Snippets} title="Follow it elsewhere" snippets=${followCommands(query)} />`;
}

/** @param {any} query @returns {import('../commands.js').Snippets} */
function followCommands(query) {
  const url = `${new URL('.', document.baseURI).href}events?query=${encodeURIComponent(JSON.stringify(query))}`;
  const [item = {}] = query.items;
  const flags = [...(item.types ?? []).flatMap((/** @type {string} */ type) => ['--type', type]),
    ...(item.tags ?? []).flatMap((/** @type {string} */ tag) => ['--tag', tag]),
    ...(query.stream ? ['--stream', query.stream] : query.category ? ['--category', query.category] : [])];
  return {
    curl: `curl -sN ${quoted(url)} \\\n  -H "Authorization: Bearer $TREFOIL_TOKEN"`,
    CLI: cli('query', ...flags, '--follow'),
    Python: python(`for event in db.subscribe(${pythonOf(query)}):\n    print(event)`),
    TypeScript: script(`for await (const event of db.subscribe(${scriptOf(query)})) console.log(event);`),
  };
}

/** @param {{ query: any, children?: any }} props */
function Feed({ query, children }) {
  const feed = useRef(new Received());
  const [view, setView] = useState(/** @type {{ events: StoredEvent[], rate: number, total: number }} */ ({ events: [], rate: 0, total: 0 }));
  const [isPaused, setPaused] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const end = new AbortController();
    follow(query, feed.current, end.signal).catch(setError);
    return () => end.abort();
  }, []);
  useEffect(() => {
    const draw = () => setView((old) => {
      const { newest, total } = feed.current;
      const rate = feed.current.rate();
      if (isPaused) return { ...old, rate };
      return total === old.total && rate === old.rate ? old : { events: newest(), rate, total };
    });
    const timer = setInterval(draw, DRAW_MS);
    draw();
    return () => clearInterval(timer);
  }, [isPaused]);
  const waiting = feed.current.total - view.total;
  return html`<${Head} title="Live tail" subtitle=${html`<span aria-live="off">${short(view.rate)} events/s · ${count(feed.current.total)} since you came</span>`}>
      <button type="button" data-pause class=${isPaused ? 'primary' : ''} aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>
        ${isPaused ? (waiting ? `Continue (${count(waiting)} new)` : 'Continue') : 'Pause'}</button>
      <button type="button" onClick=${() => { feed.current.clear(); setView({ events: [], rate: 0, total: feed.current.total }); }}>Clear</button><//>
    ${children}
    <${Failure} error=${error} />
    ${view.events.length ? html`<${EventList} events=${view.events} isToday />`
      : html`<${Empty}><span class="pulse" aria-hidden="true"></span> Waiting for the next event …<//>`}
    ${view.total > SHOWN && html`<p class="muted">The newest ${SHOWN} are shown.</p>`}`;
}

/** @param {any} query @param {Received} feed @param {AbortSignal} signal */
async function follow(query, feed, signal) {
  const { token } = session.value;
  let after;
  // The server may be away just now.
  for (; after === undefined && !signal.aborted; ) {
    try {
      after = await call('events.head');
    } catch (error) {
      if (/** @type {any} */ (error).code !== 'CONNECTION') throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  try {
    for await (const event of client().subscribe(query, { after, signal })) feed.add(event);
  } catch (error) {
    noteFailure(error, token);
    throw error;
  }
}

/** The newest events and how many come per second. */
class Received {
  /** @type {StoredEvent[]} */
  #events = [];
  /** How many came in each of the last seconds. @type {Map<number, number>} */
  #seconds = new Map();
  total = 0;

  /** @param {StoredEvent} event */
  add(event) {
    this.#events.push(event);
    this.total += 1;
    if (this.#events.length > 2 * SHOWN) this.#events.splice(0, this.#events.length - SHOWN);
    const second = Math.floor(Date.now() / 1000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
  }

  newest = () => this.#events.slice(-SHOWN).reverse();

  clear() {
    this.#events = [];
  }

  /** Events per second over the last whole seconds. */
  rate() {
    const now = Math.floor(Date.now() / 1000);
    let sum = 0;
    for (const [second, number] of this.#seconds) {
      if (second < now - RATE_SECONDS) this.#seconds.delete(second);
      else if (second < now) sum += number;
    }
    return sum / RATE_SECONDS;
  }
}
