// Sliders of the weights of a run that trains: they sum to 1, and each has a lock.

import { el, fill, lockIcon, say } from "../dom.js";
import { count } from "../format.js";
import { most, texts } from "./shares.js";

const STEP = 0.01;
const PAUSE = 250; // ms without a movement, after which a change is sent

/**
 * All sliders of a run; `change(target, names, moves, lock, unlock)` sends what was moved, and
 * `drag(mix)` asks the server how the other weights of a mix give way.
 */
export function slidersView(change, drag) {
  const node = el("section", { className: "sliders", aria: { label: "What is drawn" } });
  const groups = new Map(); // target, or "" for the targets themselves

  function draw(told) {
    const status = told.status;
    node.hidden = !status || told.state !== "trains";
    if (node.hidden) return;
    const wanted = [];
    if (status.targets.targets.length > 1) {
      wanted.push(["", "Targets", status.targets.targets, status.targets]);
    }
    for (const [target, held] of Object.entries(status.difficulty)) {
      const names = held.weights.map((_, k) => `difficulty ${k + 1}`);
      wanted.push([target, `Difficulties of ${target}`, names, held]);
    }
    const key = wanted.map(([target, , names]) => `${target}:${names}`).join("|");
    if (node.dataset.key !== key) {
      node.dataset.key = key;
      groups.clear();
      for (const [target, title, names] of wanted) {
        groups.set(target, group(title, names, (...what) => change(target, ...what), drag));
      }
      fill(node, el("h2", {}, "Steer: which episodes come next"), el("p", { className: "quiet" },
        "Move a slider: the others change so that the sum stays 1. A lock keeps a weight. The " +
        "next lesson begins with its own weights."),
      el("div", { className: "groups" }, [...groups.values()].map((one) => one.node)));
    }
    for (const [target, , , held] of wanted) groups.get(target).take(held, told, target);
  }

  function clear() {
    groups.clear();
    delete node.dataset.key;
    fill(node);
    node.hidden = true;
  }

  return { node, draw, clear };
}

/** The sliders of one mix: `take` shows weights, `weights()` are those that it shows. */
export function group(title, names, send, drag) {
  const own = { weights: names.map(() => 0), locked: names.map(() => false) };
  let sent = 0; // changes on their way
  let timer = 0;
  let pending = null; // the slider that moved and was not sent: {k, wanted, before}
  let asking = null; // what the server is asked of it, until it has answered for the newest place
  const note = el("p", { className: "note quiet", role: "status" });
  const rows = names.map((label, k) => row(label, k));
  const node = el("fieldset", {}, el("legend", {}, title), rows.map((one) => one.node), note);

  function row(label, k) {
    const value = el("output", {});
    const slider = el("input", {
      type: "range", min: "0", max: "1", step: String(STEP), aria: { label: `${title}: ${label}` },
      on: { input: () => move(k, Number(slider.value)), change: flush },
    });
    const lock = el("button", {
      type: "button", className: "lock", aria: { pressed: "false", label: `Lock ${label}` },
      on: { click: () => toggle(k) },
    });
    return { node: el("div", { className: "slider" }, el("span", {}, label), slider, value, lock),
      slider, value, lock };
  }

  function show() {
    const shown = texts(own.weights);
    rows.forEach(({ slider, value, lock }, k) => {
      const isHeld = pending?.k === k && asking; // by a person, who is ahead of the answer
      if (!isHeld && Number(slider.value) !== own.weights[k]) slider.value = String(own.weights[k]);
      slider.disabled = own.locked.every((one, other) => one || other === k) || own.locked[k]; // nothing gives way
      slider.setAttribute("aria-valuetext",
        `${shown[k]}, at most ${most(own.weights, own.locked, k).toFixed(2)}`);
      say(value, shown[k]);
      lock.setAttribute("aria-pressed", String(own.locked[k]));
      if (lock.dataset.locked !== String(own.locked[k])) fill(lock, lockIcon(own.locked[k]));
      lock.dataset.locked = String(own.locked[k]);
    });
    node.dataset.sum = shown.reduce((total, one) => total + Number(one), 0).toFixed(3);
  }

  async function move(k, wanted) {
    if (pending !== null && pending.k !== k) await flush();
    const before = pending?.before ?? { weights: [...own.weights], locked: [...own.locked] };
    pending = { k, wanted, before };
    asking ??= follow();
    say(note, "waiting …");
    clearTimeout(timer);
    timer = setTimeout(flush, PAUSE);
  }

  /** Shows what the server says of the slider that is dragged, until it stays where it is. */
  async function follow() {
    node.classList.add("asking");
    let shown = null;
    while (pending !== null && pending !== shown) {
      shown = pending;
      const { k, wanted, before } = shown;
      const answer = await drag({ ...before, place: k, wanted });
      own.weights = answer ? answer.weights : before.weights;
      if (!answer && pending === shown) pending = null; // refused, and said so
      show();
    }
    asking = null;
    node.classList.remove("asking");
    show();
  }

  async function flush() {
    clearTimeout(timer);
    const last = pending;
    await asking;
    if (last === null || pending !== last) return;
    pending = null;
    await ask([[last.k, own.weights[last.k]]], [], []);
  }

  async function toggle(k) {
    await flush();
    own.locked = own.locked.map((one, place) => (place === k ? !one : one));
    show();
    ask([], own.locked[k] ? [k] : [], own.locked[k] ? [] : [k]);
  }

  async function ask(moves, lock, unlock) {
    sent += 1;
    say(note, "waiting …");
    node.classList.add("waiting");
    try {
      await send(names, moves, lock, unlock);
    } finally {
      sent -= 1;
      if (!sent) say(note, "");
      node.classList.toggle("waiting", sent > 0);
    }
  }

  /** What the run has; what a person moves at this moment stays as it is. */
  function take(held, told, target) {
    if (sent > 0 || pending !== null) return;
    const newest = told.held[target];
    const isNewer = newest && newest.step >= told.status.step &&
      newest.lesson === told.status.lesson + 1;
    const { weights, locked } = isNewer ? newest : held;
    Object.assign(own, { weights: [...weights], locked: [...locked] });
    show();
    const holds = newest && newest.lesson === told.status.lesson + 1;
    say(note, holds ? `holds from step ${count(newest.step)} on` : "as the lesson has it");
  }

  /** Begins with `weights`, none locked, of a training that has not begun. */
  function begin(weights) {
    own.weights = [...weights];
    show();
  }

  return { node, take, begin, weights: () => [...own.weights] };
}
