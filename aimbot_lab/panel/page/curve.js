// A curve over the steps of a run, with the steps at which its lessons were passed.

import { Chart } from "./chart.js";
import { el, say } from "./dom.js";
import { brief, isNumber, percent } from "./format.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [58, 14, 24, 28]; // px of room for words

/** `draw({title, is_rate, points}, lessons)` shows one; points are [step, value]. */
export function curveView() {
  const title = el("h3", {});
  const canvas = el("canvas", { className: "curve", role: "img" });
  const node = el("figure", { className: "curve-box" }, title, canvas);
  let told = null;
  let passed = [];
  const chart = new Chart(canvas, (context, size) => told && paint(context, size));

  function draw(curve, lessons) {
    told = curve;
    passed = lessons;
    say(title, `${curve.title}, by step`);
    const [first, last] = [curve.points[0], curve.points.at(-1)];
    canvas.setAttribute("aria-label", `${curve.title}: ${words(first[1])} at step ${brief(first[0])}, ` +
      `${words(last[1])} at step ${brief(last[0])}`);
    chart.frame();
  }

  function words(value) {
    return told.is_rate ? percent(value, 0) : String(Number(value.toPrecision(3)));
  }

  function paint(context, { width, height, colour }) {
    const { points, is_rate: isRate } = told;
    const values = points.map(([, value]) => value);
    const rows = isRate ? [0, 0.25, 0.5, 0.75, 1] : ticks(Math.min(...values), Math.max(...values), 5);
    const [low, high] = [rows[0], rows.at(-1)];
    const end = points.at(-1)[0] || 1;
    const x = (step) => LEFT + (width - LEFT - RIGHT) * (step / end);
    const y = (value) => height - BOTTOM - (height - TOP - BOTTOM) * ((value - low) / (high - low));
    const line = (from, to) => {
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
    };
    context.font = "13px system-ui, sans-serif";
    context.lineWidth = 1;
    context.strokeStyle = colour("line");
    context.fillStyle = colour("quiet");
    context.textAlign = "right";
    for (const value of rows) {
      line([LEFT, y(value)], [width - RIGHT, y(value)]);
      context.fillText(isRate ? percent(value, 0) : brief(value), LEFT - 8, y(value) + 4);
    }
    context.textAlign = "center";
    for (const step of ticks(0, end, width < 420 ? 3 : 6)) {
      if (step <= end) context.fillText(step ? brief(step) : "0", x(step), height - 8);
    }
    paintLessons(context, { x, y, low, high, colour, line });
    context.strokeStyle = colour("accent");
    context.lineWidth = 2;
    context.lineJoin = "round";
    context.beginPath();
    for (const [step, value] of points) context.lineTo(x(step), y(value));
    context.stroke();
  }

  function paintLessons(context, { x, y, low, high, colour, line }) {
    context.textAlign = "center";
    let free = 0; // where the next number has room
    passed.forEach((step, k) => {
      if (!isNumber(step)) return;
      context.strokeStyle = colour("good");
      context.setLineDash([4, 4]);
      line([x(step), y(low)], [x(step), y(high)]);
      context.setLineDash([]);
      context.fillStyle = colour("good");
      if (x(step) < free) return;
      context.fillText(`✓${k + 1}`, Math.max(x(step) - 4, LEFT), TOP - 8);
      free = x(step) + 30;
    });
  }

  return { node, draw, close: () => chart.close() };
}

/** Round numbers, about `most` of them at equal distances, that begin at or below `low`. */
function ticks(low, high, most) {
  const span = Math.max(high - low, Math.abs(high) / 1000, 1e-9) / most;
  const power = 10 ** Math.floor(Math.log10(span));
  const size = power * [1, 2, 2.5, 5, 10].find((one) => one * power >= span);
  const found = [Math.floor(low / size) * size];
  while (found.at(-1) < high) found.push((Math.round(found[0] / size) + found.length) * size);
  return found.length > 1 ? found : [found[0], found[0] + size];
}
