// A stream: its version and its events, newest first.

import { html, useState } from '../view.js';
import { call, useLoad } from '../api.js';
import { go, linkTo } from '../route.js';
import { counted } from '../format.js';
import { Failure, Head, Snippets } from '../parts/basics.js';
import { EventBrowser, PAGE } from '../parts/events.js';
import { queryCommands } from '../commands.js';

/** @param {{ names: string[] }} props */
export function Stream({ names: [stream = ''] }) {
  const [head, setHead] = useState(0);
  const { data: version, error } = useLoad(() => call('stream.version', stream), [head]);
  const query = { stream };
  const category = stream.split('-')[0];
  return html`<${Head} title=${stream} subtitle=${html`Stream of <a href=${linkTo('category', [category])}>${category}</a>
      ${version !== undefined && ` · ${version === null ? 'does not exist' : counted(version + 1, 'event')}`}`}>
      <${Jump} stream=${stream} />
      <a class="button" href=${linkTo('tail', [], { stream })}>Follow</a>
      <a class="button" href=${linkTo('write', [], { stream })}>Write</a><//>
    <${Failure} error=${error} />
    <${EventBrowser} query=${query} hideStream onLoaded=${setHead} />
    <${Snippets} snippets=${queryCommands(query, PAGE)} />`;
}

/** Goes to an event by its position in the stream. @param {{ stream: string }} props */
function Jump({ stream }) {
  const [problem, setProblem] = useState('');
  const jump = async (/** @type {any} */ event) => {
    event.preventDefault();
    const position = Number(event.target.elements.position.value);
    const [found] = await call('stream.get', stream, { position, batchSize: 1, as: 'objects' });
    if (found) go(linkTo('event', [String(found.globalPosition)]));
    else setProblem('No such event');
  };
  return html`<form class="inline" onSubmit=${jump}><input name="position" type="number" min="0" required
    aria-label="Position in the stream" placeholder="Position" onInput=${() => setProblem('')} />
    <button>Go</button><span class="muted" aria-live="polite">${problem}</span></form>`;
}
