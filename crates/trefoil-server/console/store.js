// Values that the page is drawn from and that more than one part of it knows.

import { useEffect, useState } from './view.js';

/**
 * @template T
 * @typedef {{ readonly value: T, set: (next: T) => void, watch: (watcher: () => void) => () => void }} Store
 */

/**
 * Returns a value that can be watched.
 * @template T
 * @param {T} value
 * @returns {Store<T>}
 */
export function store(value) {
  /** @type {Set<() => void>} */
  const watchers = new Set();
  return {
    get value() { return value; },
    set(next) {
      value = next;
      for (const watcher of [...watchers]) watcher();
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => { watchers.delete(watcher); };
    },
  };
}

/**
 * Returns the value now, and draws again when it changes.
 * @template T
 * @param {Store<T>} watched
 * @returns {T}
 */
export function useStore(watched) {
  const [, draw] = useState(/** @type {unknown} */ (null));
  const seen = watched.value;
  useEffect(() => {
    // It may have changed since it was drawn.
    if (watched.value !== seen) draw({});
    return watched.watch(() => draw({}));
  }, [watched]);
  return watched.value;
}
