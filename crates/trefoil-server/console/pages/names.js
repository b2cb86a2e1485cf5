// Types and tags: all that occur, with how many events have each.

import { html, useState } from '../view.js';
import { call, useLoad } from '../api.js';
import { go, linkTo, route } from '../route.js';
import { count } from '../format.js';
import { Empty, Failure, Head, Search, Waiting } from '../parts/basics.js';

const PAGE = 100;
const KINDS = { types: { title: 'Types', method: 'events.types' }, tags: { title: 'Tags', method: 'events.tags' } };

/** @typedef {{ name: string, events: number, globalPosition: number }} NameEntry */

export function Names() {
  const prefix = route.value.query.get('prefix') ?? '';
  const search = (/** @type {string} */ text) => go(linkTo('names', [], { prefix: text }), { replace: true });
  return html`<${Head} title="Types and tags" subtitle="What events are found by, and how many have it." />
    <div class="bar"><${Search} label="Names that begin with …" value=${prefix} onValue=${search} /></div>
    <div class="columns even">${Object.entries(KINDS).map(([kind, { title, method }]) => html`<section class="card" aria-label=${title}>
      <div class="card-head"><h2>${title}</h2></div><${NameList} key=${prefix} kind=${kind} method=${method} prefix=${prefix} /></section>`)}</div>`;
}

/** @param {{ kind: string, method: string, prefix: string }} props */
function NameList({ kind, method, prefix }) {
  const [cursors, setCursors] = useState(['']);
  const cursor = cursors[cursors.length - 1];
  const { data, error, isLoading, reload } = useLoad(() => call(method, { prefix, limit: PAGE + 1, cursor }), [cursor]);
  const found = /** @type {NameEntry[]} */ (data ?? []);
  const shown = found.slice(0, PAGE);
  const query = (/** @type {string} */ name) => linkTo('query', [], { q: JSON.stringify({ items: [{ [kind]: [name] }] }) });
  return html`<${Failure} error=${error} onRetry=${reload} />
    <${Waiting} isLoading=${isLoading && !data}>${shown.length ? html`<table><thead><tr><th>Name</th><th class="number">Events</th>
      <th class="number">Last event</th></tr></thead><tbody>${shown.map(({ name, events, globalPosition }) => html`<tr key=${name}>
        <td class="name"><a data-row href=${query(name)}>${name}</a></td><td class="number">${count(events)}</td>
        <td class="number"><a href=${linkTo('event', [String(globalPosition)])}>${count(globalPosition)}</a></td></tr>`)}</tbody></table>`
      : html`<${Empty}>${prefix ? 'None begins like this.' : 'There are none yet.'}<//>`}
      ${(cursors.length > 1 || found.length > PAGE) && html`<nav class="pager" aria-label=${`Pages of ${kind}`}>
        <button type="button" disabled=${cursors.length < 2} onClick=${() => setCursors(cursors.slice(0, -1))}>Back</button>
        <button type="button" disabled=${found.length <= PAGE} onClick=${() => setCursors([...cursors, shown[shown.length - 1].name])}>Next</button></nav>`}<//>`;
}
