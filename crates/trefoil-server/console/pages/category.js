// A category: its events, newest first, and its streams.

import { html, useState } from '../view.js';
import { linkTo } from '../route.js';
import { Head, Snippets } from '../parts/basics.js';
import { EventBrowser, PAGE } from '../parts/events.js';
import { queryCommands } from '../commands.js';
import { StreamList } from './streams.js';

/** @param {{ names: string[] }} props */
export function Category({ names: [category = ''] }) {
  const [isStreams, showStreams] = useState(false);
  const query = { category };
  return html`<${Head} title=${category || '(no category)'} subtitle="Category">
      <a class="button" href=${linkTo('tail', [], { category })}>Follow</a>
      <a class="button" href=${linkTo('query', [], { q: JSON.stringify(query) })}>Query</a><//>
    <div class="tabs" role="group" aria-label="Show">
      <button type="button" class="tab" aria-pressed=${!isStreams} onClick=${() => showStreams(false)}>Events</button>
      <button type="button" class="tab" aria-pressed=${isStreams} onClick=${() => showStreams(true)}>Streams</button></div>
    ${isStreams ? html`<section class="card" aria-label="Streams"><${StreamList} prefix=${`${category}-`} /></section>`
      : html`<${EventBrowser} query=${query} /><${Snippets} snippets=${queryCommands(query, PAGE)} />`}`;
}
