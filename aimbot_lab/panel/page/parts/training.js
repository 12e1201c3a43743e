// Training: a run that trains, live.

import { el, fill, say } from "../dom.js";
import { clock, count } from "../format.js";
import { progressView } from "../run/progress.js";
import { reportView } from "../run/report.js";
import { savedView } from "../run/saved.js";
import { slidersView } from "../run/sliders.js";

export const name = "training";
export const title = "Training";

const MAX_LISTED = 40; // runs; the part Runs has all of them
const OVER = new Set(["FINISHED", "FAILED", "KILLED"]);
const WORDS = {
  trains: "trains", died: "its process died", FINISHED: "all lessons passed", unknown: "not known",
  FAILED: "out of steps", KILLED: "stopped", RUNNING: "trains elsewhere",
};

/** What a person reads of a run's state. */
export function stateWords(state) {
  return WORDS[state] ?? state;
}

export function open(place, panel, rest) {
  let shown = rest;
  let now = null; // how the run stands
  let reported = null; // what it has come to
  let chosenByHand = rest !== "";
  const list = el("ul", { className: "runs", aria: { label: "Runs" } });
  const fault = el("p", { className: "fault", hidden: true });
  const empty = el("p", { className: "lead", hidden: true }, "Nothing trains here yet. ",
    el("a", { href: "#start" }, "Choose a curriculum"), " to begin one, or type ", el("code", {}, "aimbot-lab run goto"), " in a terminal.");
  const heading = el("h1", {}, "Training");
  const state = el("span", { className: "state", role: "status" });
  const stop = el("button", { type: "button", className: "danger", on: { click: ask("stop") } }, "Stop");
  const resume = el("button", { type: "button", className: "primary", hidden: true,
    title: "A run whose steps are spent gets as many again", on: { click: ask("resume") } }, "Resume");
  const curves = el("button", { type: "button", on: { click: openCurves } }, "Curves in MLflow");
  const watchIt = el("a", { className: "button" }, "Watch it play");
  const steer = el("button", { type: "button", title: "Move the weights of what is drawn next",
    on: { click: () => {
      sliders.node.scrollIntoView({ block: "start" });
      sliders.node.querySelector("input")?.focus({ preventScroll: true });
    } } }, "Steer");
  const save = el("button", { type: "button", title: "Keep the agent as it is now; the training continues",
    on: { click: saveAgent } }, "Save agent");
  const head = el("div", { className: "run-head" }, heading, state, el("span", { className: "grow" }),
    steer, watchIt, save, curves, resume, stop);
  const view = progressView();
  const report = reportView(panel.notice);
  const saved = savedView(panel.notice);
  const sliders = slidersView(change, (mix) => panel.act("drag", mix));
  const parts = [view, saved, sliders, report];
  const body = el("div", { className: "run", on: { pointerdown: stay, keydown: stay } }, head, empty, parts.map((one) => one.node));
  place.append(el("aside", {}, el("h2", {}, "Runs"), fault, list, el("p", {}, el("a", { href: "#runs" }, "All runs"))), body);
  panel.atEnd(() => report.close());
  hideRun();

  /** Keeps the run that a person acts on, whichever begins next. */
  function stay() {
    chosenByHand = shown !== "";
  }

  /** Leaves the heading alone, where no run is shown. */
  function hideRun() {
    say(heading, "Training");
    for (const one of [state, steer, watchIt, save, curves, resume, stop]) one.hidden = true;
    for (const one of parts) one.clear();
  }

  async function saveAgent() {
    const run = shown;
    save.disabled = true;
    say(save, "Saving …");
    const kept = await panel.act("save_agent", { run });
    save.disabled = false;
    say(save, "Save agent");
    if (!kept) return;
    const later = kept.stored ? "" : " The store does not answer; it gets the agent later.";
    panel.notice(`The agent of step ${count(kept.step)} is saved as ${kept.name}.${later}`, "done");
    if (run === shown) saved.tell(kept);
  }

  function ask(kind) {
    return async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      button.classList.add("asked");
      const done = await panel.act(kind, { run: shown });
      if (done && kind === "resume") panel.notice("The run is being resumed; this takes some seconds.", "done");
      button.disabled = false;
      button.classList.remove("asked");
    };
  }

  async function openCurves() {
    const run = shown;
    curves.disabled = true;
    say(curves, "MLflow starts …");
    const found = await panel.act("mlflow", { run });
    curves.disabled = false;
    say(curves, "Curves in MLflow");
    if (!found) return;
    panel.notice(el("span", {}, "MLflow is ready: ", el("a", { href: found.address, target: "_blank",
      rel: "noreferrer" }, "open the run's curves")), "done");
  }

  /** Sends a change of weights: of a target's difficulties, or of the targets (""). */
  function change(target, names, moves, lock, unlock) {
    const name = (k) => (target === "" ? names[k] : k + 1);
    const of = { moves: moves.map(([k, weight]) => [name(k), weight]), lock: lock.map(name),
      unlock: unlock.map(name) };
    if (target === "") return panel.act("targets", { run: shown, ...of });
    return panel.act("weights", { run: shown, target, ...of });
  }

  function drawList(runs, complete = true) {
    empty.hidden = runs.length > 0 || !complete;
    const trains = runs.find((run) => run.state === "trains") ?? runs[0];
    const isBusy = runs.some((run) => run.run_id === shown && run.state === "trains");
    if (!chosenByHand && !isBusy && trains && trains.run_id !== shown) watch(trains.run_id);
    fill(list, runs.slice(0, MAX_LISTED).map((run) => el("li", {}, el("a", {
      href: `#training/${run.run_id}`,
      className: `run-link ${run.state}`,
      aria: run.run_id === shown ? { current: "true" } : {},
    },
    el("strong", {}, run.name || run.run_id.slice(0, 8)),
    el("span", { className: "quiet" }, `${stateWords(run.state)} · ${clock(run.begun_ms)}`)))));
  }

  let last = [];
  panel.on("runs", (told) => {
    last = told.runs;
    fault.hidden = !told.fault;
    say(fault, told.fault);
    drawList(last, told.complete);
  });
  panel.on("state", (told) => {
    if (told.run_id !== shown) return;
    state.hidden = false;
    watchIt.hidden = curves.hidden = told.state === "unknown"; // deleted
    say(heading, told.name || told.run_id.slice(0, 8));
    say(state, stateWords(told.state));
    state.className = `state ${told.state}`;
    stop.hidden = steer.hidden = save.hidden = told.state !== "trains";
    body.classList.toggle("over", told.state !== "trains");
    resume.hidden = !told.resumable;
    watchIt.href = `#watch/${told.run_id}`;
    now = told;
    saved.draw(told);
    sliders.draw(told);
    drawRun();
  });
  panel.on("report", (told) => {
    if (told.run !== shown) return;
    reported = told;
    drawRun();
  });

  /** Shows the result of a run that is over, else how it stands. */
  function drawRun() {
    const isOver = OVER.has(now?.state);
    const isKnown = now && reported ? report.draw(reported, isOver) : false;
    if (now && !isKnown) view.draw(now);
    view.node.hidden = isKnown || !now;
  }

  function watch(run) {
    shown = run;
    now = reported = null;
    hideRun();
    drawList(last);
    if (run) panel.act("watch", { run });
  }

  panel.whenOpen(() => {
    panel.act("list");
    if (shown) panel.act("watch", { run: shown });
  });
  return {
    go(other) {
      chosenByHand = other !== "";
      if (other && other !== shown) watch(other);
    },
  };
}
