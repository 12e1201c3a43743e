// Sweep: trials as they end, the best so far, and all of them in parallel coordinates.

import { el, fill, say } from "../dom.js";
import { clock, count, duration, isNumber, shownEnds } from "../format.js";
import { Parallel, shortNames } from "../parallel.js";

export const name = "sweep";
export const title = "Sweep";

export function open(place, panel, rest) {
  let shown = rest;
  const list = el("ul", { className: "runs", aria: { label: "Sweeps" } });
  const heading = el("h1", {}, "Sweep");
  const state = el("span", { className: "state", role: "status" });
  const lead = el("p", { className: "lead" });
  const best = el("p", { className: "best" });
  const canvas = el("canvas", { className: "parallel", role: "img",
    aria: { label: "Each trial as a line over its values; better ones are stronger" } });
  const view = new Parallel(canvas);
  const table = el("table", { className: "trials" });
  const links = el("p", { className: "quiet" });
  const body = el("div", { hidden: true }, best, canvas, el("p", { className: "quiet" }, "A line is a trial; the better it is the stronger the line, and the " +
      "yellow one is the best."),
    el("div", { className: "scroll", tabIndex: 0, role: "region", aria: { label: "Trials" } }, table), links);
  place.append(el("aside", {}, el("h2", {}, "Sweeps"), list),
    el("div", {}, el("div", { className: "run-head" }, heading, state), lead, body));
  panel.atEnd(() => view.close());

  panel.on("sweeps", ({ sweeps }) => {
    if (!sweeps.length) {
      fill(lead, "A sweep searches for better settings: it trains again and again, with others each " +
        "time. None has begun in this data folder; begin one in a terminal with ",
      el("code", {}, "aimbot-lab sweep rewards"), ".");
    }
    fill(list, sweeps.map((one) => el("li", {}, el("a", { href: addressOf(one.name),
      className: "run-link", aria: one.name === shown ? { current: "true" } : {} },
    el("strong", {}, one.name),
    el("span", { className: "quiet" }, `changed ${clock(one.changed_ms)}`)))));
    if (!shown && sweeps.length) watch(sweeps[0].name);
  });
  panel.on("report", (told) => {
    if (told.name === shown) draw(told);
  });

  function draw(told) {
    body.hidden = false;
    say(heading, told.name);
    say(state, told.status);
    state.className = `state ${told.status === "running" ? "trains" : ""}`;
    say(lead, `${count(told.ended)} of ${count(told.total)} trials ended; measured by ` +
      `${told.measure}, ${told.maximizes ? "more" : "less"} is better.`);
    const found = told.trials.find((one) => one.number === told.best);
    say(best, found ? `Best so far: trial ${found.number}, ${valueWords(found)}` +
      `${told.verdict ? ` – ${told.verdict}` : ""}` : "No trial has a value yet.");
    view.draw(told);
    drawTable(told);
    say(links, told.parent_run ? "Optuna's pictures (history, importances, slices) lie with the " +
      `sweep's run ${told.parent_run.slice(0, 12)} in MLflow: aimbot-lab ui ${told.parent_run.slice(0, 12)}` : "");
  }

  function drawTable(told) {
    const heads = ["trial", "state", ...shortNames(told.keys), told.measure, "took"];
    const rows = [...told.trials].reverse();
    fill(table, el("caption", {}, "Trials, the newest first"),
      el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, rows.map((one) => el("tr", {
        className: one.number === told.best ? "is-best" : "", title: one.reason ?? "" },
      [one.number, one.state, ...one.values.map(short), valueWords(one), duration(one.seconds)]
        .map((text) => el("td", {}, String(text)))))));
  }

  function watch(sweep) {
    shown = sweep;
    body.hidden = true;
    say(lead, "The sweep is read …");
    panel.act("watch", { name: sweep });
    for (const link of list.querySelectorAll("a")) {
      if (link.hash === addressOf(sweep)) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  panel.whenOpen(() => {
    panel.act("list");
    if (shown) watch(shown);
  });
  return { go(other) { if (other && other !== shown) watch(other); } };
}

function addressOf(sweep) {
  return `#sweep/${encodeURIComponent(sweep)}`;
}

/** A trial's value with its interval: "0.610 [0.520 to 0.694]", "more than 40,000". */
function valueWords(trial) {
  if (!isNumber(trial.value)) return "–";
  const more = trial.at_least ? "more than " : "";
  if (!isNumber(trial.lower) || !isNumber(trial.upper)) return more + short(trial.value);
  const shown = Math.abs(trial.upper) >= 1000 ? count : (value) => value.toFixed(3);
  const [low, high] = shownEnds(trial.lower, trial.upper, 3);
  return `${more}${shown(trial.value)} [${shown(low)} to ${shown(high)}]`;
}

function short(value) {
  if (!isNumber(value)) return value === null ? "–" : String(value);
  return Math.abs(value) >= 1000 ? count(value) : String(Number(value.toPrecision(4)));
}
