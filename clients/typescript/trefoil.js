// A client for Trefoil over HTTP, for Node 20 and later and for browsers. It has no dependencies.
//
// Every commit has an id, so it is safe to send it again: the server recognises it and returns the
// first response. That is why this client may repeat a commit by itself when a connection breaks.

/**
 * @typedef {string | number | boolean | null | Json[] | { [name: string]: Json }} Json
 * @typedef {{ types?: string[], tags?: string[] }} QueryItem
 * @typedef {{ items?: QueryItem[], stream?: string, category?: string }} Query
 * @typedef {string | number | { $base64: string }} Word a word of a state command
 * @typedef {{ type: string, data: Json, stream?: string, metadata?: { [name: string]: Json },
 *   tags?: string[], id?: string }} NewEvent
 * @typedef {{ stream: string, expectedVersion: number }
 *   | { query: Query, after?: number }
 *   | { key: string, field?: string, equals?: Word, differs?: Word, exists?: boolean }} Condition
 */
/** @typedef {object} Commit
 * @property {Condition[]} [conditions]
 * @property {NewEvent[]} [events]
 * @property {Word[][]} [state] state commands, such as ["HINCRBY", "stats", "sold", 1]
 * @property {{ source: string, position: number }} [tracking]
 * @property {boolean} [strict]
 * @property {string} [id] a UUID; if there is none, the client makes one
 */
/** `state` has the replies of the state commands.
 * @typedef {{ commit: number, globalPosition: number, state: any[],
 *   events: { id: string, stream: string, position: number, globalPosition: number }[] }} Committed */
/** An event without a stream has the stream "" and the position -1.
 * @typedef {{ id: string, stream: string, type: string, position: number, globalPosition: number,
 *   data: any, metadata: any, time: string, tags: string[] }} StoredEvent */

/** What the server refused, or could not be asked. `code` is that of the HTTP API. */
export class TrefoilError extends Error {
  /** @param {string} code @param {string} message @param {any} [details] @param {unknown} [cause] */
  constructor(code, message, details = {}, cause = undefined) {
    super(message, { cause });
    this.name = new.target.name;
    this.code = code;
    this.details = details;
  }
}
/** The request is wrong. To send it again does not help. */
export class InvalidRequest extends TrefoilError {}
/** The token is missing, wrong, or not sufficient. */
export class Unauthorized extends TrefoilError {}
/** A condition does not hold. Nothing was written. Read again, decide again. */
export class Conflict extends TrefoilError {}
/** A state command failed. Nothing was written. */
export class CommandFailed extends TrefoilError {}
/**
 * The server cannot be reached, is overloaded, has no space, or another node has the namespace; or the namespace has
 * used up a quota. Nothing was written. The code is `ADDRESS` or `TLS` if there is no such host, or no secure connection
 * to it: to try again does not help.
 */
export class Unavailable extends TrefoilError {}
/** It is not known whether the request was carried out. Commit again with the same id. */
export class OutcomeUnknown extends TrefoilError {}
/** No answer of the server arrived, or only a part of it. A proxy may have answered instead. */
class Lost extends OutcomeUnknown {}

/** @type {{ [code: string]: typeof TrefoilError }} */
const ERRORS = {
  INVALID_REQUEST: InvalidRequest, METHOD_NOT_FOUND: InvalidRequest, NOT_FOUND: InvalidRequest,
  AUTH_REQUIRED: Unauthorized, AUTH_INVALID_TOKEN: Unauthorized, AUTH_UNAUTHORIZED: Unauthorized,
  STREAM_VERSION_CONFLICT: Conflict, CONDITION_FAILED: Conflict, GUARD_FAILED: Conflict,
  TRACKING_CONFLICT: Conflict, DUPLICATE_ID: Conflict, COMMAND_FAILED: CommandFailed,
  OVERLOADED: Unavailable, CLOSED: Unavailable, DISK_FULL: Unavailable, WRONG_NODE: Unavailable,
  QUOTA_EXCEEDED: Unavailable, OUTCOME_UNKNOWN: OutcomeUnknown, INTERNAL_ERROR: OutcomeUnknown,
};
/** The codes of what cannot be reached, however often one tries. */
const HOPELESS = ['ADDRESS', 'TLS'];
/** What Node calls connections that could not be made, so that nothing was sent. Browsers do not say why. */
const NOT_CONNECTED = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];
const NO_ADDRESS = ['ENOTFOUND', 'ERR_INVALID_URL'];
/** The same of TLS: errors of its own, and what is wrong with a certificate. */
const NOT_SECURE = /^ERR_(SSL|TLS)_|CERT|LEAF_SIGNATURE/;
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS, PAGE] = [20, 1000, 1000];

/** A random UUID; `crypto.randomUUID` is missing in pages that come over plain HTTP. */
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** @param {number} ms @param {AbortSignal} [signal] */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      resolve(signal?.removeEventListener('abort', finish));
    };
    const timer = setTimeout(finish, ms);
    signal?.addEventListener('abort', finish);
  });
}

/** The error of a request that got no answer. @param {any} error @param {string} url */
function lost(error, url) {
  const code = String(error?.cause?.code ?? error?.cause?.errors?.[0]?.code ?? '');
  /** @param {typeof TrefoilError} kind @param {string} told */
  const told = (kind, told) => new kind(told, `cannot reach ${url || 'the server'}: ${error?.cause?.message ?? error}`, {}, error);
  if (NO_ADDRESS.includes(code)) return told(Unavailable, 'ADDRESS');
  if (NOT_SECURE.test(code)) return told(Unavailable, 'TLS');
  return told(NOT_CONNECTED.includes(code) ? Unavailable : Lost, 'CONNECTION');
}

/** Throws an error if there can be no server at this address. @param {string} url */
function checkAddress(url) {
  const why = 'it does not begin with http:// or https:// and a host';
  if (!/^https?:\/\/[^/]/.test(url) || !URL.canParse(url)) {
    throw new Unavailable('ADDRESS', `${JSON.stringify(url)} is no address of a server: ${why}`);
  }
}

/** @param {unknown} error */
function unlessApplied(error) {
  if (!(error instanceof TrefoilError && error.code === 'TRACKING_CONFLICT')) throw error;
}

/** A namespace of a Trefoil server. */
export class Trefoil {
  /**
   * `url` is by default the server that the page came from. `retryMs` is how long a request that may
   * be repeated is repeated. A subscription that is silent for `silenceMs` is opened again. `parse`
   * reads JSON and `stringify` writes it, by default as JavaScript does.
   * @param {{ url?: string, token?: string, retryMs?: number, silenceMs?: number,
   *   parse?: (text: string) => any, stringify?: (value: any) => string }} [options]
   */
  constructor({ url = '', token = '', retryMs = 30_000, silenceMs = 45_000, parse = JSON.parse, stringify = JSON.stringify } = {}) {
    // A page may ask the server that it came from.
    if (url) checkAddress(url);
    this.url = url.replace(/\/$/, '');
    this.parse = (/** @type {string} */ text) => parse(text);
    this.stringify = (/** @type {any} */ value) => stringify(value);
    this.retryMs = retryMs;
    this.silenceMs = silenceMs;
    /** @type {{ [name: string]: string }} */
    this.headers = token ? { authorization: `Bearer ${token}` } : {};
  }

  /**
   * Calls a method of the HTTP API once and returns its result. If no answer arrives, that is `OutcomeUnknown`, unless
   * nothing was sent: then it is `Unavailable`.
   * @param {string} method @param {...any} args @returns {Promise<any>} */
  async call(method, ...args) {
    const headers = { ...this.headers, 'content-type': 'application/json' };
    const body = this.stringify([method, ...args]);
    const response = await this.#request('/rpc', { method: 'POST', headers, body });
    try {
      return this.parse(await response.text());
    } catch (cause) {
      throw new Lost('CONNECTION', `the response of ${method} is not complete`, {}, cause);
    }
  }

  /** @param {string} path @param {RequestInit} init */
  async #request(path, init) {
    let response;
    try {
      response = await fetch(this.url + path, init);
    } catch (error) {
      throw lost(error, this.url);
    }
    if (response.ok) return response;
    const text = await response.text().catch(() => '');
    const code = response.status === 400 ? 'INVALID_REQUEST' : `HTTP_${response.status}`;
    let error = { code, message: text, details: {} };
    try { error = { ...error, ...JSON.parse(text).error }; } catch { /* Subscriptions and proxies say it in plain text. */ }
    // Without a code of the server it is a proxy's answer, and says nothing of the request.
    const kind = ERRORS[error.code] ?? (response.status >= 500 ? Lost : TrefoilError);
    throw new kind(error.code, error.message, error.details);
  }

  /**
   * Repeats a commit with an id, or a read, until it is done, refused, or `retryMs` have passed. What the server says may
   * have happened is for the caller to decide about. Once an answer was lost, only an answer to the same commit tells what
   * became of it: an attempt that did not get that far does not.
   * @param {string} method @param {...any} args @returns {Promise<any>}
   */
  async #repeat(method, ...args) {
    const end = Date.now() + this.retryMs;
    for (let ms = FIRST_PAUSE_MS, isUnknown = false; ; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
      try {
        return await this.call(method, ...args);
      } catch (error) {
        const isRefused = error instanceof Unauthorized;
        if (!(isRefused || error instanceof Lost || error instanceof Unavailable)) throw error;
        isUnknown ||= error instanceof Lost;
        if (isRefused || HOPELESS.includes(error.code) || Date.now() + ms > end) {
          if (!isUnknown) throw error;
          const kind = method === 'commit' ? OutcomeUnknown : Unavailable;
          throw new kind(error.code, error.message, error.details, error);
        }
        await pause(ms * (0.5 + Math.random()));
      }
    }
  }

  /**
   * Checks the conditions, appends the events and runs the state commands, all or nothing. When it
   * returns, everything is on disk. It is sent again if the connection breaks.
   * @param {Commit} commit @returns {Promise<Committed>}
   */
  commit(commit) {
    return this.#repeat('commit', { id: uuid(), ...commit });
  }

  /**
   * Reads the events that match, lets `decide` make a commit of them, and commits it on condition
   * that nothing new matches. After a conflict it starts again. `decide` returns null to do nothing.
   * @param {Query} query
   * @param {(events: StoredEvent[]) => Commit | null | Promise<Commit | null>} decide
   * @param {{ attempts?: number }} [options]
   * @returns {Promise<Committed | null>}
   */
  async decide(query, decide, { attempts = 10 } = {}) {
    for (let attempt = 1; ; attempt++) {
      const { events, head } = await this.query(query);
      const decision = await decide(events);
      if (!decision) return null;
      const conditions = [...(decision.conditions ?? []), { query, after: head }];
      try {
        return await this.commit({ ...decision, conditions });
      } catch (error) {
        if (!(error instanceof Conflict) || error.code === 'DUPLICATE_ID' || attempt >= attempts) throw error;
      }
    }
  }

  /**
   * Returns all events that match and the head of the log, up to which that is so.
   * @param {Query} query @param {{ after?: number }} [options]
   * @returns {Promise<{ events: StoredEvent[], head: number }>}
   */
  query(query, { after = 0 } = {}) {
    return this.#repeat('events.query', { items: [], ...query }, { after, as: 'objects' });
  }

  /**
   * Reads the events that match, a page at a time. `after` continues an earlier read.
   * @param {Query} query
   * @param {{ after?: number, direction?: 'forwards' | 'backwards', limit?: number }} [options]
   * @returns {AsyncGenerator<StoredEvent, void, void>}
   */
  async *read(query, { after, direction = 'forwards', limit = Infinity } = {}) {
    for (let left = limit; left > 0; ) {
      const batchSize = Math.min(PAGE, left);
      const options = { direction, batchSize, as: 'objects', ...(after === undefined ? {} : { after }) };
      const page = await this.#repeat('events.query', { items: [], ...query }, options);
      for (const event of page.events) {
        yield event;
        after = event.globalPosition;
      }
      if (page.events.length < batchSize) return;
      left -= batchSize;
    }
  }

  /**
   * Follows the events that match, from `after` (0: from the first one) into the future. It connects
   * again by itself and continues where it was, without gaps or repetitions. It ends with `signal`.
   * @param {Query} query @param {{ after?: number, signal?: AbortSignal }} [options]
   * @returns {AsyncGenerator<StoredEvent, void, void>}
   */
  async *subscribe(query, { after = 0, signal } = {}) {
    const path = `/events?as=objects&query=${encodeURIComponent(JSON.stringify({ items: [], ...query }))}`;
    for (let ms = FIRST_PAUSE_MS; !signal?.aborted; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
      try {
        for await (const event of this.#follow(path, after, signal)) {
          yield event;
          after = event.globalPosition;
          ms = FIRST_PAUSE_MS;
        }
      } catch (error) {
        const isHopeful = error instanceof Unavailable && !HOPELESS.includes(error.code);
        if (!signal?.aborted && !isHopeful && !(error instanceof Lost)) throw error;
      }
      await pause(ms, signal);
    }
  }

  /** @param {string} path @param {number} after @param {AbortSignal} [signal] */
  async *#follow(path, after, signal) {
    const silence = new AbortController();
    const stop = () => silence.abort();
    signal?.addEventListener('abort', stop);
    let timer = setTimeout(stop, this.silenceMs);
    try {
      const headers = { ...this.headers, 'last-event-id': String(after) };
      const response = await this.#request(path, { headers, signal: silence.signal });
      const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
      const decoder = new TextDecoder();
      for (let text = ''; ; ) {
        const { done, value } = await reader.read().catch((cause) => {
          throw new Lost('CONNECTION', 'the subscription broke off', {}, cause);
        });
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(stop, this.silenceMs);
        const messages = (text + decoder.decode(value, { stream: true })).split('\n\n');
        text = messages.pop() ?? '';
        for (const message of messages) {
          const line = message.split('\n').find((line) => line.startsWith('data: '));
          if (line) yield this.parse(line.slice(6));
        }
      }
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
      stop();
    }
  }

  /**
   * Keeps a projection up to date: `apply` makes a commit (or null) of each event that matches. The
   * position is kept in the same commit, so each event takes effect once, whatever breaks, and also
   * if several processes run the same projection.
   * @param {string} name @param {Query} query
   * @param {(event: StoredEvent) => Commit | null | Promise<Commit | null>} apply
   * @param {{ signal?: AbortSignal }} [options]
   */
  async project(name, query, apply, { signal } = {}) {
    const after = (await this.#repeat('events.tracking', name)) ?? 0;
    for await (const event of this.subscribe(query, { after, signal })) {
      const commit = await apply(event);
      const tracking = { source: name, position: event.globalPosition };
      if (commit) await this.commit({ ...commit, tracking }).catch(unlessApplied);
    }
  }

  /** Runs one state command and returns its reply. @param {...Word} command @returns {Promise<any>} */
  async state(...command) {
    return (await this.commit({ state: [command] })).state[0];
  }
}
