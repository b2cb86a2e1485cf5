// JSON without loss: a number that JavaScript would change, such as 1.0 or one of 20 digits, is kept
// as it was written.

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
