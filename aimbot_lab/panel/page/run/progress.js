// How a run stands: lessons as a line, win rate, evidence, the table of targets and difficulties.

import { el, fill, say } from "../dom.js";
import { brief, count, duration, isNumber, percent, rate as rateText } from "../format.js";
import { tile } from "../tile.js";

export function progressView() {
  const hint = el("p", { className: "lead" });
  const lessons = el("ol", { className: "lessons", aria: { label: "Lessons" } });
  const tiles = {
    step: tile("steps"), speed: tile("steps per second"), left: tile("left, at most"),
    episodes: tile("episodes of the lesson"),
  };
  const rate = gauge("Win rate");
  const evidence = gauge("Evidence that the threshold is reached");
  const table = el("table", { className: "cells" });
  const data = el("div", {},
    lessons,
    el("div", { className: "tiles" }, Object.values(tiles).map((one) => one.node)),
    el("div", { className: "gauges" }, rate.node, evidence.node),
    el("div", { className: "scroll", tabIndex: 0, role: "region",
      aria: { label: "Win rate by target and difficulty" } }, table));
  const node = el("div", { className: "progress" }, hint, data);

  function clear() {
    data.hidden = true;
    say(hint, "");
  }

  function draw(told) {
    const status = told.status;
    data.hidden = status === null;
    say(hint, hintOf(told));
    hint.hidden = hint.textContent === "";
    if (status === null) return;
    drawLessons(status);
    drawTiles(status, told.state === "trains");
    drawRate(status);
    drawEvidence(status);
    table.parentElement.hidden = status.has_wins === false;
    drawCells(status);
  }

  function drawLessons(status) {
    fill(lessons, status.lessons.map((lesson, number) => {
      const isNow = number === status.lesson && !status.finished;
      const isPassed = lesson.ended_at_step !== null;
      const shown = lesson.proof_words;
      const words = isPassed ? `passed at step ${count(lesson.ended_at_step)}${shown && `: ${shown}`}`
        : isNow ? "now" : "to come";
      return el("li", {
        className: isPassed ? "passed" : isNow ? "now" : "", aria: isNow ? { current: "step" } : {},
      }, el("strong", {}, lesson.name), el("span", { className: "quiet" }, words));
    }));
  }

  function drawTiles(status, trains) {
    const left = (status.total_steps - status.step) / status.steps_per_second;
    say(tiles.step.value, count(status.step));
    say(tiles.step.below, `of ${brief(status.total_steps)}`);
    say(tiles.speed.value, trains ? brief(status.steps_per_second) : "–");
    say(tiles.left.value, trains ? duration(left) : "–");
    say(tiles.left.below, "passing all lessons ends it sooner");
    say(tiles.episodes.value, count(status.episodes));
    const most = status.min_lesson_length;
    say(tiles.episodes.below, most ? `at least ${count(most)} are asked for` : "");
  }

  function drawRate(status) {
    const hasWins = status.has_wins !== false;
    say(rate.title, hasWins ? "Win rate" : "Mean return");
    rate.bar.hidden = !hasWins;
    if (!hasWins) {
      say(rate.words, isNumber(status.mean_return) ? brief(status.mean_return) : "not known yet");
      say(rate.below, status.window ? `last ${count(status.window)} episodes of the lesson` : "");
      return;
    }
    const { win_rate: value, lower, upper } = status.win_rate;
    rate.set({ low: lower, high: upper, value, mark: status.threshold });
    const against = status.threshold === null ? "" : `, threshold ${shortPercent(status.threshold)}`;
    say(rate.words, isNumber(value) ? `${rateText(value, lower, upper)}${against}` : `not known yet${against}`);
    say(rate.below, status.window ? `95 % interval, last ${count(status.window)} episodes of the lesson`
      : "the first episodes that begin and end in the lesson are awaited");
  }

  function drawEvidence(status) {
    const { log_evidence: found, log_bound: bound, measured } = status;
    evidence.node.hidden = !isNumber(found) && measured === null;
    if (measured !== null) {
      say(evidence.title, `Measured: ${measured.measure.replaceAll("_", " ")}`);
      const share = measured.value / measured.threshold;
      evidence.set({ low: 0, high: clamp(share), value: null, mark: 1 });
      say(evidence.words, `${isNumber(measured.value) ? measured.value.toPrecision(4) : "–"} ` +
        `against ${measured.threshold}`);
      say(evidence.below, "");
      return;
    }
    if (!isNumber(found)) return;
    evidence.set({ low: 0, high: clamp(found / bound), value: null, mark: 1 });
    say(evidence.words, status.evidence_words);
    say(evidence.below, `odds that it is no luck; the lesson is passed where the bar is full, at 1/α, ` +
      `and a false pass has at most α = ${shortPercent(Math.exp(-bound))} chance`);
  }

  function drawCells(status) {
    const levels = [...new Set(status.cells.map((cell) => cell.difficulty))].sort();
    const targets = [...new Set(status.cells.map((cell) => cell.target))];
    const cells = new Map(status.cells.map((cell) => [`${cell.target}/${cell.difficulty}`, cell]));
    const head = levels.map((level) => el("th", { scope: "col" }, level ? `difficulty ${level}` : "any"));
    fill(table,
      el("caption", {}, "Win rate by target and difficulty"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "target"), head)),
      el("tbody", {}, targets.map((target) => el("tr", {},
        el("th", { scope: "row" }, target),
        levels.map((level) => cellOf(cells.get(`${target}/${level}`)))))));
  }

  clear();
  return { node, draw, clear };
}

function cellOf(cell) {
  if (!cell) return el("td", { className: "none" }, "");
  const made = el("td", {},
    el("span", { className: "cell-rate" }, percent(cell.win_rate, 0)),
    el("span", { className: "quiet" }, `${count(cell.wins)} of ${count(cell.episodes)}`));
  made.style.setProperty("--share", isNumber(cell.win_rate) ? cell.win_rate : 0);
  return made;
}

function hintOf(told) {
  if (told.fault) return told.fault;
  if (told.state === "trains" && told.status === null) {
    return "Getting ready: the simulator is prepared, and compiled the first time.";
  }
  if (told.state === "died") {
    return "The run's process died. What you see is the last state it showed; Resume continues " +
      "it from its last checkpoint.";
  }
  if (told.state === "unknown") return "There is no such run in this data folder.";
  if (told.status === null) {
    const rate = isNumber(told.win_rate) ? ` Its last win rate was ${percent(told.win_rate)}.` : "";
    return `This run is over.${rate} Its curves are in MLflow.`;
  }
  return told.state === "trains" ? "" : "This run is over; this was its last state.";
}

/** A bar from `low` to `high` with a stroke at `value` and a mark at `mark`, all from 0 to 1. */
function gauge(label) {
  const range = el("span", { className: "range" });
  const stroke = el("span", { className: "stroke" });
  const mark = el("span", { className: "mark" });
  const heading = el("h3", {}, label);
  const words = el("p", { className: "words" });
  const below = el("p", { className: "quiet" });
  const bar = el("div", { className: "bar", aria: { hidden: "true" } }, range, stroke, mark);
  const node = el("div", { className: "gauge" }, heading, words, bar, below);
  const set = ({ low, high, value, mark: at }) => {
    range.style.left = `${100 * low}%`;
    range.style.width = `${100 * (high - low)}%`;
    stroke.hidden = !isNumber(value);
    if (isNumber(value)) stroke.style.left = `${100 * value}%`;
    mark.hidden = !isNumber(at);
    if (isNumber(at)) mark.style.left = `${100 * at}%`;
  };
  return { node, set, bar, title: heading, words, below };
}

/** 70 %, 99.5 %. */
function shortPercent(share) {
  return `${Number((100 * share).toPrecision(4))} %`;
}

function clamp(share) {
  return Math.min(1, Math.max(0, isNumber(share) ? share : 0));
}
