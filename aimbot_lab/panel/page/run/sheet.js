// What a training is started with: name, seed, steps, and weights of what is drawn and of rewards.

import { el, fill, say } from "../dom.js";
import { brief } from "../format.js";
import { group } from "./sliders.js";

export const NAME_LETTERS = 250; // that a run's name has at most

/** `draw(choice, sheet)` shows a sheet; `start(sheet)` is called with what was chosen. */
export function sheetView(start, cancel, drag) {
  const node = el("form", { className: "sheet", hidden: true });

  function draw(choice, sheet) {
    const name = el("input", { type: "text", value: sheet.name, required: true, maxLength: NAME_LETTERS });
    const seed = number(sheet.seed, { min: "0", step: "1" });
    const inShort = el("span", {}, brief(sheet.total_steps));
    const steps = number(sheet.total_steps, { min: "1", step: "1", on: { input: () => say(inShort, brief(steps.valueAsNumber)) } });
    const rewards = Object.entries(sheet.rewards).map(([term, weight]) => ({ term, input: number(weight, { step: "any" }) }));
    const lessons = sheet.lessons.map((lesson) => mixOf(lesson, drag));
    const go = el("button", { type: "submit", className: "primary" }, "Start");
    node.hidden = false;
    node.onsubmit = async (event) => {
      event.preventDefault();
      go.disabled = true;
      await start({ ...sheet, name: name.value, seed: Number(seed.value), total_steps: Number(steps.value),
        rewards: Object.fromEntries(rewards.map(({ term, input }) => [term, Number(input.value)])),
        lessons: lessons.map((one) => one.value()) });
      go.disabled = false;
    };
    fill(node,
      el("h2", {}, `Start ${choice.title}`), choice.about && el("p", { className: "quiet" }, choice.about),
      el("div", { className: "fields" }, el("label", {}, "Name", name), el("label", {}, "Seed", seed),
        el("label", {}, el("span", {}, "Steps at most: ", inShort), steps)),
      lessons.some((one) => one.groups.length) && [el("h3", {}, "What each lesson draws"),
        el("p", { className: "quiet" }, "Move a slider: the others change so that the sum stays 1. A lock keeps a weight " +
          "while you move others.")],
      lessons.map((one, k) => one.groups.length > 0 && el("details", { open: k === 0 },
        el("summary", {}, `Lesson ${k + 1}: ${sheet.lessons[k].name}`),
        el("div", { className: "groups" }, one.groups.map(({ view }) => view.node)))),
      rewards.length > 0 && el("details", {}, el("summary", {}, "Weights of rewards"),
        el("div", { className: "fields" }, rewards.map(({ term, input }) => el("label", {}, term.replaceAll("_", " "), input)))),
      el("div", { className: "run-head" }, go, el("button", { type: "button", on: { click: cancel } }, "Cancel")));
    name.focus();
    node.scrollIntoView({ block: "nearest" });
  }

  return { node, draw, close() { node.hidden = true; fill(node); } };
}

/** The sliders of a lesson, and its mix as they have it. */
function mixOf(lesson, drag) {
  const targets = Object.keys(lesson.targets);
  const groups = [];
  const add = (of, title, names, weights) => {
    const view = group(title, names, async () => {}, drag);
    view.begin(weights);
    groups.push({ of, view });
  };
  if (targets.length > 1) add("", "Targets", targets, Object.values(lesson.targets));
  for (const [target, weights] of Object.entries(lesson.difficulty)) {
    add(target, `Difficulties of ${target}`, weights.map((_, k) => `difficulty ${k + 1}`), weights);
  }
  const value = () => {
    const made = { ...lesson, difficulty: { ...lesson.difficulty } };
    for (const { of, view } of groups) {
      const weights = view.weights();
      if (of === "") made.targets = Object.fromEntries(targets.map((target, k) => [target, weights[k]]));
      else made.difficulty[of] = weights;
    }
    return made;
  };
  return { groups, value };
}

function number(value, given) {
  return el("input", { type: "number", value: String(value), required: true, max: String(Number.MAX_SAFE_INTEGER), ...given });
}
