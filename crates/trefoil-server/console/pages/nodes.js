// The nodes of the cluster, as this one sees them, and which of them has a namespace.

import { html, useState } from '../view.js';
import { call, useLoad, useRepeated } from '../api.js';
import { useStore } from '../store.js';
import { identities, isAdmin } from '../session.js';
import { ago, count, localTime } from '../format.js';
import { Empty, Failure, Head, Search, Waiting } from '../parts/basics.js';

/** @typedef {{ id: string, address: string | null, version: string, started: string, state: string, namespaces: number, this: boolean }} ClusterNode */

const LIVE_MS = 2000;

export function Nodes() {
  useStore(identities);
  return html`<${Head} title="Nodes" subtitle="The servers that share this storage. Each namespace is on one of them, and any of them answers." />
    ${isAdmin() ? html`<${All} />` : html`<p class="note">Only the token of the namespace default shows the nodes.</p>`}`;
}

function All() {
  const [namespace, setNamespace] = useState('');
  const { data, error, isLoading, reload } = useLoad(() => call('sys.nodes', namespace ? { namespace } : {}), [namespace]);
  useRepeated(reload, LIVE_MS, [namespace]);
  const nodes = /** @type {ClusterNode[]} */ (data?.nodes ?? []);
  const owner = nodes.find(({ id }) => id === data?.owner);
  return html`<div class="bar"><${Search} label="Which node has the namespace …" value=${namespace} onValue=${setNamespace} /></div>
    <${Failure} error=${error} onRetry=${reload} />
    ${namespace && data && !error && html`<p class="note" role="status">${owner
      ? html`${namespace} is on <b>${owner.address ?? owner.id}</b>.`
      : html`Nobody has ${namespace} at present. It is opened when it is asked for.`}</p>`}
    <section class="card" aria-label="Nodes"><${Waiting} isLoading=${isLoading && !data}>${nodes.length ? html`<table>
      <thead><tr><th>Address</th><th>State</th><th class="number">Namespaces</th><th class="wide">Version</th><th class="wide">Since</th></tr></thead>
      <tbody>${nodes.map((node) => html`<tr key=${node.id} class=${node.id === data?.owner ? 'chosen' : ''}>
        <td class="name" title=${node.id}>${node.address ?? html`<span class="muted">cannot be reached by others</span>`}${node.this && html` <span class="badge">this one</span>`}</td>
        <td class=${node.state === 'alive' ? '' : 'bad'}>${node.state}</td><td class="number">${count(node.namespaces)}</td><td class="wide">${node.version}</td>
        <td class="wide muted"><time datetime=${node.started} title=${localTime(node.started)}>${ago(node.started)}</time></td></tr>`)}</tbody></table>`
      : html`<${Empty}>This server is alone: it is no node of a cluster.<//>`}<//></section>`;
}
