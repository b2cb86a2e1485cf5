// A value of JSON as a tree. What is in it may come from anybody, so it is only ever text. Parts are
// made when they are opened, so a large value costs little until somebody looks.

import { html, useState } from '../view.js';
import { digitsOf } from '../exact.js';

const [OPEN_DEPTH, CHILDREN, CHARACTERS] = [2, 100, 1000];

/** @param {{ value: any }} props */
export function Json({ value }) {
  return html`<div class="json"><${Part} value=${value} depth=${0} /></div>`;
}

/** @param {{ value: any, name?: string, depth: number }} props */
function Part({ value, name, depth }) {
  const isTree = value !== null && typeof value === 'object' && digitsOf(value) === undefined;
  return isTree ? html`<${Branch} value=${value} name=${name} depth=${depth} />`
    : html`<div class="json-line"><${Name} name=${name} /><${Leaf} value=${value} /></div>`;
}

/** @param {{ name?: string }} props */
function Name({ name }) {
  return name === undefined ? null : html`<span class="json-name">${name}</span><span class="json-mark">: </span>`;
}

/** @param {{ value: any }} props */
function Leaf({ value }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== 'string') {
    const kind = typeof value === 'object' && value ? 'number' : value === null ? 'null' : typeof value;
    return html`<span class=${`json-${kind}`}>${digitsOf(value) ?? String(value)}</span>`;
  }
  const shown = isWhole ? value : value.slice(0, CHARACTERS);
  return html`<span class="json-string">${JSON.stringify(shown)}</span>${shown !== value && html`<button type="button"
    class="quiet" onClick=${() => setWhole(true)}>all ${value.length} characters</button>`}`;
}

/** @param {{ value: any, name?: string, depth: number }} props */
function Branch({ value, name, depth }) {
  const names = Object.keys(value);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && names.length <= CHILDREN);
  const [shown, setShown] = useState(CHILDREN);
  const isList = Array.isArray(value);
  const [begin, end] = isList ? '[]' : '{}';
  if (!names.length) return html`<div class="json-line"><${Name} name=${name} /><span class="json-mark">${begin}${end}</span></div>`;
  const rest = names.length - shown;
  return html`<div class="json-branch">
    <button type="button" class="json-fold" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <${Name} name=${name} /><span class="json-mark">${begin}${isOpen ? '' : ` … ${end}`}</span>
      <span class="json-count">${names.length}</span></button>
    ${isOpen && html`<div class="json-children">${names.slice(0, shown).map((part) => html`<${Part} key=${part}
      value=${value[part]} name=${part} depth=${depth + 1} />`)}
      ${rest > 0 && html`<button type="button" class="quiet" onClick=${() => setShown(shown + 10 * CHILDREN)}>${rest} more</button>`}
    </div><div class="json-mark">${end}</div>`}
  </div>`;
}
