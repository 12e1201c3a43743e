// Parallel coordinates: an axis for each value that is searched, a line for each trial.

import { brief, isNumber } from "./format.js";

const [TOP, BOTTOM, SIDE] = [34, 30, 70]; // px of room for words
const WIDE = 30; // how many times the smallest value the largest is on a logarithmic axis

/** The shortest ends of dotted keys that tell them apart: "rewards.win" among others is "win". */
export function shortNames(keys) {
  const ends = keys.map((key) => key.split(".").at(-1));
  return keys.map((key, k) => (ends.indexOf(ends[k]) === ends.lastIndexOf(ends[k]) ? ends[k] : key));
}

export class Parallel {
  constructor(canvas) {
    this.told = null;
    this.chart = new Chart(canvas, (context, size) => this.told && this.paint(context, size));
  }

  close() {
    this.chart.close();
  }

  draw(told) {
    this.told = told;
    this.chart.frame();
  }

  paint(context, { width, height, colour }) {
    const { told } = this;
    const ended = told.trials.filter((one) => isNumber(one.value));
    const axes = [...told.keys.map((key, k) => axis(shortNames(told.keys)[k],
      told.trials.map((one) => one.values[k]))), axis(told.measure, ended.map((one) => one.value))];
    const x = (k) => SIDE + (width - 2 * SIDE) * (axes.length > 1 ? k / (axes.length - 1) : 0.5);
    const y = (share) => height - BOTTOM - share * (height - TOP - BOTTOM);
    const ranks = [...ended].sort((a, b) => (told.maximizes ? a.value - b.value : b.value - a.value));
    ranks.forEach((one, rank) => {
      const isBest = one.number === told.best;
      context.strokeStyle = colour(isBest ? "goal" : "accent");
      context.globalAlpha = isBest ? 1 : 0.12 + 0.5 * (rank / Math.max(ranks.length - 1, 1)) ** 3;
      context.lineWidth = isBest ? 3 : 1.3;
      context.beginPath();
      [...one.values, one.value].forEach((value, k) => context.lineTo(x(k), y(axes[k].share(value))));
      context.stroke();
    });
    context.globalAlpha = 1;
    drawAxes(context, axes, { x, y, ink: colour("ink"), quiet: colour("quiet"), height });
  }
}

function drawAxes(context, axes, { x, y, ink, quiet, height }) {
  context.font = "13px system-ui, sans-serif";
  context.textAlign = "center";
  axes.forEach((one, k) => {
    context.strokeStyle = quiet;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(k), y(0));
    context.lineTo(x(k), y(1));
    context.stroke();
    context.fillStyle = ink;
    context.fillText(one.name, x(k), 14, 130);
    context.fillStyle = quiet;
    context.fillText(one.high, x(k), 29, 120);
    context.fillText(one.low, x(k), height - 10, 120);
  });
}

function short(value) {
  return Math.abs(value) >= 1000 ? brief(value) : String(Number(value.toPrecision(3)));
}

/**
 * Where values lie on an axis, from 0 to 1: numbers evenly, or by their logarithm where the largest
 * is many times the smallest; others in the order of their names.
 */
function axis(name, values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length && known.every(isNumber)) {
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const scale = low > 0 && high / low > WIDE ? Math.log : (value) => value;
    const width = scale(high) - scale(low);
    const share = (value) => (width > 0 ? (scale(value) - scale(low)) / width : 0.5);
    return { name, share, low: short(low), high: short(high) };
  }
  const kinds = [...new Set(known.map(String))].sort();
  const share = (value) => (kinds.length > 1 ? kinds.indexOf(String(value)) / (kinds.length - 1) : 0.5);
  return { name, share, low: kinds[0] ?? "", high: kinds.length > 1 ? kinds.at(-1) : "" };
}

/** A canvas that is drawn anew where its size, the scheme of colours or what it shows changes. */
class Chart {
  /** `paint(context, {width, height, colour})` draws, in pixels of the page. */
  constructor(canvas, paint) {
    this.canvas = canvas;
    this.paint = paint;
    this.frame = this.frame.bind(this);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.frame);
    this.sized = new ResizeObserver(this.frame);
    this.sized.observe(canvas);
  }

  close() {
    this.scheme.removeEventListener("change", this.frame);
    this.sized.disconnect();
  }

  frame() {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    if (!context) return; // no canvas: the page has said so
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const colour = (role) => style.getPropertyValue(`--${role}`).trim();
    this.paint(context, { width, height, colour });
  }
}
