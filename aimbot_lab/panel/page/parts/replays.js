// Replays: recorded episodes, played, scrubbed and stepped through.

import { barsView, mindView } from "../bars.js";
import { el, fill, say } from "../dom.js";
import { count, percent } from "../format.js";
import { playerControls } from "../player.js";
import { Eyes } from "../scene/eyes.js";
import { awayScene, isMatch, MatchCards, resultWords } from "../scene/match.js";
import { withToken } from "../token.js";
import { TopDown } from "../topdown.js";

export const name = "replays";
export const title = "Replays";

const PATH_SECONDS = 10;
const SOUGHT = 8; // of the newest runs, for one that has replays

export function open(place, panel, rest) {
  const waiting = el("option", { value: "" }, "this folder");
  const runs = el("select", { id: "replay-run", on: { change: () => listOf(runs.value) } },
    waiting);
  const list = el("ul", { className: "runs", aria: { label: "Replays" } });
  const file = el("input", { type: "file", id: "replay-file", accept: ".json", on: { change: give } });
  const heading = el("h1", {}, "Replays");
  const about = el("p", { className: "lead" }, "An episode that was recorded: choose one of a run, of this folder, or open a file.");
  const canvas = el("canvas", { className: "scene", role: "img",
    aria: { label: "The replay from above" } });
  const view = new TopDown(canvas);
  const eyesCanvas = el("canvas", { className: "eyes", role: "img",
    aria: { label: "The replay through the agent's eyes" } });
  const eyes = new Eyes(eyesCanvas);
  const awayCanvas = el("canvas", { className: "eyes", role: "img", hidden: true,
    aria: { label: "The replay through the away agent's eyes" } });
  const awayEyes = new Eyes(awayCanvas);
  const cards = new MatchCards();
  const verdict = el("p", { className: "verdict", role: "status" });
  const bars = barsView();
  const mind = mindView();
  const words = el("strong", {});
  const clock = el("span", { className: "quiet" });
  const loaded = el("span", { className: "quiet" });
  const controls = playerControls(show);
  const stage = el("div", { className: "stage", hidden: true },
    el("figure", {}, canvas, controls.node, verdict, el("figcaption", {}, words, clock, loaded)),
    el("div", { className: "beside" }, cards.nodes[0], eyesCanvas, cards.nodes[1], awayCanvas,
      el("h2", {}, "Reward by term, so far"), bars.node, mind.node));
  place.append(
    el("aside", {}, el("label", { className: "quiet", htmlFor: "replay-run" }, "Replays of"), runs, list,
      el("label", { className: "button", htmlFor: "replay-file" }, "Open a file"), file),
    el("div", {}, heading, about, stage));
  panel.atEnd(() => { view.close(); eyes.close(); awayEyes.close(); controls.close(); });

  let own = null; // replays of the folder, once they are told
  let known = "";
  let whole = false; // whether all runs are known
  let chosen = "";
  let told = null;
  let moments = [];

  panel.on("runs", (body) => {
    const key = body.complete + body.runs.map((run) => run.run_id + run.name).join();
    if (key === known) return;
    const isWhole = body.complete && !whole; // from now on: no run is missing
    whole = body.complete;
    known = key;
    const before = runs.value;
    fill(runs, el("option", { value: "" }, "this folder"), body.runs.map((run) =>
      el("option", { value: run.run_id }, run.name || run.run_id.slice(0, 8))));
    const first = !body.complete || own === null || own.length ? "" : body.runs[0]?.run_id ?? "";
    runs.value = before || rest || first;
    if (runs.value !== before || (isWhole && rest)) listOf(runs.value, rest ? 0 : SOUGHT);
  });

  /** Lists the replays of a run; where it has none, those of the first of the next few that has. */
  async function listOf(run, more = 0) {
    const found = run === "" ? own ?? [] : (await panel.act("of_run", { run }))?.replays ?? [];
    if (run !== runs.value) return;
    if (more > 0 && run !== "" && !found.length) {
      runs.value = more > 1 ? runs.options[runs.selectedIndex + 1]?.value ?? "" : "";
      listOf(runs.value, more - 1);
      return;
    }
    fill(list, found.length === 0 && el("li", { className: "quiet" }, "There is no replay here yet. " +
      "A run keeps some of each lesson, at the lesson's end."), found.map((one) => el("li", {},
      el("button", { type: "button", className: "run-link", data: { key: one.key },
        on: { click: () => choose(one.key) } }, one.title))));
    mark();
    if (run !== "" && chosen === "" && found.length) choose(found.at(-1).key); // how it does in the end
  }

  function mark() {
    for (const button of list.querySelectorAll("button")) {
      if (button.dataset.key === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  async function give() {
    if (!file.files.length) return;
    const answer = await fetch(withToken("/replay"), { method: "POST", body: file.files[0] });
    file.value = "";
    if (answer.ok) choose((await answer.json()).key);
    else panel.notice((await answer.text()).trim() || "that file can't be read");
  }

  async function choose(key) {
    chosen = key;
    mark();
    say(about, "The replay is played once to check it …");
    controls.pause();
    const found = await panel.act("choose", { key });
    if (chosen !== key) return;
    stage.hidden = !found;
    say(about, "");
    if (!found) return;
    told = found;
    moments = [];
    say(heading, told.cell || "Replay");
    say(about, [told.title, told.player, told.result].filter(Boolean).join(" · "));
    await load(key);
  }

  /** Fetches the rest of a replay, portion by portion. */
  async function load(key) {
    while (moments.length < told.moments && chosen === key) {
      const portion = await panel.act("moments", { key, first: moments.length });
      if (chosen !== key || !portion?.moments.length) return;
      for (const moment of portion.moments) {
        const before = moments.at(-1)?.scene ?? {};
        moments.push({ ...moment, scene: { ...before, ...moment.scene } });
      }
      const isFirst = portion.first === 0;
      say(loaded, moments.length < told.moments
        ? `${percent(moments.length / told.moments, 0)} loaded` : "");
      controls.set({ count: moments.length, period: told.period });
      if (isFirst) controls.begin();
    }
  }

  /** Shows one moment; `smooth` where it follows the one before in play. */
  function show(number, { smooth = false, seconds = 0 } = {}) {
    const moment = moments[number];
    if (!moment) return;
    const since = moment.seconds - PATH_SECONDS;
    const way = moments.slice(0, number + 1).filter((one) => one.seconds >= since);
    view.show(moment.scene, seconds, { smooth });
    eyes.show(moment.scene, smooth ? seconds : 0);
    awayCanvas.hidden = !isMatch(moment.scene);
    if (isMatch(moment.scene)) awayEyes.show(awayScene(moment.scene), smooth ? seconds : 0);
    cards.show(moment.scene, told.names);
    const isOver = moment.line && isMatch(moment.scene);
    say(verdict, isOver ? resultWords(moment.scene.fighters, told.names, moment.line) : "");
    if (moment.scene.kind === "floor") {
      view.setPath(way.map((one) => [one.scene.x, one.scene.z, one.seconds]));
    }
    const terms = told.terms.map((term, k) => [term, moment.terms[k] ?? 0, moment.earned[k] ?? 0]);
    bars.draw(terms);
    mind.draw(moment.mind, told.judged === null ? "" : `By the agent of step ${count(told.judged)}.`);
    say(words, moment.line ?? moment.words);
    say(clock, `${moment.seconds} ${told.time_unit} · ${moment.goal} · reward ${moment.reward}`);
  }

  panel.whenOpen(async () => {
    own = (await panel.act("of_folder"))?.replays ?? [];
    panel.act("list");
    if (runs.value === "" && (whole || !rest)) listOf(""); // else a link may name a run
    if (chosen && told && moments.length < told.moments) load(chosen);
  });
  return { go(run) {
    if (run && run !== runs.value) {
      runs.value = run;
      listOf(run);
    }
  } };
}
