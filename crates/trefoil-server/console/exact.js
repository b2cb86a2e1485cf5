// JSON without loss: a number that JavaScript would change, such as 1.0 or one of 20 digits, is kept
// as it was written, and text that a person typed is sent as it is.

const json = /** @type {any} */ (JSON);

/** @param {string} text */
export function parseExactly(text) {
  if (!json.rawJSON) return JSON.parse(text);
  return json.parse(text, (/** @type {string} */ _, /** @type {any} */ value, /** @type {any} */ context) =>
    typeof value === 'number' && context.source !== String(value) ? json.rawJSON(context.source) : value);
}

/** The digits of a number that is kept as text; nothing for other values.
 * @param {any} value @returns {string | undefined} */
export function digitsOf(value) {
  return json.isRawJSON?.(value) ? value.rawJSON : undefined;
}

/** Whether something has a number that is kept as text: programs that are shown would change it.
 * @param {any} value @returns {boolean} */
export function hasDigits(value) {
  if (value === null || typeof value !== 'object') return false;
  return digitsOf(value) !== undefined || Object.values(value).some(hasDigits);
}

/** JSON that is sent as it was typed: reading and writing it again could change numbers and the order of names. */
export class Verbatim {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** @param {any} value @returns {string} */
export function stringifyExactly(value) {
  /** @type {string[]} */
  const texts = [];
  // Nothing else in the value can be this text.
  const mark = `verbatim-${crypto.getRandomValues(new Uint32Array(4)).join('-')}-`;
  const body = JSON.stringify(value, (_, part) => (part instanceof Verbatim ? `${mark}${texts.push(part.text) - 1}` : part));
  return texts.reduce((whole, text, index) => whole.replace(`"${mark}${index}"`, () => text), body);
}
