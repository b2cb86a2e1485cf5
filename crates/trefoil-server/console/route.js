// Addresses of pages. They are in the part after `#`, which a browser never sends to a server.

import { store } from './store.js';

/** @typedef {{ page: string, names: string[], query: URLSearchParams }} Route */

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const [path, query] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [page, ...names] = path.split('/').map(decoded);
  return { page, names, query: new URLSearchParams(query ?? '') };
}

/**
 * Returns the address of a page: its name, the names of what it shows, and its settings. A setting
 * that is undefined or empty is left out.
 * @param {string} page @param {string[]} [names] @param {{ [name: string]: string | number | undefined }} [settings]
 */
export function linkTo(page, names = [], settings = {}) {
  const path = [page, ...names].map(encodeURIComponent).join('/');
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(settings)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path}${text && `?${text}`}`;
}

export const route = store(parseRoute(location.hash));
addEventListener('hashchange', () => route.set(parseRoute(location.hash)));

/** Goes to a page. A page that only notes its settings replaces its own address.
 * @param {string} link @param {{ replace?: boolean }} [options] */
export function go(link, { replace = false } = {}) {
  if (link === location.hash) return;
  if (!replace) {
    location.hash = link;
    return;
  }
  // A field that loses the keyboard because its page was left must not bring the page back.
  if (parseRoute(link).page !== parseRoute(location.hash).page) return;
  history.replaceState(null, '', link);
  route.set(parseRoute(link));
}
