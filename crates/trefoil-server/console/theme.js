// Light or dark: as the system says, or as was chosen here.

import { store } from './store.js';

const PLACE = 'trefoil.theme';
const CHOICES = ['', 'light', 'dark'];
/** @type {{ [theme: string]: string }} */
const NAMES = { '': 'System', light: 'Light', dark: 'Dark' };

export const theme = store(localStorage.getItem(PLACE) ?? '');

export function applyTheme() {
  document.documentElement.style.colorScheme = theme.value;
}

export function themeName() {
  return NAMES[theme.value] ?? NAMES[''];
}

export function nextTheme() {
  const next = CHOICES[(CHOICES.indexOf(theme.value) + 1) % CHOICES.length];
  localStorage.setItem(PLACE, next);
  // Charts ask for the colours of the page when they hear of it.
  document.documentElement.style.colorScheme = next;
  theme.set(next);
}
