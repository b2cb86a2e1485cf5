// A chart of the last minutes.

import uPlot from '../vendor/uplot.js';
import { html, useEffect, useRef } from '../view.js';
import { theme } from '../theme.js';

const [HEIGHT, SECONDS] = [150, 300];

const clock = (/** @type {number} */ seconds) => new Date(seconds * 1000).toLocaleTimeString('en-GB');

/** A colour of the style sheet, as a canvas needs it. @param {Element} element @param {string} name */
function colour(element, name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** @param {HTMLElement} place @param {string[]} series @param {(value: number) => string} format */
function draw(place, series, format) {
  const [line, muted] = [colour(place, '--line'), colour(place, '--muted')];
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
  const value = (/** @type {unknown} */ _, /** @type {number | null} */ number) => (number === null ? '–' : format(number));
  return new uPlot({
    width: place.clientWidth || 300,
    height: HEIGHT,
    legend: { live: true },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      // The last minutes, however few of them are known.
      x: { range: (_, low, high) => [(high ?? Date.now() / 1000) - SECONDS, high ?? Date.now() / 1000] },
      y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.15 : 1] },
    },
    axes: [{ ...axis, size: 34, space: 60, values: (_, splits) => splits.map(clock) }, { ...axis, size: 66, space: 32, values: (_, splits) => splits.map(format) }],
    series: [{ value: (_, time) => (time ? clock(time) : '–') }, ...series.map((label, index) => ({
      label, value, stroke: colour(place, `--chart-${index + 1}`), width: 2, spanGaps: false, points: { show: false } }))],
  }, [[], ...series.map(() => [])], place);
}

/**
 * Lines over time. `points` are rows of a time in seconds and a number, or null, per series.
 * @param {{ title: string, series: string[], points: (number | null)[][], format: (value: number) => string }} props
 */
export function Chart({ title, series, points, format }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {uPlot | null} */ (null));
  useEffect(() => {
    const element = /** @type {HTMLElement} */ (place.current);
    const make = () => {
      plot.current?.destroy();
      plot.current = draw(element, series, format);
    };
    make();
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    sizes.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const unwatch = theme.watch(make);
    scheme.addEventListener('change', make);
    return () => {
      sizes.disconnect();
      unwatch();
      scheme.removeEventListener('change', make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => {
    const columns = series.map((_, index) => points.map((point) => point[index + 1]));
    plot.current?.setData(/** @type {any} */ ([points.map((point) => point[0]), ...columns]));
    // Where nobody points, the legend has the newest values.
    if (plot.current && (plot.current.cursor.left ?? -1) < 0 && points.length) plot.current.setLegend({ idx: points.length - 1 });
  });
  return html`<section class="card chart" aria-label=${title}><div class="card-head"><h2>${title}</h2></div>
    <div class="plot" ref=${place}></div></section>`;
}
