// Curves of one run or several over their steps: hover, zoom, smoothing, the interval as a band.
// Drawn by uPlot (vendor/uPlot), a script of its own that index.html loads.

import { el, fill, say } from "./dom.js";
import { brief, count, isNumber, percent, rate } from "./format.js";

const HEIGHT = 260; // px
const COLUMNS = 3; // of a curve: its line and both ends of its intervals

/**
 * `draw({title, is_rate, lines, passed, smooth})` shows curves. A line is {name, role, steps, values,
 * lower, upper}, its role a colour of the style sheet; `passed` are steps at which lessons were
 * passed, `smooth` from 0 to below 1 the share that a point keeps of those before it.
 */
export function curveView() {
  const title = el("h3", {});
  const place = el("div", { className: "curve" });
  const whole = el("button", { type: "button", hidden: true, on: { click: () => show(null) } }, "Show all steps");
  const node = el("figure", { className: "curve-box" }, el("div", { className: "curve-head" }, title, whole), place);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const again = () => plot?.redraw();
  scheme.addEventListener("change", again);
  const sized = new ResizeObserver(() => plot?.setSize(size()));
  sized.observe(place);
  let plot = null;
  let known = "";
  let told = null;
  let range = null; // of the steps that a person chose

  const size = () => ({ width: place.clientWidth || 600, height: HEIGHT });
  const colour = (role) => getComputedStyle(place).getPropertyValue(`--${role}`).trim();

  function draw(given) {
    told = given;
    say(title, `${told.title}, by step`);
    const data = joined();
    const key = JSON.stringify([told.title, told.is_rate, told.lines.map((one) => [one.name, one.role])]);
    if (plot && key === known) {
      plot.setData(data, false);
    } else {
      plot?.destroy();
      known = key;
      range = null;
      plot = new window.uPlot(options(), data, place);
    }
    show(range);
    if (plot.cursor.left < 0) plot.setLegend({ idx: null }); // the last values, where nothing is pointed at
    const canvas = plot.ctx.canvas;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${told.title}: ${told.lines.map((one) =>
      `${told.lines.length > 1 ? `${one.name} ` : ""}${words(one.values[0])} at step ${brief(one.steps[0])}, ` +
      `${words(one.values.at(-1))} at step ${brief(one.steps.at(-1))}`).join("; ")}`);
  }

  /** Shows the steps of `wanted`, [from, to], or all. */
  function show(wanted) {
    const steps = plot.data[0];
    const [min, max] = wanted ?? [0, steps.at(-1) ?? 1];
    plot.setScale("x", { min, max });
  }

  /** The lines on one row of steps, as uPlot wants them. */
  function joined() {
    const tables = told.lines.map((one) => [one.steps,
      ...[one.values, one.lower, one.upper].map((values) => smoothed(values, told.smooth ?? 0))]);
    return window.uPlot.join(tables);
  }

  function words(value) {
    if (!isNumber(value)) return "–";
    return told.is_rate ? percent(value) : brief(value);
  }

  function options() {
    const quiet = () => colour("quiet");
    const grid = { stroke: () => colour("line"), width: 1 };
    const axis = { stroke: quiet, grid, ticks: { show: false }, font: "13px system-ui, sans-serif" };
    const series = told.lines.flatMap((one, k) => [
      { label: one.name, stroke: () => colour(one.role), width: 2, dash: one.dash, spanGaps: true,
        points: { show: false },
        value: (made, _value, _series, at) => valueWords(made, k, at) },
      ...["lower", "upper"].map(() => ({ class: "edge", spanGaps: true, points: { show: false }, width: 0,
        stroke: () => "transparent" })),
    ]);
    const bands = told.lines.map((one, k) => ({ series: [COLUMNS * k + 3, COLUMNS * k + 2],
      fill: () => `${colour(one.role)}2e` }));
    return {
      ...size(),
      scales: { x: { time: false, range: (_, min, max) => [min, max] },
        y: told.is_rate ? { range: [0, 1] } : {} },
      axes: [{ ...axis, values: (_, steps) => steps.map((step) => (step ? brief(step) : "0")), space: 70, size: 32 },
        { ...axis, values: (_, values) => values.map((one) => (told.is_rate ? percent(one, 0) : brief(one))), size: 62 }],
      series: [{ label: "step", value: (_, step) => count(step) }, ...series],
      bands,
      cursor: { y: false, points: { size: 8 }, drag: { x: true, y: false, setScale: true } },
      hooks: { draw: [drawPassed], setScale: [(made, name) => name === "x" && zoomed(made)] },
    };
  }

  function zoomed(made) {
    const { min, max } = made.scales.x;
    const isWhole = min <= 0 && max >= made.data[0].at(-1);
    range = isWhole ? null : [min, max];
    whole.hidden = isWhole;
  }

  /** The value of line `k` at a place of its steps, or its last. */
  function valueWords(made, k, at) {
    const [values, lower, upper] = [1, 2, 3].map((column) => made.data?.[COLUMNS * k + column] ?? []);
    at ??= values.findLastIndex(isNumber);
    return isNumber(lower[at]) ? rate(values[at], lower[at], upper[at]) : words(values[at]);
  }

  function drawPassed(made) {
    const { ctx: context, bbox: box } = made;
    context.save();
    context.strokeStyle = context.fillStyle = colour("good");
    context.font = `${13 * devicePixelRatio}px system-ui, sans-serif`;
    context.setLineDash([4, 4]);
    let free = 0; // where the next number has room
    (told.passed ?? []).forEach((step, k) => {
      const x = made.valToPos(step, "x", true);
      if (!isNumber(step) || x < box.left || x > box.left + box.width) return;
      context.beginPath();
      context.moveTo(x, box.top);
      context.lineTo(x, box.top + box.height);
      context.stroke();
      if (x < free) return;
      context.fillText(`✓${k + 1}`, x + 3, box.top + 13 * devicePixelRatio);
      free = x + 30 * devicePixelRatio;
    });
    context.restore();
  }

  function close() {
    scheme.removeEventListener("change", again);
    sized.disconnect();
    plot?.destroy();
    fill(place);
  }

  return { node, draw, close };
}

/** The exponential mean of values, without the pull of its beginning. */
export function smoothed(values, share) {
  let [sum, weight] = [0, 0];
  return values.map((value) => {
    if (!isNumber(value)) return null;
    sum = share * sum + (1 - share) * value;
    weight = share * weight + (1 - share);
    return sum / weight;
  });
}
