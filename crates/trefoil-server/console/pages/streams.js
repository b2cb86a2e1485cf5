// Categories, and streams by the beginning of their names.

import { html, useEffect, useState } from '../view.js';
import { call, useLoad } from '../api.js';
import { go, linkTo, route } from '../route.js';
import { ago, count, counted, localTime } from '../format.js';
import { Empty, Failure, Head, Search, Waiting } from '../parts/basics.js';

const [STREAMS, CATEGORIES] = [100, 100];

/** @typedef {{ stream: string, version: number, lastActivity: string }} StreamEntry */
/** @typedef {{ category: string, messageCount: number, streamCount: number }} CategoryEntry */

export function Streams() {
  const prefix = route.value.query.get('prefix') ?? '';
  const search = (/** @type {string} */ text) => go(linkTo('streams', [], { prefix: text }), { replace: true });
  return html`<${Head} title="Streams"><//>
    <div class="bar"><${Search} label="Streams that begin with …" value=${prefix} onValue=${search} /></div>
    <div class="columns">
      <section class="card" aria-label="Categories"><${Categories} prefix=${prefix} /></section>
      <section class="card" aria-label="Streams"><div class="card-head"><h2>Streams</h2></div><${StreamList} prefix=${prefix} /></section>
    </div>`;
}

/** @param {{ prefix: string }} props */
function Categories({ prefix }) {
  const { data, error, isLoading, reload } = useLoad(() => call('ns.categories'), []);
  const [shown, setShown] = useState(CATEGORIES);
  const all = /** @type {CategoryEntry[]} */ (data ?? []);
  // What is typed may already be longer than the name of its category.
  const found = all.filter(({ category }) => category.startsWith(prefix) || prefix.startsWith(`${category}-`));
  return html`<div class="card-head"><h2>Categories</h2><span class="muted">${data && count(all.length)}</span></div>
    <${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${found.length ? html`<table><thead><tr><th>Category</th>
      <th class="number">Streams</th><th class="number">Events</th></tr></thead>
      <tbody>${found.slice(0, shown).map(({ category, streamCount, messageCount }) => html`<tr key=${category}>
        <td><a data-row href=${linkTo('category', [category])}>${category || '(none)'}</a></td>
        <td class="number">${count(streamCount)}</td><td class="number">${count(messageCount)}</td></tr>`)}</tbody></table>
      ${found.length > shown && html`<button type="button" class="more" onClick=${() => setShown(shown + 10 * CATEGORIES)}>
        ${counted(found.length - shown, 'more category', 'more categories')}</button>`}`
      : html`<${Empty}>${all.length ? 'No category matches.' : 'There are no streams yet.'}<//>`}<//>`;
}

/** The streams that begin with `prefix`, a page at a time. @param {{ prefix: string }} props */
export function StreamList({ prefix }) {
  const [pages, setPages] = useState(/** @type {{ prefix: string, cursors: string[] }} */ ({ prefix, cursors: [''] }));
  const cursors = pages.prefix === prefix ? pages.cursors : [''];
  useEffect(() => { if (pages.prefix !== prefix) setPages({ prefix, cursors: [''] }); }, [prefix]);
  const cursor = cursors[cursors.length - 1];
  const { data, error, isLoading, reload } = useLoad(
    () => call('ns.streams', { prefix, limit: STREAMS + 1, cursor }), [prefix, cursor]);
  const found = /** @type {StreamEntry[]} */ (data ?? []);
  const shown = found.slice(0, STREAMS);
  const next = () => setPages({ prefix, cursors: [...cursors, shown[shown.length - 1].stream] });
  const back = () => setPages({ prefix, cursors: cursors.slice(0, -1) });
  return html`<${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${shown.length ? html`<table><thead><tr><th>Stream</th>
      <th class="number">Events</th><th class="wide">Last event</th></tr></thead>
      <tbody>${shown.map(({ stream, version, lastActivity }) => html`<tr key=${stream}>
        <td class="name"><a data-row href=${linkTo('stream', [stream])}>${stream}</a></td><td class="number">${count(version + 1)}</td>
        <td class="wide muted"><time datetime=${lastActivity} title=${localTime(lastActivity)}>${ago(lastActivity)}</time></td></tr>`)}</tbody></table>`
      : html`<${Empty}>${prefix ? 'No stream begins like this.' : 'There are no streams yet.'}<//>`}
      ${(cursors.length > 1 || found.length > STREAMS) && html`<nav class="pager" aria-label="Pages of streams">
        <button type="button" disabled=${cursors.length < 2} onClick=${back}>Back</button>
        <button type="button" disabled=${found.length <= STREAMS} onClick=${next}>Next</button></nav>`}<//>`;
}
