// Start: choose what to train. A choice holds until that training ends.

import { el, fill, say } from "../dom.js";
import { brief, clock, count, counted } from "../format.js";
import { sheetView } from "../run/sheet.js";

export const name = "start";
export const title = "Start";

export function open(place, panel) {
  const sheet = sheetView(begin, () => sheet.close(), (mix) => panel.act("drag", mix));
  const state = { choices: null, held: null, here: "", asked: "" };
  const held = el("section", { className: "held", hidden: true });
  const main = el("div", { className: "cards main-cards" });
  fill(main, el("p", { className: "quiet" }, "Loading curricula …"));
  const others = el("div", { className: "cards" });
  const more = el("details", { className: "more" }, el("summary", {}, "Other worlds and your own files"));
  const own = el("p", { className: "quiet" });
  more.append(own, others);
  place.append(
    el("h1", {}, "What should the agent learn?"),
    el("p", { className: "lead" }, "Choose a curriculum. The agent trains on this machine, and you " +
      "can watch and steer it."),
    held, sheet.node, main,
    el("h2", { className: "self" }, "Or try it yourself"),
    el("div", { className: "cards" },
      way("#test", "Test", "Place enemies and target blocks in an arena, and see what an agent or a script does"),
      way("#play", "Play", "Play the agent's episodes with keys and mouse, with an agent beside you")),
    more,
  );

  function way(href, name, about) {
    return el("a", { className: "card", href }, el("strong", {}, name), el("span", { className: "about" }, about));
  }

  function draw() {
    if (state.choices === null) return;
    const isHeld = state.held?.alive ?? false;
    fill(main, state.choices.filter((one) => one.main).map((one) => card(one, isHeld)));
    const rest = state.choices.filter((one) => !one.main);
    fill(others, rest.map((one) => card(one, isHeld)));
    say(own, `Curriculum files of ${state.here} and its folder curricula are listed here as well.`);
    drawHeld();
  }

  function drawHeld() {
    const training = state.held;
    held.hidden = training === null;
    if (training === null) return;
    const way = training.sweep ? `#sweep/${encodeURIComponent(training.sweep)}` : `#training/${training.run_id ?? ""}`;
    const failed = !training.alive && training.run_id === null && !training.fault;
    if (training.alive) {
      fill(held,
        el("strong", {}, training.run_id ? `${training.title} trains` : `${training.title} is starting`),
        el("span", {}, ` (since ${clock(training.begun_ms)}). A choice holds until the run ends. `),
        training.run_id && el("a", { className: "button primary", href: way }, "Watch it learn"));
    } else {
      fill(held,
        el("strong", {}, failed ? `${training.title} did not begin` : `${training.title} has ended`),
        training.run_id && el("a", { className: "button", href: way }, "Look at the run"),
        training.fault && el("p", {}, `Its run is not known: ${training.fault}`),
        training.run_id === null && el("pre", {}, training.last_words || "It said nothing."));
    }
    held.classList.toggle("faulty", failed);
  }

  function card(choice, isHeld) {
    if (choice.faults.length) return faulty(choice);
    const lessons = counted(choice.lessons.length, "lesson");
    const isMine = state.asked === choice.key;
    return el("button", {
      className: "card", type: "button", disabled: isHeld || state.asked !== "",
      data: { key: choice.key }, on: { click: () => choose(choice) },
    },
    el("strong", {}, choice.title),
    el("span", { className: "about" }, choice.about),
    el("span", { className: "quiet" },
      isMine ? "opening …" : `${lessons}, at most ${brief(choice.total_steps)} steps, ` +
        `world ${choice.world}${choice.code && `, runs the ${choice.code}`}`));
  }

  function faulty(choice) {
    return el("div", { className: "card faulty" },
      el("strong", {}, choice.title),
      el("span", { className: "about" }, `${count(choice.faults.length)} fault(s): mend the file, ` +
        "then load the page again."),
      el("ul", { className: "faults" }, choice.faults.map((line) => el("li", {}, line))));
  }

  async function choose(choice) {
    state.asked = choice.key;
    draw();
    const found = await panel.act("sheet", { key: choice.key });
    state.asked = "";
    draw();
    if (found) sheet.draw(choice, found);
  }

  async function begin(wanted) {
    const found = await panel.act("begin", wanted);
    if (!found) return;
    sheet.close();
    state.held = found.started;
    draw();
  }

  panel.on("holding", (body) => {
    const wasTraining = state.held?.alive && !state.held.run_id;
    state.held = body.started;
    draw();
    if (wasTraining && body.started?.run_id && !body.started.sweep) panel.go(`#training/${body.started.run_id}`);
  });
  panel.whenOpen(async () => {
    const body = await panel.act("offer");
    if (!body) return;
    Object.assign(state, body);
    more.open ||= body.choices.some((one) => !one.shipped);
    draw();
  });
  return {};
}
