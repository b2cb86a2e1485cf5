// Who is signed in: the tokens of this tab. They are kept in the tab's own storage, which ends with
// it, and are sent in a header only, never in an address or a cookie.

import { Trefoil } from './trefoil.js';
import { store } from './store.js';
import { parseExactly, stringifyExactly } from './exact.js';

/** @typedef {{ version: string, token: string | null, respPort: number | null }} ServerFacts */
/** @typedef {{ tokens: string[], token: string | null, refusal: string }} Session */

const [PLACE, IDENTITIES] = ['trefoil.session', 'trefoil.identities'];

/** @returns {Session} */
function kept() {
  try {
    const { tokens, token } = JSON.parse(sessionStorage.getItem(PLACE) ?? '');
    return { tokens, token, refusal: '' };
  } catch {
    return { tokens: [], token: null, refusal: '' };
  }
}

export const session = store(kept());
/** @type {import('./store.js').Store<ServerFacts | null>} */
export const facts = store(/** @type {ServerFacts | null} */ (null));

/** @param {Session} next */
function change(next) {
  sessionStorage.setItem(PLACE, JSON.stringify({ tokens: next.tokens, token: next.token }));
  session.set(next);
}

/** Uses this token from now on. @param {string} token */
export function signIn(token) {
  const { tokens } = session.value;
  change({ tokens: [...tokens.filter((known) => known !== token), token], token, refusal: '' });
}

/** Forgets the current token. @param {string} [refusal] why */
export function signOut(refusal = '') {
  const { tokens, token } = session.value;
  change({ tokens: tokens.filter((known) => known !== token), token: null, refusal });
  sessionStorage.removeItem(IDENTITIES);
}

/** Asks the server what it is. A server for development says its token, which is no secret. */
export async function learnFacts() {
  const response = await fetch('console.json', { cache: 'no-store' });
  if (!response.ok) throw new Error(`console.json: ${response.status}`);
  const found = /** @type {ServerFacts} */ (await response.json());
  facts.set(found);
  if (found.token && !session.value.token && !session.value.refusal) signIn(found.token);
}

/** @typedef {{ namespace: string, admin: boolean }} Identity */

/** Whose token each is, as the server said.
 * @type {import('./store.js').Store<Map<string, Identity>>} */
export const identities = store(new Map(JSON.parse(sessionStorage.getItem(IDENTITIES) ?? '[]')));

/** Notes whose token this is. @param {string} token @param {Identity} identity */
export function noteIdentity(token, identity) {
  const known = [...identities.value, [token, identity]].filter(([of]) => session.value.tokens.includes(/** @type {string} */ (of)));
  sessionStorage.setItem(IDENTITIES, JSON.stringify(known));
  identities.set(new Map(/** @type {[string, Identity][]} */ (known)));
}

/** The namespace of a token, as far as it is known. @param {string} token */
export function namespaceOf(token) {
  return identities.value.get(token)?.namespace ?? namespaceIn(token);
}

/** The namespace that a token names. One that its owner chose does not. @param {string} token */
function namespaceIn(token) {
  const [, encoded] = /^ns_(.+)_[0-9a-f]{64}$/i.exec(token) ?? [];
  if (!encoded) return '';
  try {
    const bytes = atob(encoded.replace(/-/g, '+').replace(/_/g, '/'));
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)));
  } catch {
    return '';
  }
}

/** Whether the token may administer all namespaces. */
export function isAdmin() {
  const token = session.value.token ?? '';
  return identities.value.get(token)?.admin ?? namespaceIn(token) === 'default';
}

/** @type {{ token: string | null, client: Trefoil } | null} */
let current = null;

/** A client with the current token. */
export function client() {
  const { token } = session.value;
  if (current?.token !== token) {
    const url = new URL('.', document.baseURI).href;
    current = { token, client: new Trefoil({ url, token: token ?? '', parse: parseExactly, stringify: stringifyExactly }) };
  }
  return /** @type {{ client: Trefoil }} */ (current).client;
}
