// The client against a real server, which is killed meanwhile. TREFOIL_BINARY names it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import {
  CommandFailed, Conflict, InvalidRequest, OutcomeUnknown, Trefoil, TrefoilError, Unauthorized, Unavailable,
} from '../trefoil.js';
import { Server, TOKEN } from './server.js';

const [WRITERS, KILLS] = [3, 4];
let server, db;
before(async () => {
  server = await Server.start();
  db = new Trefoil({ url: server.url, token: TOKEN });
});
after(() => server.stop());

const tagged = (...tags) => ({ items: [{ tags }] });
const numbered = (tag, n, more = {}) => ({ type: 'Numbered', data: { n }, tags: [tag], ...more });
async function all(events) {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

test('a commit checks, appends and changes together', async () => {
  const tag = randomUUID();
  const [stream, key] = [`order-${tag}`, `key:${tag}`];
  const committed = await db.commit({
    conditions: [{ stream, expectedVersion: -1 }, { key, exists: false }],
    events: [numbered(tag, 1, { stream, metadata: { by: 'Ada' } })],
    state: [['SET', key, 'yes'], ['HSET', `h:${key}`, 'a', 1]],
  });
  assert.deepEqual(committed.state, ['OK', 1]);
  const { events: [event], head } = await db.query(tagged(tag));
  assert.deepEqual([event.stream, event.type, event.position], [stream, 'Numbered', 0]);
  assert.deepEqual([event.data, event.metadata, event.tags], [{ n: 1 }, { by: 'Ada' }, [tag]]);
  assert.equal(event.globalPosition, committed.globalPosition);
  assert(head >= event.globalPosition);
  assert.deepEqual(await db.state('HGETALL', `h:${key}`), { a: '1' });
  const again = db.commit({ conditions: [{ key, exists: false }], events: [numbered(tag, 2)] });
  const refused = await again.catch((error) => error);
  assert(refused instanceof Conflict);
  assert.deepEqual([refused.name, refused.code], ['Conflict', 'GUARD_FAILED']);
  assert.equal(refused.details.place, 'conditions[0]');
  assert.equal((await db.query(tagged(tag))).events.length, 1);
});

test('errors are types', async () => {
  const key = randomUUID();
  await assert.rejects(db.commit({ state: [['SET', key, 'x'], ['INCR', key]] }), CommandFailed);
  await assert.rejects(db.commit({ conditons: [] }), InvalidRequest);
  await assert.rejects(all(db.subscribe({ itmes: [] })), InvalidRequest);
  const stranger = new Trefoil({ url: server.url, token: 'ns_wrong' });
  await assert.rejects(stranger.state('GET', 'k'), Unauthorized);
  await assert.rejects(all(stranger.subscribe({})), Unauthorized);
  const nobody = new Trefoil({ url: await freeAddress(), retryMs: 100 });
  await assert.rejects(nobody.query({}), Unavailable);
  await assert.rejects(nobody.commit({ events: [numbered('x', 1)] }), Unavailable, 'nothing was sent');
  const refused = await db.call('ns.info', 'nobody').catch((error) => error);
  assert(refused instanceof TrefoilError);
  assert.equal(refused.code, 'NAMESPACE_NOT_FOUND');
});

/** What answers like this: each answer has a status, a body, and how many bytes of it are missing. Remembers the ids. */
async function answering(use) {
  const [answers, ids] = [[], []];
  const node = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes) => { body += bytes; }).on('end', () => {
      ids.push(JSON.parse(body)[1].id);
      const [status, text, missing = 0] = answers.shift();
      response.writeHead(status, { 'content-length': text.length + missing });
      response.write(text);
      if (missing) setImmediate(() => response.destroy());
      else response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(node, 'listening');
  try {
    await use(new Trefoil({ url: `http://127.0.0.1:${node.address().port}` }), answers, ids);
  } finally {
    node.closeAllConnections();
    node.close();
  }
}

async function freeAddress() {
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address();
  free.close();
  return `http://127.0.0.1:${port}`;
}

const refusal = (status, code) => [status, JSON.stringify({ error: { code, message: 'text' } })];
const DONE = [200, '{"commit":1}'];

test('what has done nothing is sent again', () => answering(async (cluster, answers, ids) => {
  answers.push(refusal(421, 'WRONG_NODE'), refusal(503, 'CLOSED'), DONE);
  assert.deepEqual(await cluster.commit({ events: [numbered('x', 1)] }), { commit: 1 });
  assert.equal(ids.length, 3);
  for (const code of ['OUTCOME_UNKNOWN', 'INTERNAL_ERROR']) {
    answers.push(refusal(500, code));
    await assert.rejects(cluster.commit({ events: [numbered('x', 1)] }), OutcomeUnknown);
  }
  assert.equal(ids.length, 5, 'it is for the caller to decide');
}));

test('what may have been done is sent again with its id only', () => answering(async (proxied, answers, ids) => {
  const lost = [[502, '<html>'], [503, 'busy'], [504, ''], [200, '{"commit"', 20], [200, '{"commit"']];
  answers.push(...lost, DONE);
  assert.deepEqual(await proxied.commit({ events: [numbered('x', 1)] }), { commit: 1 });
  assert.deepEqual([ids.length, new Set(ids).size], [lost.length + 1, 1]);
  for (const answer of lost) {
    answers.push(answer);
    await assert.rejects(proxied.call('commit', { events: [numbered('x', 1)] }), OutcomeUnknown);
  }
  assert.equal(ids.length, 2 * lost.length + 1);
  answers.push(lost[0], refusal(403, 'AUTH_INVALID_TOKEN'));
  const other = 'what comes afterwards and says that nothing was done speaks of another attempt';
  await assert.rejects(proxied.commit({ events: [numbered('x', 1)] }), OutcomeUnknown, other);
}));

test('what cannot be reached fails at once', async () => {
  const secure = server.url.replace('http:', 'https:');
  for (const [url, code] of [['http://nobody.invalid', 'ADDRESS'], [secure, 'TLS']]) {
    // Waiting for so long would be the test's end.
    const nobody = new Trefoil({ url, retryMs: 3_600_000 });
    const asked = [() => nobody.commit({ events: [numbered('x', 1)] }), () => nobody.query({}), () => all(nobody.subscribe({}))];
    for (const ask of asked) await assert.rejects(ask, (error) => error instanceof Unavailable && error.code === code);
  }
  for (const url of ['localhost:8080', 'ftp://localhost', 'http://', 'http://x y', 'http://a:99999']) {
    assert.throws(() => new Trefoil({ url }), (error) => error instanceof Unavailable && error.code === 'ADDRESS');
  }
});

test('an id makes a commit repeatable', async () => {
  const tag = randomUUID();
  const commit = { id: randomUUID(), events: [numbered(tag, 1)], state: [['INCR', tag]] };
  assert.deepEqual(await db.commit(commit), await db.commit(commit));
  assert.equal(await db.state('GET', tag), '1');
});

test('decisions made at the same time hold', async () => {
  const tag = randomUUID();
  const take = (events) => (events.length < 5 ? { events: [numbered(tag, events.length)] } : null);
  const takers = Array.from({ length: 8 }, () => db.decide(tagged(tag), take, { attempts: 100 }));
  assert.equal((await Promise.all(takers)).filter(Boolean).length, 5);
  const { events } = await db.query(tagged(tag));
  assert.deepEqual(events.map((event) => event.data.n), [0, 1, 2, 3, 4]);
});

test('reads go on where they stopped', async () => {
  const tag = randomUUID();
  for (const start of [0, 1500]) {
    await db.commit({ events: Array.from({ length: 1500 }, (_, n) => numbered(tag, start + n)) });
  }
  const events = await all(db.read(tagged(tag)));
  assert.deepEqual(events.map((event) => event.data.n), [...Array(3000).keys()]);
  const rest = await all(db.read(tagged(tag), { after: events[1999].globalPosition, limit: 2 }));
  assert.deepEqual(rest.map((event) => event.data.n), [2000, 2001]);
  const [last] = await all(db.read(tagged(tag), { direction: 'backwards', limit: 1 }));
  assert.equal(last.data.n, 2999);
});

test('whatever breaks, nothing is lost, and nothing happens twice', async () => {
  const mortal = await Server.start();
  const client = new Trefoil({ url: mortal.url, token: TOKEN });
  const written = Array(WRITERS).fill(0);
  const seen = [];
  const end = new AbortController();
  let isOver = false;
  const write = async (writer) => {
    for (; !isOver; written[writer]++) {
      const events = [{ type: 'N', data: [writer, written[writer]] }];
      await client.commit({ events, state: [['INCR', 'written']] });
    }
  };
  const watch = async () => {
    for await (const event of client.subscribe({}, { signal: end.signal })) seen.push(event.data);
  };
  const apply = (event) => ({ state: [['HINCRBY', 'projected', String(event.data[0]), 1]] });
  const project = () => client.project('counts', {}, apply, { signal: end.signal });
  const endless = [watch(), project(), project()];
  const writers = written.map((_, writer) => write(writer));
  for (let n = 0; n < KILLS; n++) {
    await sleep(400);
    await mortal.kill();
    await mortal.rise();
  }
  await sleep(400);
  isOver = true;
  await Promise.all(writers);
  const total = written.reduce((sum, n) => sum + n);
  const head = await client.call('events.head');
  for (let n = 0; n < 1200; n++) {
    if (seen.length >= total && (await client.call('events.tracking', 'counts')) === head) break;
    await sleep(50);
  }
  end.abort();
  await Promise.all(endless);
  const events = (await all(client.read({}))).map((event) => event.data);
  assert.deepEqual(seen, events);
  const expected = written.flatMap((n, writer) => [...Array(n).keys()].map((k) => [writer, k]));
  const order = ([w, n], [v, m]) => w - v || n - m;
  assert.deepEqual([...events].sort(order), expected);
  assert.equal(await client.state('GET', 'written'), String(total));
  for (const [writer, n] of written.entries()) {
    assert.equal(await client.state('HGET', 'projected', writer), String(n));
  }
  console.log(`${total} commits, ${KILLS} kills`);
  await mortal.stop();
});
