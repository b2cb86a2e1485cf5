// Maps of seats that change while you look.

import { html, useState } from '../view.js';
import { call, useLoad, useRepeated } from '../api.js';
import { go, linkTo, route } from '../route.js';
import { count } from '../format.js';
import { Empty, Failure, Head, Waiting } from '../parts/basics.js';

const [LIVE_MS, SECTIONS_MAX, SEATS_MAX] = [1000, 1000, 5000];
const STATES = ['available', 'reserved', 'sold'];
const CATEGORY = 'seats-';

/** Whose seats are sold here: each section has a stream `seats-{event}+{section}`. @returns {Promise<string[]>} */
async function soldEvents() {
  const streams = await call('ns.streams', { prefix: CATEGORY, limit: SECTIONS_MAX });
  const names = streams.map((/** @type {{ stream: string }} */ { stream }) => stream.slice(CATEGORY.length, stream.lastIndexOf('+')));
  return [...new Set(/** @type {string[]} */ (names))];
}

export function Seats() {
  const { data, error, isLoading } = useLoad(soldEvents, []);
  const names = data ?? [];
  const event = route.value.query.get('event') ?? names[0] ?? '';
  const choose = (/** @type {any} */ change) => go(linkTo('seats', [], { event: change.target.value }));
  return html`<${Head} title="Seats" subtitle=${event && `Event ${event}`}>
      ${names.length > 1 && html`<select aria-label="Event" value=${event} onChange=${choose}>${names.map((name) => html`<option value=${name}>${name}</option>`)}</select>`}<//>
    <${Failure} error=${error} />
    <${Waiting} isLoading=${isLoading && !data}>${event ? html`<${Sections} key=${event} event=${event} />`
      : html`<${Empty}>No seats are sold here. SEATS.INIT, or seats.init over HTTP, opens a section.<//>`}<//>`;
}

/** @param {{ event: string }} props */
function Sections({ event }) {
  const { data, error } = useLoad(() => call('seats.sections', { event }), []);
  const sections = /** @type {string[]} */ (data ?? []);
  return html`<${Failure} error=${error} /><div class="charts">${sections.map((section) => html`<${Section} key=${section} event=${event} section=${section} />`)}</div>`;
}

/** @param {{ event: string, section: string }} props */
function Section({ event, section }) {
  const [view, setView] = useState(/** @type {{ map: any, stats: any } | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  useRepeated(async (isWanted) => {
    try {
      const stats = await call('seats.stats', { event, section });
      // A map is only asked for when something has happened.
      const isSame = view && ['available', 'reserved', 'sold', 'updatedAt'].every((name) => stats[name] === view.stats[name]);
      if (isSame || !isWanted()) return;
      const map = stats.total > SEATS_MAX ? null : await call('seats.map', { event, section });
      if (isWanted()) setView({ map, stats });
    } catch (failure) {
      setError(failure);
    }
  }, LIVE_MS, [view]);
  return html`<section class="card" aria-label=${`Section ${section}`}><div class="card-head"><h2>Section ${section}</h2></div>
    <${Failure} error=${error} />
    ${!view ? html`<${Waiting} isLoading />` : html`<p class="legend">${STATES.map((state, index) => html`<span><i class=${`cell level-${index}`}></i> ${count(view.stats[state])} ${state}</span>`)}</p>
      ${view.map ? html`<div class="seats" role="img" aria-label=${`${view.stats.available} of ${view.stats.total} seats are available`}>${view.map.seats.map((/** @type {number[]} */ row, /** @type {number} */ at) => html`<div class="seat-row"><span class="muted">${at + 1}</span>
        ${row.map((state, index) => html`<i class=${`cell level-${state}`} title=${`${at + 1}-${index + 1}: ${STATES[state]}`}></i>`)}</div>`)}</div>`
        : html`<p class="muted">The section is too large for a map.</p>`}`}
  </section>`;
}
