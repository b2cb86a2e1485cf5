// Calls of the server's public API, and whether it can be reached.

import { Unauthorized } from './trefoil.js';
import { client, identities, learnFacts, noteIdentity, session, signOut } from './session.js';
import { store, useStore } from './store.js';
import { useEffect, useState } from './view.js';

/** @typedef {import('./trefoil.js').StoredEvent} StoredEvent */
/** @typedef {import('./trefoil.js').Query} Query */

const [HEARTBEAT_MS, AGAIN_MS] = [5000, 1000];

/** `returns` counts how often the server came back: what is shown is then loaded again. */
export const connection = store({ isUp: true, returns: 0 });

export const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function isAlive() {
  try {
    return (await fetch('health', { cache: 'no-store' })).ok;
  } catch {
    return false;
  }
}

/** Notes that the server does not answer, and waits until it does. */
export async function lost() {
  if (!connection.value.isUp) return;
  const { returns } = connection.value;
  connection.set({ isUp: false, returns });
  while (!(await isAlive())) await pause(AGAIN_MS);
  await learnFacts().catch(() => {});
  connection.set({ isUp: true, returns: returns + 1 });
}

/** Looks from time to time whether the server is still there, while somebody looks at the page. */
export async function watchServer() {
  for (;;) {
    await pause(HEARTBEAT_MS);
    if (!document.hidden && connection.value.isUp && !(await isAlive())) await lost();
  }
}

/** Signs out if a refusal is the token's fault and not only that of one call.
 * @param {string | null} token @param {Error} refusal */
async function checkToken(token, refusal) {
  try {
    await client().call('events.head');
  } catch (error) {
    if (error instanceof Unauthorized && session.value.token === token) signOut(refusal.message);
  }
}

/** @param {any} error @param {string | null} token */
export function noteFailure(error, token) {
  if (error.code === 'CONNECTION') lost();
  if (error instanceof Unauthorized) checkToken(token, error);
}

/** Calls a method of `/rpc`. @param {string} method @param {...any} args @returns {Promise<any>} */
export async function call(method, ...args) {
  const { token } = session.value;
  try {
    return await client().call(method, ...args);
  } catch (error) {
    noteFailure(error, token);
    throw error;
  }
}

/** Runs commands that only read the state; nothing is written.
 * @param {import('./trefoil.js').Word[][]} commands @returns {Promise<any[]>} */
export async function look(...commands) {
  return (await call('commit', { state: commands, strict: false })).state;
}

/** One event, by its global position or its id. @param {number | string} address @returns {Promise<StoredEvent | null>} */
export function readEvent(address) {
  return call('events.get', address, { as: 'objects' });
}

/** One commit, by its number or by the position of one of its events.
 * @param {{ commit: number } | { globalPosition: number }} address @param {{ limit?: number, eventsFrom?: number, changesFrom?: number }} [options]
 * @returns {Promise<import('./parts/commit.js').StoredCommit | null>} */
export function readCommit(address, options) {
  return call('commit.get', address, { ...options, as: 'objects' });
}

/** Asks whose token this is: one that its owner chose does not say it. @param {string} token */
export async function identify(token) {
  if (identities.value.has(token)) return;
  const identity = await call('ns.current');
  if (session.value.token === token) noteIdentity(token, identity);
}

/**
 * Reads one page of the events that match.
 * @param {Query} query
 * @param {{ after?: number, from?: number, direction?: string, batchSize?: number }} options
 * @returns {Promise<{ events: StoredEvent[], head: number }>}
 */
export function readPage(query, options) {
  return call('events.query', { items: [], ...query }, { ...options, as: 'objects' });
}

/**
 * @template T
 * @typedef {{ data: T | undefined, error: any, isLoading: boolean, reload: () => void }} Loaded
 */

/**
 * Loads something when a part of the page appears, when one of `inputs` changes, when it is asked to
 * and when the server comes back. Until then it has what was loaded before.
 * @template T
 * @param {() => Promise<T>} load @param {any[]} inputs @returns {Loaded<T>}
 */
export function useLoad(load, inputs) {
  const { returns } = useStore(connection);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(
    /** @type {{ data: T | undefined, error: any, isLoading: boolean }} */ ({ data: undefined, error: null, isLoading: true }));
  useEffect(() => {
    let isWanted = true;
    setState((old) => ({ ...old, isLoading: true }));
    load().then(
      (data) => isWanted && setState({ data, error: null, isLoading: false }),
      (error) => isWanted && setState((old) => ({ data: old.data, error, isLoading: false })),
    );
    return () => { isWanted = false; };
  }, [...inputs, returns, turn]);
  return { ...state, reload: () => setTurn((old) => old + 1) };
}

/**
 * Repeats something while the page is looked at and the server answers.
 * @param {(isWanted: () => boolean) => Promise<void> | void} act @param {number} ms @param {any[]} inputs
 */
export function useRepeated(act, ms, inputs) {
  useEffect(() => {
    let isOn = true;
    const run = async () => {
      while (isOn) {
        if (!document.hidden && connection.value.isUp) {
          try { await act(() => isOn); } catch { /* The next turn may succeed; `call` has noted a loss. */ }
        }
        await pause(ms);
      }
    };
    run();
    return () => { isOn = false; };
  }, inputs);
}
