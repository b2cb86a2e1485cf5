// A query as something to fill in: items of types and tags, and the stream or category.

import { html } from '../view.js';
import { NamesInput } from './names.js';
import { Search } from './basics.js';

/** @typedef {import('../trefoil.js').Query} Query */
/** @typedef {import('../trefoil.js').QueryItem} QueryItem */

/** Without what says nothing: empty lists, and items that match everything only if they are alone.
 * @param {Query} query @returns {Query} */
export function tidied({ items = [], stream, category }) {
  const clean = items.map(({ types = [], tags = [] }) => ({ ...(types.length && { types }), ...(tags.length && { tags }) }))
    .filter((item) => Object.keys(item).length);
  return { items: clean, ...(stream ? { stream } : category ? { category } : {}) };
}

/** A query that was written as text; nothing if it is none. @param {string | null} text @returns {Query | null} */
export function parseQuery(text) {
  try {
    const query = JSON.parse(text ?? '');
    return query && typeof query === 'object' && Array.isArray(query.items ?? []) ? query : null;
  } catch {
    return null;
  }
}

/** @param {{ query: Query, onQuery: (query: Query) => void }} props */
export function QueryForm({ query, onQuery }) {
  const items = query.items?.length ? query.items : [{}];
  const put = (/** @type {number} */ index, /** @type {QueryItem} */ item) =>
    onQuery({ ...query, items: items.map((other, at) => (at === index ? item : other)) });
  const scope = query.stream !== undefined ? 'stream' : query.category !== undefined ? 'category' : '';
  const rescope = (/** @type {string} */ kind, /** @type {string} */ name) => {
    const { items } = query;
    onQuery({ items, ...(kind === 'stream' ? { stream: name } : kind === 'category' ? { category: name } : {}) });
  };
  return html`<div class="query-form">
    ${items.map((item, index) => html`<fieldset class="item"><legend>${index ? 'or' : 'Events'}</legend>
      <div class="item-row"><span class="muted">of any type of</span><${NamesInput} label="Add a type" names=${item.types ?? []} kind="types"
        onNames=${(/** @type {string[]} */ types) => put(index, { ...item, types })} /></div>
      <div class="item-row"><span class="muted">with all tags of</span><${NamesInput} label="Add a tag" names=${item.tags ?? []} kind="tags"
        onNames=${(/** @type {string[]} */ tags) => put(index, { ...item, tags })} /></div>
      ${items.length > 1 && html`<button type="button" class="quiet" onClick=${() => onQuery({ ...query, items: items.filter((_, at) => at !== index) })}>Remove</button>`}
    </fieldset>`)}
    <div class="bar">
      <button type="button" onClick=${() => onQuery({ ...query, items: [...items, {}] })}>Add an alternative</button>
      <select aria-label="Where" value=${scope} onChange=${(/** @type {any} */ event) => rescope(event.target.value, query.stream ?? query.category ?? '')}>
        <option value="">in all streams</option><option value="category">in the category</option><option value="stream">in the stream</option></select>
      ${scope && html`<${Search} label=${scope === 'stream' ? 'Name of the stream' : 'Name of the category'} data-search=${undefined}
        value=${query.stream ?? query.category ?? ''} onValue=${(/** @type {string} */ name) => rescope(scope, name)} />`}
    </div>
  </div>`;
}
