// Namespaces: what is in them, new ones, new tokens, and the end of one.

import { html, useEffect, useState } from '../view.js';
import { call, useLoad } from '../api.js';
import { identities, isAdmin, namespaceOf, session, signIn } from '../session.js';
import { useStore } from '../store.js';
import { go, linkTo, route } from '../route.js';
import { count } from '../format.js';
import { Copy, Dialog, Empty, Facts, Failure, Head, Pager, Search, Time, Waiting } from '../parts/basics.js';

const SHOWN = 100;

/** @typedef {{ namespace: string, description: string, messageCount: number | null, createdAt: string }} NamespaceEntry */

export function Namespaces() {
  useStore(identities);
  return isAdmin() ? html`<${All} />` : html`<${Own} />`;
}

/** The namespace of a token that administers no others. */
function Own() {
  const name = namespaceOf(session.value.token ?? '');
  return html`<${Head} title="Namespace" subtitle="The token of the namespace default shows all namespaces." />
    ${name ? html`<section class="card" aria-label=${name}><${Info} name=${name} /></section>`
      : html`<p class="note">This token does not say which namespace it belongs to.</p>`}`;
}

/** @param {{ name: string }} props */
function Info({ name }) {
  const { data, error, isLoading } = useLoad(() => call('ns.info', name), []);
  return html`<${Failure} error=${error} /><${Waiting} isLoading=${isLoading && !data}>${data && html`<${Facts} facts=${[
    ['Name', data.namespace], ['Description', data.description || undefined], ['Events', count(data.messageCount)], ['Streams', count(data.streamCount)],
    ['Created', html`<${Time} time=${data.createdAt} />`], ['Last event', data.lastActivity ? html`<${Time} time=${data.lastActivity} />` : 'none'],
    ['Cache share', data.settings?.cacheShare], ['Opened at start', data.settings && (data.settings.warm ? 'yes' : 'no')],
    ['Refuses writes', data.refusesWrites ? html`<span class="wrong">${data.refusesWrites}</span>` : undefined]]} />`}<//>`;
}

function All() {
  const prefix = route.value.query.get('prefix') ?? '';
  const search = (/** @type {string} */ text) => go(linkTo('namespaces', [], { prefix: text }), { replace: true });
  const [cursors, setCursors] = useState(['']);
  const cursor = cursors[cursors.length - 1];
  useEffect(() => setCursors(['']), [prefix]);
  const { data, error, isLoading, reload } = useLoad(() => call('ns.list', { prefix, limit: SHOWN + 1, cursor }), [prefix, cursor]);
  const [act, setAct] = useState(/** @type {{ what: string, name: string } | null} */ (null));
  const [token, setToken] = useState(/** @type {{ name: string, token: string } | null} */ (null));
  const found = /** @type {NamespaceEntry[]} */ (data ?? []);
  const shown = found.slice(0, SHOWN);
  const onNext = found.length > SHOWN ? () => setCursors([...cursors, shown[SHOWN - 1].namespace]) : undefined;
  const onBack = cursors.length > 1 ? () => setCursors(cursors.slice(0, -1)) : undefined;
  const finish = (/** @type {{ name: string, token: string } | null} */ made) => {
    setAct(null);
    setToken(made);
    reload();
  };
  return html`<${Head} title="Namespaces"><button type="button" class="primary" onClick=${() => setAct({ what: 'create', name: '' })}>New namespace</button><//>
    <${Failure} error=${error} onRetry=${reload} />
    ${token && html`<div class="note good column" role="status"><span>The token of <strong>${token.name}</strong>. It is shown this once:</span>
      <code>${token.token}</code><div class="bar"><${Copy} text=${token.token} label="Copy the token" />
      <button type="button" onClick=${() => signIn(token.token)}>Open ${token.name} here</button>
      <button type="button" class="quiet" onClick=${() => setToken(null)}>Hide</button></div></div>`}
    <div class="bar"><${Search} label="Namespaces that begin with …" value=${prefix} onValue=${search} /></div>
    <section class="card" aria-label="Namespaces"><${Waiting} isLoading=${isLoading && !data}>
      <table><thead><tr><th>Namespace</th><th class="number">Events</th><th class="wide">Created</th><th><span class="hidden">Actions</span></th></tr></thead>
      <tbody>${shown.map(({ namespace, description, messageCount, createdAt }) => html`<tr key=${namespace}>
        <td><button type="button" class="as-link" data-row onClick=${() => setAct({ what: 'info', name: namespace })}>${namespace}</button>
          ${description && html` <span class="muted">${description}</span>`}</td><td class="number">${messageCount === null ? html`<span class="muted">not here</span>` : count(messageCount)}</td>
        <td class="wide muted"><${Time} time=${createdAt} /></td>
        <td class="number">${namespace !== 'default' && html`<button type="button" class="quiet" aria-label=${`New token for ${namespace}`} onClick=${() => setAct({ what: 'rotate', name: namespace })}>New token</button>
          <button type="button" class="quiet" aria-label=${`Delete ${namespace}`} onClick=${() => setAct({ what: 'delete', name: namespace })}>Delete</button>`}</td></tr>`)}</tbody></table>
      ${!shown.length && html`<${Empty}>No namespace begins like this.<//>`}
      <${Pager} name="namespaces" onBack=${onBack} onNext=${onNext} /><//></section>
    ${act?.what === 'create' && html`<${Dialog} title="New namespace" onClose=${() => setAct(null)}><${Create} onDone=${finish} /><//>`}
    ${act?.what === 'info' && html`<${Dialog} title=${act.name} onClose=${() => setAct(null)}><${Info} name=${act.name} /><//>`}
    ${act?.what === 'rotate' && html`<${Dialog} title=${`New token for ${act.name}`} onClose=${() => setAct(null)}><${Rotate} name=${act.name} onDone=${finish} /><//>`}
    ${act?.what === 'delete' && html`<${Dialog} title=${`Delete ${act.name}`} onClose=${() => setAct(null)}><${Delete} name=${act.name} onDone=${() => finish(null)} /><//>`}`;
}

/** A form that makes a call and says why it failed.
 * @param {{ run: (elements: any) => Promise<void>, button: any, children?: any }} props */
function Act({ run, button, children }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    run(event.target.elements).catch(setError);
  };
  return html`<form class="column" onSubmit=${submit}>${children}<${Failure} error=${error} /><div>${button}</div></form>`;
}

/** @param {{ onDone: (made: { name: string, token: string }) => void }} props */
function Create({ onDone }) {
  const run = async (/** @type {any} */ { id, description, warm }) => {
    const settings = warm.checked ? { settings: { warm: true } } : {};
    const made = await call('ns.create', id.value, { description: description.value, ...settings });
    onDone({ name: made.namespace, token: made.token });
  };
  return html`<${Act} run=${run} button=${html`<button class="primary">Create</button>`}>
    <label>Name<input name="id" required autocomplete="off" spellcheck=${false} pattern="[A-Za-z0-9][A-Za-z0-9_.\\-]*" title="Letters, digits, -, _ and ." /></label>
    <label>Description<input name="description" autocomplete="off" /></label>
    <label class="check"><input name="warm" type="checkbox" /> Open it when the server starts</label><//>`;
}

/** @param {{ name: string, onDone: (made: { name: string, token: string }) => void }} props */
function Rotate({ name, onDone }) {
  const run = async () => {
    const made = await call('ns.token', name);
    onDone({ name, token: made.token });
  };
  return html`<${Act} run=${run} button=${html`<button class="primary">Make a new token</button>`}>
    <p>The old token stops working at once.</p><//>`;
}

/** @param {{ name: string, onDone: () => void }} props */
function Delete({ name, onDone }) {
  const [typed, setTyped] = useState('');
  const run = async () => {
    await call('ns.delete', name);
    onDone();
  };
  return html`<${Act} run=${run} button=${html`<button class="danger" disabled=${typed !== name}>Delete for good</button>`}>
    <p>All events and all state of <strong>${name}</strong> are removed. There is no way back.</p>
    <label>Type its name to go on<input value=${typed} autocomplete="off" spellcheck=${false} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label><//>`;
}
