// A line for state commands: words as redis-cli reads them, what was run before, and a question before anything is destroyed.

import { html, useState } from '../view.js';
import { call } from '../api.js';
import { preview } from '../format.js';
import { namespaceOf, session } from '../session.js';
import { Dialog, Snippets } from './basics.js';
import { shown } from './value.js';
import { curl, python, pythonOf, redisCli, script, scriptOf } from '../commands.js';

/** @typedef {import('./value.js').Bytes} Bytes */

const [SHOWN, REMEMBERED] = [20, 100];

/** Commands that remove whole keys, or much of one, and cannot be undone. */
const DESTROYS = /^(FLUSHALL|FLUSHDB|DEL|DELEX|UNLINK|GETDEL|RENAME|LTRIM|ZREMRANGEBY\w+|SEATS\.INIT)$/;
/** Those of them that remove everything in the namespace. */
const CLEARS = /^FLUSH/;
/** What stands for one character behind a backslash. */
const ESCAPES = /** @type {{ [letter: string]: string }} */ ({ n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' });

/** The lines that were run since the page was opened, the newest last. @type {string[]} */
const history = [];

/** The word between double quotes that begins at `from`, and where it ends. @param {string} line @param {number} from
 * @returns {{ word: Bytes, end: number }} */
function doubleQuoted(line, from) {
  /** @type {number[]} */
  const bytes = [];
  const encoder = new TextEncoder();
  for (let at = from; at < line.length; at++) {
    const character = String.fromCodePoint(/** @type {number} */ (line.codePointAt(at)));
    if (character === '"') return { word: wordOf(Uint8Array.from(bytes)), end: at + 1 };
    const byte = /^\\x([0-9a-fA-F]{2})/.exec(line.slice(at, at + 4));
    if (byte) {
      bytes.push(parseInt(byte[1], 16));
      at += 3;
    } else if (character === '\\' && at + 1 < line.length) {
      at += 1;
      bytes.push(...encoder.encode(ESCAPES[line[at]] ?? line[at]));
    } else {
      bytes.push(...encoder.encode(character));
      at += character.length - 1;
    }
  }
  throw new Error('A double quote is open.');
}

/** Bytes as text if they are, and otherwise as they are sent. @param {Uint8Array} bytes @returns {Bytes} */
function wordOf(bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { $base64: btoa(String.fromCharCode(...bytes)) };
  }
}

/** The word between single quotes, in which only a single quote needs a backslash. @param {string} line @param {number} from
 * @returns {{ word: Bytes, end: number }} */
function singleQuoted(line, from) {
  let word = '';
  for (let at = from; at < line.length; at++) {
    if (line[at] === "'") return { word, end: at + 1 };
    if (line.startsWith("\\'", at)) at += 1;
    word += line[at];
  }
  throw new Error('A single quote is open.');
}

/** Words as redis-cli reads them. An open quote is an error. @param {string} line @returns {Bytes[]} */
export function wordsOf(line) {
  const words = [];
  for (let at = 0; at < line.length;) {
    const plain = /^[^\s"']+/.exec(line.slice(at));
    if (/\s/.test(line[at])) {
      at += 1;
    } else if (plain) {
      words.push(plain[0]);
      at += plain[0].length;
      if (/["']/.test(line[at] ?? ' ')) throw new Error(`A quote begins in the middle of a word: ${plain[0]}${line[at]}`);
    } else {
      const { word, end } = line[at] === '"' ? doubleQuoted(line, at + 1) : singleQuoted(line, at + 1);
      if (/\S/.test(line[end] ?? ' ')) throw new Error('A space must follow a closing quote.');
      words.push(word);
      at = end;
    }
  }
  return words;
}

/** What must be typed before a command is run: the name of what it destroys; nothing if it destroys nothing.
 * @param {Bytes[]} words @param {string} namespace @returns {string | undefined} */
export function atStake(words, namespace) {
  const command = shown(words[0]).toUpperCase();
  if (!DESTROYS.test(command)) return undefined;
  return CLEARS.test(command) || words.length < 2 ? namespace : shown(words[1]);
}

export function CommandLine() {
  const [done, setDone] = useState(/** @type {{ line: string, words: Bytes[], reply: any, error: any }[]} */ ([]));
  const [line, setLine] = useState('');
  const [back, setBack] = useState(0);
  const [problem, setProblem] = useState('');
  const [asked, setAsked] = useState(/** @type {{ words: Bytes[], name: string } | null} */ (null));
  const run = async (/** @type {Bytes[]} */ words) => {
    setAsked(null);
    history.push(line);
    history.splice(0, history.length - REMEMBERED);
    setBack(0);
    setLine('');
    const settled = await call('commit', { state: [words] }).then(({ state }) => ({ reply: state[0], error: null }), (error) => ({ reply: undefined, error }));
    setDone((old) => [{ line, words, ...settled }, ...old].slice(0, SHOWN));
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    try {
      const words = wordsOf(line);
      setProblem('');
      if (!words.length) return;
      const name = atStake(words, namespaceOf(session.value.token ?? '') || 'default');
      if (name === undefined) run(words);
      else setAsked({ words, name });
    } catch (error) {
      setProblem(`Not sent. ${/** @type {Error} */ (error).message}`);
    }
  };
  const recall = (/** @type {any} */ event) => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[/** @type {string} */ (event.key)];
    if (!step) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(history.length, back + step));
    setBack(next);
    setLine(history[history.length - next] ?? '');
  };
  return html`<section class="card" aria-label="Command"><h2>Command</h2>
    <form class="inline" onSubmit=${submit}><input class="grow mono" aria-label="A state command" placeholder="HSET user:1 name Ada" value=${line} autocomplete="off"
      spellcheck=${false} onKeyDown=${recall} onInput=${(/** @type {any} */ event) => setLine(event.target.value)} /><button class="primary">Run</button></form>
    <p class="wrong" aria-live="polite">${problem}</p>
    <div aria-live="polite" class="column">${done.map(({ line, reply, error }) => html`<div><code class="muted">${line}</code>
      <pre class=${error || reply?.error ? 'wrong' : ''}>${error ? error.message : preview(reply, 4000)}</pre></div>`)}</div>
    ${asked && html`<${Question} ...${asked} onClose=${() => setAsked(null)} onRun=${() => run(asked.words)} />`}
  </section>${done.length > 0 && html`<${Snippets} snippets=${stateCommands(done[0].words)} />`}`;
}

/** Asks for the name of what would be destroyed. @param {{ words: Bytes[], name: string, onRun: () => void, onClose: () => void }} props */
function Question({ words, name, onRun, onClose }) {
  const [typed, setTyped] = useState('');
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    if (typed === name) onRun();
  };
  return html`<${Dialog} title=${`Run ${shown(words[0]).toUpperCase()}?`} onClose=${onClose}><form class="column" onSubmit=${submit}>
    <p>This cannot be undone: <code>${words.map(shown).join(' ')}</code></p>
    <label>Type <strong>${name}</strong> to go on<input class="mono" autocomplete="off" spellcheck=${false} value=${typed}
      onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label>
    <div><button class="danger" disabled=${typed !== name}>Run</button></div></form><//>`;
}

/** @param {Bytes[]} words @returns {import('../commands.js').Snippets} */
function stateCommands(words) {
  const parts = (/** @type {(value: any) => string} */ write) => words.map(write).join(', ');
  const texts = words.filter((word) => typeof word === 'string');
  return {
    ...(texts.length === words.length ? { 'redis-cli': redisCli(...texts) } : {}),
    curl: curl('commit', { state: [words] }),
    Python: python(`print(db.state(${parts(pythonOf)}))`),
    TypeScript: script(`console.log(await db.state(${parts(scriptOf)}));`),
  };
}
