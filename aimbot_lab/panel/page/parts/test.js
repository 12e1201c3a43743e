// Test: the test mode of the original. Place things, give targets, see what an agent does.

import { el, fill, say } from "../dom.js";
import { count } from "../format.js";
import { Placing } from "../scene/placing.js";
import { Stage } from "../scene/stage.js";

export const name = "test";
export const title = "Test";
const FIRST = "script:greedy", PERSON = "person", MAX_LINES = 200;

export function open(place, panel) {
  const state = { actor: FIRST, paused: false, lines: 0 };
  const quiet = (kind, body) => panel.ask(kind, body).catch(() => {});
  const stage = new Stage((held) => quiet("hold", held));
  const placing = new Placing(stage, (kind, body) => (
    kind === "preview" ? panel.ask(kind, body) : panel.act(kind, body)));
  const actors = el("select", { id: "actor", on: { change: () => choose(actors.value) } });
  const pause = button("Pause", () => setPaused(!state.paused), "Pause, or continue (p)");
  const step = button("Step", () => { setPaused(true); panel.act("step"); }, "One decision: 0.1 s (.)");
  const modes = el("span", { className: "modes" });
  const undo = button("Undo", () => panel.act("undo"), "The floor as before the last edit (Ctrl+Z)");
  const acting = el("p", { className: "quiet", role: "status" });
  const log = el("ol", { className: "log", tabIndex: 0, aria: { label: "Log", live: "polite" } });
  const file = el("input", { type: "file", accept: ".yaml,.yml", hidden: true, on: { change: load } });
  const tools = el("div", { className: "tools" }, modes, undo);
  const left = el("section", { className: "floor-side" },
    el("div", { className: "map-box" }, stage.map, placing.node), tools);
  const right = el("section", { className: "eyes-side" },
    stage.line, stage.eyesBox, stage.pad,
    el("div", { className: "tools" },
      el("label", { htmlFor: "actor" }, "Who acts"), actors, pause, step), acting,
    el("div", { className: "tools" },
      button("Save agent", saveAgent, "Send the command that asks a trainer to save its agent"),
      button("Save scene", save, "The scene as a YAML file"),
      button("Load scene", () => file.click(), "A scene from a YAML file"), file),
    el("h2", {}, "Log"), log);
  place.append(
    el("h1", {}, "Test mode"),
    el("p", { className: "lead" }, "Choose an object from the menu and place it on the floor with a right " +
      "click. A block gives the agent its target at once; enemies wait for FreeMode. Without a target (Stay) a script stands still; an agent does what it learned."),
    el("div", { className: "game" }, left, right),
  );

  function button(words, click, hint = "") {
    return el("button", { type: "button", title: hint, on: { click } }, words);
  }

  async function choose(actor) {
    actors.disabled = true;
    if (actor.startsWith("run:")) say(acting, "Loading its agent; this may take some seconds …");
    const opened = await panel.ask("choose", { actor }).catch((error) => panel.notice(error.message));
    actors.disabled = false;
    if (!opened) {
      actors.value = state.actor;
      say(acting, "");
      return;
    }
    say(acting, opened.step === null ? "" : `It acts with the weights of step ${count(opened.step)}.`);
    state.actor = opened.actor;
    fill(actors, opened.actors.map(({ key, label }) => el("option", { value: key }, label)));
    actors.value = opened.actor;
    fill(modes, opened.buttons.map(({ key, label, hint }) => (
      button(label, () => panel.act("press", { button: key }), hint))));
    placing.fill(opened.menu);
    stage.begin({
      seconds: opened.seconds, limit: opened.mouse_limit, radians: opened.mouse_radians,
      active: opened.actor === PERSON,
    });
    stage.push(opened.frame);
    showPaused(opened.paused);
  }

  function setPaused(paused) {
    showPaused(paused);
    panel.act("pause", { paused });
  }

  function showPaused(paused) {
    state.paused = paused;
    say(pause, paused ? "Go on" : "Pause");
    stage.line.classList.toggle("paused", paused);
  }

  function write({ line, detail }) {
    state.lines += 1;
    const time = new Date().toLocaleTimeString("en-GB");
    const kind = line.endsWith("Win") ? "won" : line.endsWith("Lose") ? "lost" : "";
    log.prepend(el("li", { className: kind }, el("code", {}, line),
      el("span", { className: "quiet" }, detail ? `${detail} · ${time}` : time)));
    while (log.children.length > MAX_LINES) log.lastChild.remove();
  }

  async function saveAgent() {
    const sent = await panel.act("save_agent");
    if (sent) panel.notice(sent.said, "done");
  }

  async function save() {
    const answer = await panel.act("save_scene", { name: "scene" });
    if (!answer) return;
    const href = URL.createObjectURL(new Blob([answer.text], { type: "text/yaml" }));
    el("a", { href, download: "scene.yaml" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10_000);
  }

  async function load() {
    const [chosen] = file.files;
    file.value = "";
    if (!chosen) return;
    if (chosen.size > 60_000) {
      panel.notice(`${chosen.name} is too large for a scene`);
      return;
    }
    await panel.act("load_scene", { text: await chosen.text() });
  }

  function key(event) {
    if (event.target.matches("input, select, textarea, .eyes") && !event.ctrlKey) return;
    if (event.key === "z" && (event.ctrlKey || event.metaKey)) panel.act("undo");
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "p") setPaused(!state.paused);
    else if (event.key === ".") step.click();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", key);
  panel.atEnd(() => document.removeEventListener("keydown", key));
  panel.on("compiling", (words) => say(acting, words));
  panel.on("frame", (frame) => stage.push(frame));
  panel.on("line", write);
  panel.whenOpen(() => choose(state.actor));
  panel.atEnd(() => { stage.close(); placing.close(); });
  return {};
}
