// Queries by type and tag: built here, explained, shown as code, and answered live.

import { html, useEffect, useState } from '../view.js';
import { call, useLoad } from '../api.js';
import { go, linkTo, route } from '../route.js';
import { count, counted } from '../format.js';
import { Copy, Failure, Head, Snippets } from '../parts/basics.js';
import { EventBrowser, PAGE } from '../parts/events.js';
import { QueryForm, parseQuery, tidied } from '../parts/query.js';
import { queryCommands } from '../commands.js';

/** @typedef {import('../trefoil.js').Query} Query */

export function QueryPage() {
  const text = route.value.query.get('q');
  const isLive = route.value.query.get('live') === 'yes';
  // What is being filled in may have parts that the address leaves out.
  const [draft, setDraft] = useState(/** @type {Query} */ (parseQuery(text) ?? {}));
  const query = tidied(draft);
  const canonical = JSON.stringify(query);
  useEffect(() => {
    if (canonical !== JSON.stringify(tidied(parseQuery(text) ?? {}))) setDraft(parseQuery(text) ?? {});
  }, [text]);
  const change = (/** @type {Query} */ next) => {
    setDraft(next);
    const tidy = JSON.stringify(tidied(next));
    if (tidy !== canonical) go(linkTo('query', [], { q: tidy, live: isLive ? 'yes' : '' }), { replace: true });
  };
  const turn = () => go(linkTo('query', [], { q: canonical, live: isLive ? '' : 'yes' }), { replace: true });
  return html`<${Head} title="Query">
      <label class="check"><input type="checkbox" checked=${isLive} onChange=${turn} /> Live</label>
      <a class="button" href=${linkTo('write', [], { condition: canonical })}>Use as a condition</a><//>
    <div class="columns even">
      <section class="card" aria-label="Query"><${QueryForm} query=${draft} onQuery=${change} />
        <div class="card-head"><h2>Query</h2><${Copy} text=${canonical} name="Copy the query" /></div><pre class="query-text">${canonical}</pre></section>
      <${Plan} query=${query} />
    </div>
    <${EventBrowser} key=${canonical} query=${query} isLive=${isLive} />
    <${Snippets} snippets=${queryCommands(query, PAGE)} />`;
}

const STRATEGIES = /** @type {{ [strategy: string]: string }} */ ({
  index: 'The index finds the events.',
  scan: 'Reading the whole range is cheaper than the index.',
  nothing: 'A name does not occur, so nothing has to be read.',
});
const ROLES = /** @type {{ [role: string]: string }} */ ({
  lead: 'finds the events', intersect: 'narrows them down in the index', verify: 'is checked on the events',
});

/** How the server finds the events, and what that costs. @param {{ query: Query }} props */
function Plan({ query }) {
  const { data: plan, error } = useLoad(() => call('events.query', { items: [], ...query }, { explain: true }), [JSON.stringify(query)]);
  return html`<section class="card" aria-label="Plan"><div class="card-head"><h2>Plan</h2>${plan && html`<span class="badge plain">${plan.strategy}</span>`}</div>
    <${Failure} error=${error} />
    ${plan && html`<p>${STRATEGIES[plan.strategy] ?? plan.strategy} It reads about <strong>${counted(plan.estimate, 'event')}</strong> of the
      range from ${count(plan.range[0])} to ${count(plan.range[1])}.</p>
      ${plan.items.map((/** @type {any} */ { terms }, /** @type {number} */ index) => html`<table><thead><tr><th>${plan.items.length > 1 ? `Alternative ${index + 1}` : 'Term'}</th>
        <th>Role</th><th class="number">Events</th></tr></thead><tbody>${terms.map((/** @type {any} */ term) => html`<tr>
          <td><span class="muted">${term.kind}</span> ${term.names.join(', ')}</td><td>${ROLES[term.role] ?? term.role}</td>
          <td class="number">${count(term.events)}</td></tr>`)}</tbody></table>`)}`}
  </section>`;
}
