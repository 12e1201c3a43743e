// Play: a person plays episodes, and others the same ones beside.

import { el, fill, say } from "../dom.js";
import { rate } from "../format.js";
import { resultWords } from "../scene/match.js";
import { Stage } from "../scene/stage.js";

export const name = "play";
export const title = "Play";
const MAX_SEED = 2 ** 31 - 1;

export function open(place, panel) {
  const state = { target: "", difficulty: 0, seed: 1, beside: "script:greedy", away: "script:greedy",
    match: "", names: [], over: false };
  const stage = new Stage((held) => {
    if (stage.person.held.size) run();
    panel.ask("hold", held).catch(() => {});
  });
  const targets = chooser("target", (value) => { state.target = value; });
  const levels = chooser("level", (value) => { state.difficulty = Number(value); });
  const seed = el("input", {
    id: "seed", type: "number", min: 0, max: MAX_SEED, value: "1", className: "seed",
    on: { change: () => { state.seed = Math.min(Math.max(Math.trunc(Number(seed.value)) || 0, 0), MAX_SEED); begin(); } },
  });
  const beside = chooser("beside", (value) => { state[state.names.length ? "away" : "beside"] = value; });
  const other = el("label", { htmlFor: "beside" }, "Beside you ", beside);
  const start = el("button", { type: "button", className: "primary", on: { click: go } }, "Start");
  const again = el("button", { type: "button", title: "The same episode once more",
    on: { click: () => { look(); begin(); } } }, "Again");
  const keep = el("button", { type: "button", disabled: true, on: { click: save } }, "Save replay");
  const banner = el("p", { className: "banner", role: "status" });
  const body = el("tbody");
  const table = el("table", { className: "scores" },
    el("caption", {}, "Results of this page"),
    el("thead", {}, el("tr", {}, ["Player", "Episode", "Won", "Win rate (95 %)", "Mean time to win"]
      .map((word) => el("th", { scope: "col" }, word)))),
    body);
  const scores = el("div", { className: "scroll", hidden: true, tabIndex: 0, role: "region",
    aria: { label: "Results of this page" } }, table);
  const log = el("ol", { className: "log", tabIndex: 0, aria: { label: "Log", live: "polite" } });
  stage.eyesBox.append(banner);
  place.append(
    el("h1", {}, "Play"),
    el("p", { className: "lead" }, "Play the agent's episodes yourself. Go to the circle, or shoot " +
      "the enemies in it; the arrow at the top leads there. You have 30 seconds. With the target duel you " +
      "play a match against a script or a run's agent: shoot it down."),
    el("div", { className: "tools" },
      labelled("Target", targets), labelled("Difficulty", levels), labelled("Seed", seed),
      other),
    el("div", { className: "game play" },
      el("section", {}, stage.line, el("div", { className: "fighters" }, stage.cards.nodes), stage.eyesBox, stage.pad, el("div", { className: "tools" }, start, again, keep)),
      el("section", {}, stage.map)),
    scores, el("h2", {}, "Log"), log,
  );

  function chooser(id, choose) {
    const node = el("select", { id, on: { change: () => {
      choose(node.value);
      if (!node.matches(":focus-visible")) look(); // chosen by the mouse
      begin();
    } } });
    return node;
  }

  /** Gives the view the keyboard. */
  function look() {
    stage.eyes.focus({ preventScroll: true });
  }

  function labelled(words, input) {
    return el("label", { htmlFor: input.id }, `${words} `, input);
  }

  async function begin() {
    const { target, difficulty, seed: number } = state, isMatch = target !== "" && target === state.match;
    const rival = isMatch ? state.away : state.beside;
    const begun = await panel.act("begin", { target, difficulty, seed: number, beside: rival });
    if (!begun) return;
    Object.assign(state, { names: begun.names, match: begun.match });
    other.firstChild.data = begun.names.length ? "Against " : "Beside you ";
    Object.assign(state, { target: begun.target, over: false });
    fill(targets, Object.keys(begun.targets).map((key) => el("option", { value: key }, key)));
    targets.value = begun.target;
    const count = begun.targets[begun.target];
    state.difficulty = Math.min(difficulty, count);
    fill(levels, el("option", { value: "0" }, count ? "any" : "–"),
      Array.from({ length: count }, (_, k) => el("option", { value: String(k + 1) }, String(k + 1))));
    levels.value = String(state.difficulty);
    seed.value = String(number);
    fill(beside, !begun.names.length && el("option", { value: "" }, "no one"),
      begun.actors.map(({ key, label }) => el("option", { value: key }, label)));
    beside.value = rival;
    stage.begin({
      seconds: begun.seconds, limit: begun.mouse_limit, radians: begun.mouse_radians, active: true,
      names: begun.names,
    });
    stage.push(begun.frame);
    keep.disabled = true;
    say(start, "Start");
    show(stage.pad.hidden ? "Press Start, or walk with WASD. Click to look with the mouse."
      : "Press Start, or walk with the buttons.", "");
  }

  function run() {
    if (stage.person.runs || state.over) return;
    stage.person.runs = true;
    show("", "");
    say(start, stage.pad.hidden ? "Take the mouse" : "Playing");
    panel.act("pause", { paused: false });
  }

  async function go() {
    if (state.over) {
      state.seed = Math.min(state.seed + 1, MAX_SEED);
      await begin();
    }
    if (stage.pad.hidden) stage.person.lock();
    run();
  }

  function show(words, kind) {
    say(banner, words);
    banner.className = `banner ${kind}`;
    stage.hint.classList.toggle("quieter", words !== "");
  }

  panel.on("compiling", (words) => show(words, ""));
  panel.on("frame", (frame) => stage.push(frame));
  panel.on("ended", ({ who, line, detail, fighters, table: rows }) => {
    const won = line.endsWith("Win");
    if (who === "you") {
      state.over = true;
      stage.person.runs = false;
      if (document.pointerLockElement) document.exitPointerLock();
      const kind = won ? "won" : line.endsWith("Draw") ? "" : "lost";
      if (fighters.length) show(resultWords(fighters, state.names, line), kind);
      else show(won ? "Won!" : "Lost: the time is up", kind);
      say(start, "Next episode");
      if (!stage.person.held.size) start.focus(); // Space may still be held to shoot
      keep.disabled = false;
    }
    log.prepend(el("li", { className: won ? "won" : "lost" }, el("strong", {}, who),
      el("code", {}, line), el("span", { className: "quiet" }, detail)));
    scores.hidden = false;
    fill(body, rows.map((row) => el("tr", {}, [
      row.who, row.cell, `${row.wins} of ${row.episodes}`,
      rate(row.wins / row.episodes, row.low, row.high, 0),
      row.seconds === null ? "–" : `${row.seconds.toFixed(1)} s`,
    ].map((cell, k) => el(k ? "td" : "th", k ? {} : { scope: "row" }, cell)))));
  });

  async function save() {
    const answer = await panel.act("save_replay");
    if (!answer) return;
    const href = URL.createObjectURL(new Blob([answer.text], { type: "application/json" }));
    el("a", { href, download: answer.name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  }

  panel.whenOpen(begin);
  panel.atEnd(() => stage.close());
  return {};
}
