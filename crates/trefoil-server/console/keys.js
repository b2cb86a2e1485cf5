// The keyboard: `g` and a letter goes to a page, `/` to the search, `j` and `k` through a list.

import { go, linkTo } from './route.js';
import { store } from './store.js';
import { PAGES } from './pages.js';

export const isHelpOpen = store(false);
const TOGETHER_MS = 1500;

/** What the letters do, for the help. @type {[string, string][]} */
export const KEYS = [
  ...PAGES.map(({ key, name }) => /** @type {[string, string]} */ ([`g ${key}`, name])),
  ['/', 'Search in the page'],
  ['j, k', 'Next or previous line of a list'],
  ['p', 'Pause or continue the live tail'],
  ['?', 'This help'],
];

let isGoing = 0;

/** @param {number} step */
function moveInList(step) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('[data-row]')]);
  const here = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  rows[Math.max(0, Math.min(rows.length - 1, here + step))]?.focus();
}

/** @param {string} key @returns {boolean} whether the key meant something */
function act(key) {
  const target = isGoing && PAGES.find((page) => page.key === key);
  clearTimeout(isGoing);
  isGoing = 0;
  if (target) go(linkTo(target.page));
  else if (key === 'g') isGoing = setTimeout(() => { isGoing = 0; }, TOGETHER_MS);
  else if (key === '/') /** @type {HTMLElement | null} */ (document.querySelector('[data-search]'))?.focus();
  else if (key === 'j' || key === 'k') moveInList(key === 'j' ? 1 : -1);
  else if (key === 'p') /** @type {HTMLElement | null} */ (document.querySelector('[data-pause]'))?.click();
  else if (key === '?') isHelpOpen.set(true);
  else return false;
  return true;
}

export function listenToKeys() {
  addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    const isTyping = target.closest?.('input, textarea, select, dialog');
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (act(event.key)) event.preventDefault();
  });
}
