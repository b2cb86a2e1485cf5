// Numbers, times and sizes as people read them.

const WHOLE = new Intl.NumberFormat('en-US');

/** @param {number} number */
export function count(number) {
  return WHOLE.format(number);
}

/** A count with its noun. @param {number} number @param {string} noun @param {string} [plural] */
export function counted(number, noun, plural = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : plural}`;
}

/** A number of any size in a few digits: 0.25, 12.3, 4,500, 1.2 M. @param {number} number */
export function short(number) {
  const size = Math.abs(number);
  if (size >= 1e9) return `${(number / 1e9).toFixed(1)} G`;
  if (size >= 1e6) return `${(number / 1e6).toFixed(1)} M`;
  if (size >= 100 || Number.isInteger(number)) return count(Math.round(number));
  return size >= 10 ? number.toFixed(1) : number.toFixed(2);
}

/** @param {number} bytes */
export function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.1 ? 1 : 0)} ms`;
  return seconds < 100 ? `${seconds.toFixed(1)} s` : `${count(Math.round(seconds))} s`;
}

const LONG = [[86_400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];

/** A rest of time in its two largest units. @param {number} ms */
export function remaining(ms) {
  let rest = Math.max(0, Math.round(ms / 1000));
  const parts = [];
  for (const [unit, name] of /** @type {[number, string][]} */ (LONG)) {
    if (rest >= unit || (unit === 1 && !parts.length)) parts.push(`${Math.floor(rest / unit)} ${name}`);
    rest %= unit;
  }
  return parts.slice(0, 2).join(' ');
}

const pad = (/** @type {number} */ number, digits = 2) => String(number).padStart(digits, '0');

/** A time of RFC 3339 in the time zone of the reader, with milliseconds. @param {string} text */
export function localTime(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  const day = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  return `${day} ${clockTime(text)}`;
}

/** Only the time of the day. @param {string} text */
export function clockTime(text) {
  const time = new Date(text);
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => pad(part)).join(':');
  return `${clock}.${pad(time.getMilliseconds(), 3)}`;
}

/** How long ago it was. @param {string} text */
export function ago(text) {
  const seconds = (Date.now() - new Date(text).getTime()) / 1000;
  if (!(seconds >= 5)) return 'just now';
  return `${remaining(seconds * 1000).split(' ').slice(0, 2).join(' ')} ago`;
}

/** JSON in one line, cut off. @param {any} value @param {number} [length] */
export function preview(value, length = 240) {
  const text = JSON.stringify(value) ?? '';
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
