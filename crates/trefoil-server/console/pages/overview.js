// How the server is doing: charts of the last minutes, and what needs attention, in words.

import { html, useMemo, useState } from '../view.js';
import { call, lost, useLoad, useRepeated } from '../api.js';
import { isAdmin } from '../session.js';
import { linkTo } from '../route.js';
import { count, counted, duration, short, size } from '../format.js';
import { mean, parseMetrics, percentile, rate, total } from '../metrics.js';
import { Head } from '../parts/basics.js';
import { Chart } from '../parts/chart.js';

/** @typedef {import('../metrics.js').Reading} Reading */
/** @typedef {{ [name: string]: string }} Labels */

const [EVERY_MS, KEPT, WINDOW, DISK_BYTES, LATE_MS] = [2000, 151, 5, 2 ** 30, 10_000];
const STAGES = ['queue', 'staging', 'write', 'sync', 'index', 'publishing', 'answer'];
const WRITES = new Set(['commit', 'stream.write', 'seats.init', 'seats.reserve', 'seats.finalize', 'seats.release']);
const READS = new Set(['stream.get', 'stream.last', 'stream.version', 'category.get', 'events.query', 'events.head', 'seats.map', 'seats.stats', 'seats.booking']);

const isWrite = (/** @type {Labels} */ { endpoint, method }) => endpoint === '/dcb/append' || WRITES.has(method);
const isRead = (/** @type {Labels} */ { endpoint, method }) => endpoint === '/dcb/read' || endpoint === '/export' || READS.has(method);
const isFault = (/** @type {Labels} */ { status }) => Number(status) >= 500;

/** Readings are kept while the console is open, so that a chart is not empty after a look elsewhere.
 * @type {Reading[]} */
const readings = [];

async function takeReading() {
  let response;
  try {
    response = await fetch('metrics', { cache: 'no-store' });
  } catch {
    return lost();
  }
  readings.push(parseMetrics(await response.text(), Date.now()));
  if (readings.length > KEPT) readings.shift();
}

/** Points of a chart: each reading compared with the one before. @param {(before: Reading, now: Reading, early: Reading) => (number | null)[]} make */
function points(make) {
  return readings.slice(1).map((now, index) => {
    const before = readings[index];
    const early = readings[Math.max(0, index + 1 - WINDOW)];
    // What lies between two readings that are far apart is not known.
    const isGap = now.time - before.time > 4 * EVERY_MS;
    const values = make(before, now, isGap ? before : early);
    return [now.time / 1000, ...values.map((value) => (isGap ? null : value))];
  });
}

const perSecond = (/** @type {number} */ value) => `${short(value)}/s`;

/** @type {{ title: string, series: string[], format: (value: number) => string, make: (before: Reading, now: Reading, early: Reading) => (number | null)[] }[]} */
const CHARTS = [
  { title: 'Writes', series: ['commits', 'events'], format: perSecond,
    make: (before, now) => [rate(before, now, 'trefoil_commits_total'), rate(before, now, 'trefoil_events_written_total')] },
  { title: 'Requests', series: ['HTTP reads', 'HTTP writes', 'RESP', 'gRPC'], format: perSecond,
    make: (before, now) => [rate(before, now, 'trefoil_http_requests_total', isRead), rate(before, now, 'trefoil_http_requests_total', isWrite),
      rate(before, now, 'trefoil_resp_commands_total'), rate(before, now, 'trefoil_grpc_calls_total')] },
  { title: 'Time of a write over HTTP', series: ['p50', 'p99'], format: duration,
    make: (_, now, early) => [0.5, 0.99].map((share) => percentile(early, now, 'trefoil_http_request_seconds', share, isWrite)) },
  { title: 'Time of a read over HTTP', series: ['p50', 'p99'], format: duration,
    make: (_, now, early) => [0.5, 0.99].map((share) => percentile(early, now, 'trefoil_http_request_seconds', share, isRead)) },
  { title: 'Commits per group', series: ['mean'], format: short, make: (_, now, early) => [mean(early, now, 'trefoil_group_commits')] },
  { title: 'Time of a group', series: STAGES, format: duration,
    make: (_, now, early) => STAGES.map((stage) => mean(early, now, `trefoil_group_${stage}_seconds`)) },
  { title: 'Connections and subscriptions', series: ['HTTP', 'RESP', 'gRPC', 'subscriptions'], format: short,
    make: (_, now) => ['trefoil_http_connections', 'trefoil_resp_connections', 'trefoil_grpc_connections', 'trefoil_subscribers'].map((name) => total(now, name)) },
  { title: 'Memory', series: ['process', 'for clients'], format: size,
    make: (_, now) => ['trefoil_memory_bytes', 'trefoil_client_memory_bytes'].map((name) => total(now, name)) },
  { title: 'Network', series: ['received', 'sent'], format: (bytes) => `${size(bytes)}/s`,
    make: (before, now) => ['received', 'sent'].map((way) => ['http', 'resp', 'grpc'].reduce((sum, protocol) =>
      sum + rate(before, now, `trefoil_${protocol}_${way}_bytes_total`), 0)) },
];

export function Overview() {
  const [, draw] = useState(0);
  useRepeated(async () => {
    await takeReading();
    draw(Date.now());
  }, EVERY_MS, []);
  const now = readings.at(-1);
  return html`<${Head} title="Overview" subtitle="The whole server, as its metrics show it, every two seconds." />
    <${Attention} />
    <${Numbers} now=${now} />
    <div class="charts">${CHARTS.map(({ title, series, format, make }) => html`<${Chart} key=${title} title=${title} series=${series}
      format=${format} points=${points(make)} />`)}</div>`;
}

/** @param {{ now?: Reading }} props */
function Numbers({ now }) {
  const { data: head } = useLoad(() => call('events.head'), [now && Math.floor(now.time / 10_000)]);
  const facts = [
    ['Last event here', head === undefined ? '–' : count(head)],
    ['Namespaces', now ? html`${count(total(now, 'trefoil_namespaces'))} <small class="muted">${count(total(now, 'trefoil_namespaces_open'))} open</small>` : '–'],
    ['Subscriptions', now ? count(total(now, 'trefoil_subscribers')) : '–'],
    ['Memory', now ? size(total(now, 'trefoil_memory_bytes')) : '–'],
    ['Free disk', now && total(now, 'trefoil_disk_free_bytes') ? size(total(now, 'trefoil_disk_free_bytes')) : '–'],
  ];
  return html`<dl class="numbers">${facts.map(([name, value]) => html`<div class="card"><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

const REASONS = /** @type {{ [reason: string]: string }} */ ({
  stopping: 'The server is stopping.',
  storage: 'The namespace default does not take writes. Check the disk, then reopen the namespace or restart the server.',
  disk: 'The disk is almost full. Writes will be refused.',
});

/** What an operator should look at. @param {Reading} now @param {Reading} early @returns {string[]} */
function worries(now, early) {
  const found = [];
  const refusing = total(now, 'trefoil_namespaces_refusing_writes');
  if (refusing) found.push(`${counted(refusing, 'namespace')} refuse writes after an error of the disk. Check the disk, then reopen them.`);
  const free = total(now, 'trefoil_disk_free_bytes');
  if (free && free < DISK_BYTES) found.push(`Only ${size(free)} are free on the disk of the data directory.`);
  const panics = total(now, 'trefoil_panics_total');
  if (panics) found.push(`${counted(panics, 'request or job', 'requests or jobs')} ended by a defect of the server. The log has the place; please report it.`);
  const behind = total(now, 'trefoil_clock_behind_seconds');
  if (behind > 1) found.push(`The clock is ${duration(behind)} behind the last event. New events get the time of the last one until it has passed.`);
  const jumps = total(now, 'trefoil_clock_jumps_total');
  if (jumps) found.push(`The clock of the machine jumped ${counted(jumps, 'time')} since the start.`);
  const faults = rate(early, now, 'trefoil_http_requests_total', isFault);
  if (early !== now && faults > 0) found.push(`${short(faults)} requests per second fail with a status of 500 or more. Refusals for lack of room are among them.`);
  return found;
}

function Attention() {
  const [state, setState] = useState({ isReady: true, reason: '' });
  useRepeated(async (isWanted) => {
    const response = await fetch('ready', { cache: 'no-store' }).catch(() => null);
    const body = await response?.json().catch(() => ({}));
    if (response && isWanted()) setState({ isReady: response.ok, reason: body?.reason ?? '' });
  }, 5 * EVERY_MS, []);
  const [late, setLate] = useState(0);
  useRepeated(async (isWanted) => {
    const open = await call('ns.subscriptions', { limit: 1000 });
    if (isWanted()) setLate(open.filter((/** @type {{ lagMs: number | null }} */ { lagMs }) => (lagMs ?? 0) > LATE_MS).length);
  }, 5 * EVERY_MS, []);
  const { data: health } = useLoad(() => call('sys.health'), []);
  const now = readings.at(-1);
  const refusing = /** @type {string[]} */ (health?.refusingWrites ?? []);
  const found = useMemo(() => (now ? worries(now, readings[Math.max(0, readings.length - 15)]) : []), [now]);
  const all = [...(state.isReady ? [] : [REASONS[state.reason] ?? 'The server is not ready.']), ...found];
  return html`<section aria-label="What needs attention" aria-live="polite">${all.length || late
    ? html`<ul class="column">${all.map((text) => html`<li class="note warn">${text}</li>`)}
      ${refusing.length > 0 && isAdmin() && html`<li class="note warn">They are: ${refusing.join(', ')}. <a href=${linkTo('namespaces')}>To the namespaces</a></li>`}
      ${late > 0 && html`<li class="note warn">${counted(late, 'subscription')} of this namespace ${late === 1 ? 'is' : 'are'} more than ${LATE_MS / 1000} seconds behind.
        <a href=${linkTo('consumers')}>To the consumers</a></li>`}</ul>`
    : html`<p class="note good">Everything is well: the server is ready, takes writes and has room.</p>`}</section>`;
}
