// What every part of the console draws with: Preact's elements, written as text by htm.

import { h, render } from './vendor/preact.js';
import htm from './vendor/htm.js';

export const html = htm.bind(h);
export { render };
export { useEffect, useMemo, useRef, useState } from './vendor/hooks.js';
