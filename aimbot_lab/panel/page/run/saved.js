// Agents that a run was asked to save while it trained, and what can be done with them.

import { el, fill } from "../dom.js";
import { count } from "../format.js";
import { commandLine } from "./report.js";

export function savedView(notice) {
  const node = el("section", { className: "saved", hidden: true });
  const commands = new Map(); // by name: how to measure it, once known

  function clear() {
    node.hidden = true;
    delete node.dataset.key;
    commands.clear();
  }

  /** What has just been saved. */
  function tell(kept) {
    commands.set(kept.name, kept.evaluate);
    delete node.dataset.key;
  }

  function draw(told) {
    const names = told.saved ?? [];
    const key = `${told.run_id}:${names}:${[...commands.keys()]}`;
    if (node.dataset.key === key) return;
    node.dataset.key = key;
    node.hidden = names.length === 0;
    fill(node, el("h2", {}, "Saved agents"),
      el("p", { className: "quiet" }, "They stay with the run. Test and Play list them, too."),
      el("ul", { className: "plain" }, names.map((name) => el("li", {},
        el("strong", {}, stepWords(name)), " ",
        el("a", { className: "button", href: `#watch/${told.run_id}/${name}` }, "Watch"), " ",
        commands.has(name) && commandLine(commands.get(name), notice)))));
  }

  return { node, draw, clear, tell };
}

/** "step 81,920" of step-81920. */
export function stepWords(name) {
  return `step ${count(Number(name.replace("step-", "")))}`;
}
