// What the page shows, as commands for other programs. The token is never in them: they name the
// variable of the environment that has it.

import { stringifyExactly } from './exact.js';
import { facts } from './session.js';

/** @typedef {import('./trefoil.js').Query} Query */
/** @typedef {import('./trefoil.js').QueryItem} QueryItem */
/** @typedef {{ [language: string]: string }} Snippets */

/** One word for a shell. @param {string | number} word */
export function quoted(word) {
  const text = String(word);
  return /^[A-Za-z0-9_:.,/=@%+-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

const words = (/** @type {(string | number)[]} */ ...list) => list.map(quoted).join(' ');
const origin = () => new URL('.', document.baseURI).href.replace(/\/$/, '');

/** A call of `/rpc`. @param {string} method @param {...any} args */
export function curl(method, ...args) {
  const body = stringifyExactly([method, ...args]);
  return `curl -s ${quoted(`${origin()}/rpc`)} \\\n  -H "Authorization: Bearer $TREFOIL_TOKEN" \\\n  -d ${quoted(body)}`;
}

/** @param {(string | number)[]} command */
export function redisCli(...command) {
  const { respPort } = facts.value ?? {};
  if (!respPort) return '';
  const host = location.hostname.replace(/^\[|\]$/g, '');
  const place = ['127.0.0.1', 'localhost', '::1'].includes(host) ? '' : `-h ${quoted(host)} `;
  const token = facts.value?.token ? '' : '-a "$TREFOIL_TOKEN" ';
  return `redis-cli ${place}-p ${respPort} ${token}${words(...command)}`;
}

/** @param {(string | number)[]} command */
export function cli(...command) {
  const is = origin() === 'http://127.0.0.1:8080' ? '' : ` --url ${quoted(origin())}`;
  return `trefoil ${words(...command)}${is}`;
}

/** A value as Python writes it. @param {any} value @returns {string} */
export function pythonOf(value) {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`;
  const text = JSON.stringify(value);
  if (!text.startsWith('{')) return text;
  return `{${Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${pythonOf(part)}`).join(', ')}}`;
}

/** A value as JavaScript writes it: names without quotes where that is allowed. @param {any} value @returns {string} */
export function scriptOf(value) {
  if (Array.isArray(value)) return `[${value.map(scriptOf).join(', ')}]`;
  const text = JSON.stringify(value);
  if (!text.startsWith('{')) return text;
  const name = (/** @type {string} */ key) => (/^[A-Za-z_]\w*$/.test(key) && key !== '__proto__' ? key : `[${JSON.stringify(key)}]`);
  const parts = Object.entries(value).map(([key, part]) => `${name(key)}: ${scriptOf(part)}`);
  return parts.length ? `{ ${parts.join(', ')} }` : '{}';
}

export const PYTHON_BEGIN = `import os
from trefoil_client import Trefoil

db = Trefoil(URL, os.environ["TREFOIL_TOKEN"])
`;
export const SCRIPT_BEGIN = `import { Trefoil } from 'trefoil-client';

const db = new Trefoil({ url: URL, token: process.env.TREFOIL_TOKEN });
`;
export const python = (/** @type {string} */ code) => PYTHON_BEGIN.replace('URL', JSON.stringify(origin())) + code;
export const script = (/** @type {string} */ code) => SCRIPT_BEGIN.replace('URL', `'${origin()}'`) + code;

/** An item as a flag of the command line. @param {QueryItem} item */
function itemFlag({ types = [], tags = [] }) {
  const isPlain = [...types, ...tags].every((name) => !/[,={}]/.test(name));
  if (!isPlain) return JSON.stringify({ types, tags });
  return [...types.map((type) => `type=${type}`), ...tags.map((tag) => `tag=${tag}`)].join(',');
}

/** @param {QueryItem[]} items @returns {string[]} */
function cliItems(items) {
  const [first, ...others] = items;
  if (!first) return [];
  const flags = (/** @type {string} */ flag, /** @type {string[]} */ names = []) => names.flatMap((name) => [flag, name]);
  return [...flags('--type', first.types), ...flags('--tag', first.tags), ...others.flatMap((item) => ['--item', itemFlag(item)])];
}

/** @param {QueryItem[]} items @returns {string[]} */
function respItems(items) {
  return items.flatMap(({ types = [], tags = [] }, index) => [
    ...(index ? ['OR'] : []), ...types.flatMap((type) => ['TYPE', type]), ...tags.flatMap((tag) => ['TAG', tag])]);
}

/** The newest events that match, as commands. @param {Query} query @param {number} limit @returns {Snippets} */
export function queryCommands(query, limit) {
  const { items = [], stream, category } = query;
  const scope = stream ? ['--stream', stream] : category ? ['--category', category] : [];
  /** @type {(string | number)[]} */
  let resp = [];
  if (!stream && !category) resp = ['EVENT.QUERY', 'COUNT', limit, 'REV', ...respItems(items)];
  if (stream && !items.length) resp = ['EVENT.READ', stream, 'COUNT', limit, 'REV'];
  return {
    curl: curl('events.query', { items: [], ...query }, { direction: 'backwards', batchSize: limit }),
    CLI: cli('query', ...cliItems(items), ...scope, '--last', limit),
    ...(resp.length ? { 'redis-cli': redisCli(...resp) } : {}),
    Python: python(`events, head = db.query(${pythonOf(query)})`),
    TypeScript: script(`const { events, head } = await db.query(${scriptOf(query)});`),
  };
}

/** One event, as commands that read it. @param {import('./trefoil.js').StoredEvent} event @returns {Snippets} */
export function eventCommands({ stream, position, globalPosition }) {
  return {
    curl: curl('events.get', globalPosition),
    CLI: cli('query', '--from', globalPosition, '--limit', 1, '--json'),
    'redis-cli': stream ? redisCli('EVENT.READ', stream, 'FROM', position, 'COUNT', 1)
      : redisCli('EVENT.QUERY', 'FROM', globalPosition, 'COUNT', 1),
  };
}
