// The server's metrics: read as text, and turned into rates and percentiles.

/** @typedef {{ name: string, labels: { [name: string]: string }, value: number }} Sample */
/** @typedef {{ time: number, samples: Map<string, Sample[]> }} Reading */

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** @param {string} text @param {number} time @returns {Reading} */
export function parseMetrics(text, time) {
  /** @type {Map<string, Sample[]>} */
  const samples = new Map();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? [];
    if (!name) continue;
    const sample = { name, labels: Object.fromEntries([...labels.matchAll(LABEL)].map(([, key, part]) => [key, part])), value: Number(value) };
    samples.set(name, [...(samples.get(name) ?? []), sample]);
  }
  return { time, samples };
}

/** The sum of a metric over its labels. @param {Reading} reading @param {string} name
 * @param {(labels: { [name: string]: string }) => boolean} [select] */
export function total(reading, name, select = () => true) {
  const found = reading.samples.get(name) ?? [];
  return found.reduce((sum, { labels, value }) => (select(labels) ? sum + value : sum), 0);
}

/** How much a counter grew per second. After a restart it began again at nothing.
 * @param {Reading} before @param {Reading} now @param {string} name @param {(labels: { [name: string]: string }) => boolean} [select] */
export function rate(before, now, name, select) {
  const [from, to] = [total(before, name, select), total(now, name, select)];
  return (to >= from ? to - from : to) / ((now.time - before.time) / 1000);
}

/** The mean of what a histogram counted between two readings; nothing if it counted nothing.
 * @param {Reading} before @param {Reading} now @param {string} name */
export function mean(before, now, name) {
  const [sum, number] = ['_sum', '_count'].map((part) => rate(before, now, name + part));
  return number > 0 ? sum / number : null;
}

/**
 * A percentile of what a histogram counted between two readings; nothing if it counted nothing.
 * @param {Reading} before @param {Reading} now @param {string} name @param {number} share
 * @param {(labels: { [name: string]: string }) => boolean} [select]
 */
export function percentile(before, now, name, share, select = () => true) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  const add = (/** @type {Reading} */ reading, /** @type {number} */ sign) => {
    for (const { labels, value } of reading.samples.get(`${name}_bucket`) ?? []) {
      const bound = labels.le === '+Inf' ? Infinity : Number(labels.le);
      if (select(labels)) counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
    }
  };
  add(now, 1);
  if (total(now, `${name}_count`, select) >= total(before, `${name}_count`, select)) add(before, -1);
  const bounds = [...counts].sort(([a], [b]) => a - b);
  const wanted = (bounds.at(-1)?.[1] ?? 0) * share;
  if (!(wanted > 0)) return null;
  let [below, under] = [0, 0];
  for (const [bound, number] of bounds) {
    if (number >= wanted) return bound === Infinity ? below : below + ((bound - below) * (wanted - under)) / (number - under);
    [below, under] = [bound, number];
  }
  return below;
}
