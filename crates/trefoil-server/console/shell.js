// What is around every page: sign-in, the namespace, the navigation, and whether the server answers.

import { html, useEffect, useState } from './view.js';
import { useStore } from './store.js';
import { connection, identify } from './api.js';
import { facts, identities, namespaceOf, session, signIn, signOut } from './session.js';
import { linkTo, route } from './route.js';
import { KEYS, isHelpOpen } from './keys.js';
import { nextTheme, theme, themeName } from './theme.js';
import { PAGES } from './pages.js';
import { Dialog } from './parts/basics.js';
import { Overview } from './pages/overview.js';
import { Streams } from './pages/streams.js';
import { Category } from './pages/category.js';
import { Stream } from './pages/stream.js';
import { EventPage } from './pages/event.js';
import { Names } from './pages/names.js';
import { Tail } from './pages/tail.js';
import { QueryPage } from './pages/query.js';
import { StatePage } from './pages/state.js';
import { Seats } from './pages/seats.js';
import { Write } from './pages/write.js';
import { Namespaces } from './pages/namespaces.js';
import { CommitPage } from './pages/commit.js';
import { Consumers } from './pages/consumers.js';
import { Nodes } from './pages/nodes.js';
import { Settings } from './pages/settings.js';

/** @type {{ [page: string]: any }} */
const VIEWS = {
  '': Overview, overview: Overview, streams: Streams, category: Category, stream: Stream, event: EventPage,
  names: Names, tail: Tail, query: QueryPage, state: StatePage, seats: Seats, write: Write, namespaces: Namespaces,
  commit: CommitPage, consumers: Consumers, nodes: Nodes, settings: Settings,
};

export function Shell() {
  const { token, refusal } = useStore(session);
  const { isUp } = useStore(connection);
  const known = useStore(facts);
  useStore(theme);
  return html`
    ${!isUp && html`<div class="gone" role="alert"><span class="spinner" aria-hidden="true"></span>
      The server does not answer. This page continues as soon as it does.</div>`}
    ${token ? html`<${Frame} token=${token} />`
      : known ? html`<${SignIn} refusal=${refusal} />` : html`<main class="lonely"><p class="muted">Connecting …</p></main>`}`;
}

/** @param {{ token: string }} props */
function Frame({ token }) {
  const { page, names } = useStore(route);
  const isHelp = useStore(isHelpOpen);
  const View = VIEWS[page] ?? NotFound;
  const key = [token, page, ...names].join('/');
  useEffect(() => {
    const title = document.querySelector('main h1');
    document.title = [title?.textContent, namespaceOf(token), 'Trefoil'].filter(Boolean).join(' · ');
    // What is being typed into keeps the keyboard.
    if (!document.activeElement?.closest('input, textarea, select, dialog')) /** @type {HTMLElement | null} */ (title)?.focus({ preventScroll: true });
    scrollTo(0, 0);
    document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [key]);
  return html`<div class="frame">
    <${Side} page=${page} token=${token} />
    <main key=${key}><${View} names=${names} /></main>
    ${isHelp && html`<${Dialog} title="Keyboard" onClose=${() => isHelpOpen.set(false)}>
      <dl class="keys">${KEYS.map(([keys, meaning]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${meaning}</dd></div>`)}</dl><//>`}
  </div>`;
}

/** @param {{ page: string, token: string }} props */
function Side({ page, token }) {
  const known = useStore(facts);
  return html`<aside class="side">
    <div class="brand"><img src="console/icon.svg" alt="" width="22" height="22" /> <span>Trefoil</span>
      ${known?.token && html`<span class="badge" title="The token of this server is no secret">dev</span>`}</div>
    <${NamespaceChoice} token=${token} />
    <nav aria-label="Pages"><ul>${PAGES.map((entry) => {
      const isHere = entry.page === (page || 'overview') || entry.also?.includes(page);
      return html`<li><a href=${linkTo(entry.page)} aria-current=${isHere ? 'page' : undefined}>${entry.name}</a></li>`;
    })}</ul></nav>
    <div class="side-end">
      <button type="button" class="quiet" onClick=${nextTheme}>Theme: ${themeName()}</button>
      <button type="button" class="quiet" onClick=${() => isHelpOpen.set(true)}>Keyboard</button>
      <button type="button" class="quiet" onClick=${() => signOut()}>Sign out</button>
      <span class="muted version">${known && `version ${known.version}`}</span>
    </div>
  </aside>`;
}

const ANOTHER = 'another';

/** @param {{ token: string }} props */
function NamespaceChoice({ token }) {
  const { tokens } = useStore(session);
  useStore(identities);
  // A token that is refused is noticed elsewhere.
  useEffect(() => { identify(token).catch(() => {}); }, [token]);
  const [isAsking, setAsking] = useState(false);
  const choose = (/** @type {any} */ event) => {
    if (event.target.value !== ANOTHER) return signIn(tokens[Number(event.target.value)]);
    event.target.value = String(tokens.indexOf(token));
    setAsking(true);
  };
  return html`<select class="namespace" aria-label="Namespace" value=${String(tokens.indexOf(token))} onChange=${choose}>
    ${tokens.map((known, index) => html`<option value=${String(index)}>${namespaceOf(known) || 'chosen token'}</option>`)}
    <option value=${ANOTHER}>Another token …</option>
  </select>${isAsking && html`<${Dialog} title="Another namespace" onClose=${() => setAsking(false)}>
    <${TokenForm} onDone=${() => setAsking(false)} /><//>`}`;
}

/** @param {{ onDone?: () => void }} props */
function TokenForm({ onDone }) {
  const [problem, setProblem] = useState('');
  const [isTrying, setTrying] = useState(false);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    const token = event.target.elements.token.value.trim();
    if (!token) return setProblem('Enter a token.');
    setTrying(true);
    const problem = await whyRefused(token);
    setTrying(false);
    if (problem) return setProblem(problem);
    signIn(token);
    onDone?.();
  };
  return html`<form class="column" onSubmit=${submit}>
    <label>Token of the namespace <input name="token" type="password" autocomplete="off" spellcheck=${false} autofocus /></label>
    <div aria-live="polite">${problem && html`<p class="note bad">${problem}</p>`}</div>
    <div><button class="primary" disabled=${isTrying}>Sign in</button></div>
    <p class="muted">The token stays in this tab. It is sent in a header and forgotten when the tab is closed.</p>
  </form>`;
}

/** Why a token does not open anything; empty if it does. @param {string} token */
async function whyRefused(token) {
  try {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const response = await fetch('rpc', { method: 'POST', headers, body: '["events.head"]' });
    if (response.ok) return '';
    const { error } = await response.json();
    return error.details?.error ? `${error.message}: ${error.details.error}` : error.message;
  } catch {
    return 'The server does not answer.';
  }
}

/** @param {{ refusal: string }} props */
function SignIn({ refusal }) {
  return html`<main class="lonely"><div class="card sign-in">
    <div class="brand"><img src="console/icon.svg" alt="" width="28" height="28" /> <h1>Trefoil</h1></div>
    ${refusal && html`<p class="note bad" role="alert">You were signed out: ${refusal}</p>`}
    <${TokenForm} />
  </div></main>`;
}

function NotFound() {
  return html`<header class="head"><h1 tabindex="-1">No such page</h1></header><p><a href=${linkTo('overview')}>To the overview</a></p>`;
}
