// How the server was started: every setting, and where its value came from.

import { html, useState } from '../view.js';
import { call, useLoad } from '../api.js';
import { useStore } from '../store.js';
import { identities, isAdmin } from '../session.js';
import { Failure, Head, Search, Waiting } from '../parts/basics.js';

/** @typedef {{ name: string, value: string | null, source: string, secret?: boolean }} Setting */

export function Settings() {
  useStore(identities);
  return html`<${Head} title="Settings" subtitle="How the server was started. A flag wins over the environment, that over the file, that over the default." />
    ${isAdmin() ? html`<${All} />` : html`<p class="note">Only the token of the namespace default shows the settings of the server.</p>`}`;
}

function All() {
  const { data, error, isLoading, reload } = useLoad(() => call('sys.settings'), []);
  const [text, setText] = useState('');
  const found = /** @type {Setting[]} */ (data ?? []).filter(({ name, value, source }) => [name, value, source].some((part) => part?.includes(text)));
  return html`<div class="bar"><${Search} label="Settings with …" value=${text} onValue=${setText} /></div>
    <${Failure} error=${error} onRetry=${reload} />
    <section class="card" aria-label="Settings"><${Waiting} isLoading=${isLoading && !data}><table>
      <thead><tr><th>Setting</th><th>Value</th><th>Source</th></tr></thead>
      <tbody>${found.map(({ name, value, source, secret }) => html`<tr key=${name}><td>${name}</td>
        <td>${value !== null ? html`<code>${value}</code>` : html`<span class="muted">${secret ? 'never shown' : 'not set'}</span>`}</td>
        <td class=${source === 'default' ? 'muted' : ''}>${source}</td></tr>`)}</tbody></table><//></section>`;
}
