export type Json = string | number | boolean | null | Json[] | {
    [name: string]: Json;
};
export type QueryItem = {
    types?: string[];
    tags?: string[];
};
export type Query = {
    items?: QueryItem[];
    stream?: string;
    category?: string;
};
export type Word = string | number | {
    $base64: string;
};
export type NewEvent = {
    type: string;
    data: Json;
    stream?: string;
    metadata?: {
        [name: string]: Json;
    };
    tags?: string[];
    id?: string;
};
export type Condition = {
    stream: string;
    expectedVersion: number;
} | {
    query: Query;
    after?: number;
} | {
    key: string;
    field?: string;
    equals?: Word;
    differs?: Word;
    exists?: boolean;
};
export type Commit = {
    conditions?: Condition[];
    events?: NewEvent[];
    /**
     * state commands, such as ["HINCRBY", "stats", "sold", 1]
     */
    state?: Word[][];
    tracking?: {
        source: string;
        position: number;
    };
    strict?: boolean;
    /**
     * a UUID; if there is none, the client makes one
     */
    id?: string;
};
export type Committed = {
    commit: number;
    globalPosition: number;
    state: any[];
    events: {
        id: string;
        stream: string;
        position: number;
        globalPosition: number;
    }[];
};
export type StoredEvent = {
    id: string;
    stream: string;
    type: string;
    position: number;
    globalPosition: number;
    data: any;
    metadata: any;
    time: string;
    tags: string[];
};
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
export declare class TrefoilError extends Error {
    code: string;
    details: any;
    /** @param {string} code @param {string} message @param {any} [details] @param {unknown} [cause] */
    constructor(code: string, message: string, details?: any, cause?: unknown);
}
/** The request is wrong. To send it again does not help. */
export declare class InvalidRequest extends TrefoilError {
}
/** The token is missing, wrong, or not sufficient. */
export declare class Unauthorized extends TrefoilError {
}
/** A condition does not hold. Nothing was written. Read again, decide again. */
export declare class Conflict extends TrefoilError {
}
/** A state command failed. Nothing was written. */
export declare class CommandFailed extends TrefoilError {
}
/**
 * The server cannot be reached, is overloaded, has no space, or another node has the namespace; or the namespace has
 * used up a quota. Nothing was written. The code is `ADDRESS` or `TLS` if there is no such host, or no secure connection
 * to it: to try again does not help.
 */
export declare class Unavailable extends TrefoilError {
}
/** It is not known whether the request was carried out. Commit again with the same id. */
export declare class OutcomeUnknown extends TrefoilError {
}
/** A namespace of a Trefoil server. */
export declare class Trefoil {
    #private;
    url: string;
    parse: (text: string) => any;
    stringify: (value: any) => string;
    retryMs: number;
    silenceMs: number;
    /** @type {{ [name: string]: string }} */
    headers: {
        [name: string]: string;
    };
    /**
     * `url` is by default the server that the page came from. `retryMs` is how long a request that may
     * be repeated is repeated. A subscription that is silent for `silenceMs` is opened again. `parse`
     * reads JSON and `stringify` writes it, by default as JavaScript does.
     * @param {{ url?: string, token?: string, retryMs?: number, silenceMs?: number,
     *   parse?: (text: string) => any, stringify?: (value: any) => string }} [options]
     */
    constructor({ url, token, retryMs, silenceMs, parse, stringify }?: {
        url?: string;
        token?: string;
        retryMs?: number;
        silenceMs?: number;
        parse?: (text: string) => any;
        stringify?: (value: any) => string;
    });
    /**
     * Calls a method of the HTTP API once and returns its result. If no answer arrives, that is `OutcomeUnknown`, unless
     * nothing was sent: then it is `Unavailable`.
     * @param {string} method @param {...any} args @returns {Promise<any>} */
    call(method: string, ...args: any[]): Promise<any>;
    /**
     * Checks the conditions, appends the events and runs the state commands, all or nothing. When it
     * returns, everything is on disk. It is sent again if the connection breaks.
     * @param {Commit} commit @returns {Promise<Committed>}
     */
    commit(commit: Commit): Promise<Committed>;
    /**
     * Reads the events that match, lets `decide` make a commit of them, and commits it on condition
     * that nothing new matches. After a conflict it starts again. `decide` returns null to do nothing.
     * @param {Query} query
     * @param {(events: StoredEvent[]) => Commit | null | Promise<Commit | null>} decide
     * @param {{ attempts?: number }} [options]
     * @returns {Promise<Committed | null>}
     */
    decide(query: Query, decide: (events: StoredEvent[]) => Commit | null | Promise<Commit | null>, { attempts }?: {
        attempts?: number;
    }): Promise<Committed | null>;
    /**
     * Returns all events that match and the head of the log, up to which that is so.
     * @param {Query} query @param {{ after?: number }} [options]
     * @returns {Promise<{ events: StoredEvent[], head: number }>}
     */
    query(query: Query, { after }?: {
        after?: number;
    }): Promise<{
        events: StoredEvent[];
        head: number;
    }>;
    /**
     * Reads the events that match, a page at a time. `after` continues an earlier read.
     * @param {Query} query
     * @param {{ after?: number, direction?: 'forwards' | 'backwards', limit?: number }} [options]
     * @returns {AsyncGenerator<StoredEvent, void, void>}
     */
    read(query: Query, { after, direction, limit }?: {
        after?: number;
        direction?: 'forwards' | 'backwards';
        limit?: number;
    }): AsyncGenerator<StoredEvent, void, void>;
    /**
     * Follows the events that match, from `after` (0: from the first one) into the future. It connects
     * again by itself and continues where it was, without gaps or repetitions. It ends with `signal`.
     * @param {Query} query @param {{ after?: number, signal?: AbortSignal }} [options]
     * @returns {AsyncGenerator<StoredEvent, void, void>}
     */
    subscribe(query: Query, { after, signal }?: {
        after?: number;
        signal?: AbortSignal;
    }): AsyncGenerator<StoredEvent, void, void>;
    /**
     * Keeps a projection up to date: `apply` makes a commit (or null) of each event that matches. The
     * position is kept in the same commit, so each event takes effect once, whatever breaks, and also
     * if several processes run the same projection.
     * @param {string} name @param {Query} query
     * @param {(event: StoredEvent) => Commit | null | Promise<Commit | null>} apply
     * @param {{ signal?: AbortSignal }} [options]
     */
    project(name: string, query: Query, apply: (event: StoredEvent) => Commit | null | Promise<Commit | null>, { signal }?: {
        signal?: AbortSignal;
    }): Promise<void>;
    /** Runs one state command and returns its reply. @param {...Word} command @returns {Promise<any>} */
    state(...command: Word[]): Promise<any>;
}
