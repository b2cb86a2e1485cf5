// Small parts that all pages share.

import { html, useEffect, useRef, useState } from '../view.js';
import { linkTo } from '../route.js';
import { localTime } from '../format.js';

/** The head of a page: its title, what it says about itself, and what can be done.
 * @param {{ title: any, subtitle?: any, children?: any }} props */
export function Head({ title, subtitle, children }) {
  return html`<header class="head">
    <div class="head-text"><h1 tabindex="-1">${title}</h1>${subtitle && html`<p class="muted">${subtitle}</p>`}</div>
    <div class="actions">${children}</div>
  </header>`;
}

/** Why something could not be shown. A lost connection is said at the top of the page already.
 * @param {{ error: any, onRetry?: () => void }} props */
export function Failure({ error, onRetry }) {
  if (!error || error.code === 'CONNECTION') return null;
  return html`<div class="note bad" role="alert">
    <strong>${error.code ?? 'Error'}</strong> <span>${error.message}</span>
    ${onRetry && html`<button class="quiet" onClick=${onRetry}>Try again</button>`}
  </div>`;
}

/** @param {{ children?: any }} props */
export function Empty({ children }) {
  return html`<div class="empty">${children}</div>`;
}

/** @param {{ isLoading: boolean, children?: any }} props */
export function Waiting({ isLoading, children }) {
  return isLoading ? html`<div class="empty" aria-live="polite">Loading …</div>` : children;
}

/** @param {string} text */
async function copy(text) {
  // Pages over plain HTTP have no clipboard, so an element that is selected helps out.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** @param {{ text: string | (() => string), label?: string, name?: string }} props */
export function Copy({ text, label = 'Copy', name }) {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    const timer = isDone ? setTimeout(() => setDone(false), 1500) : 0;
    return () => clearTimeout(timer);
  }, [isDone]);
  const act = async () => {
    await copy(typeof text === 'function' ? text() : text);
    setDone(true);
  };
  return html`<button type="button" class="quiet copy" aria-label=${name ?? label} onClick=${act}>
    <span aria-live="polite">${isDone ? 'Copied' : label}</span></button>`;
}

/** @param {{ tag: string }} props */
export function Tag({ tag }) {
  const query = JSON.stringify({ items: [{ tags: [tag] }] });
  return html`<a class="tag" href=${linkTo('query', [], { q: query })}>${tag}</a>`;
}

/** @param {{ time: string }} props */
export function Time({ time }) {
  return html`<time datetime=${time} title=${time}>${localTime(time)}</time>`;
}

/** A list of facts with their names. @param {{ facts: [string, any][] }} props */
export function Facts({ facts }) {
  return html`<dl class="facts">${facts.filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** The same thing in several languages, to copy.
 * @param {{ snippets: import('../commands.js').Snippets, title?: string }} props */
export function Snippets({ snippets, title = 'As a command' }) {
  const names = Object.keys(snippets).filter((name) => snippets[name]);
  const [chosen, choose] = useState(names[0]);
  const shown = names.includes(chosen) ? chosen : names[0];
  return html`<section class="card snippets" aria-label=${title}>
    <div class="card-head"><h2>${title}</h2><${Copy} text=${snippets[shown]} name=${`Copy as ${shown}`} /></div>
    <div class="tabs" role="group" aria-label="Language">${names.map((name) => html`<button type="button" class="tab"
      aria-pressed=${name === shown} onClick=${() => choose(name)}>${name}</button>`)}</div>
    <pre tabindex="0" aria-label=${`${title}: ${shown}`}>${snippets[shown]}</pre>
  </section>`;
}

/** A link to what comes before or after, if there is something. @param {{ to?: string, label: string }} props */
export function Step({ to, label }) {
  return to === undefined ? html`<span class="button" aria-disabled="true">${label}</span>` : html`<a class="button" href=${to}>${label}</a>`;
}

/** The way through the pages of a list; nothing if there is one page.
 * @param {{ name: string, onBack?: () => void, onNext?: () => void }} props */
export function Pager({ name, onBack, onNext }) {
  if (!onBack && !onNext) return null;
  return html`<nav class="pager" aria-label=${`Pages of ${name}`}><button type="button" disabled=${!onBack} onClick=${onBack}>Back</button>
    <button type="button" disabled=${!onNext} onClick=${onNext}>Next</button></nav>`;
}

/** Something that only happens after a second thought.
 * @param {{ title: string, onClose: () => void, children?: any }} props */
export function Dialog({ title, onClose, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => element.current?.showModal(), []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose}>
    <div class="card-head"><h2>${title}</h2>
      <button type="button" class="quiet" aria-label="Close" onClick=${() => element.current?.close()}>✕</button></div>
    ${children}
  </dialog>`;
}

/** A field for one line that reports what is typed after a short silence.
 * @param {{ label: string, value: string, onValue: (value: string) => void, [attribute: string]: any }} props */
export function Search({ label, value, onValue, ...others }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    const timer = text === value ? 0 : setTimeout(() => onValue(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<input type="search" aria-label=${label} placeholder=${label} value=${text} data-search autocomplete="off"
    spellcheck=${false} onInput=${(/** @type {any} */ event) => setText(event.target.value)} ...${others} />`;
}
