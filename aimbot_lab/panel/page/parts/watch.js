// Watch: the newest agent of a run at play, from above, with its reward by term.

import { el, fill, say } from "../dom.js";
import { count, percent } from "../format.js";
import { barsView, mindView } from "../bars.js";
import { Eyes } from "../scene/eyes.js";
import { awayScene, isMatch, MatchCards, resultWords } from "../scene/match.js";
import { TopDown } from "../topdown.js";
import { stepWords } from "../run/saved.js";
import { stateWords } from "./training.js";

export const name = "watch";
export const title = "Watch";

const LOOKING = "Loading runs …";

export function open(place, panel, rest) {
  let shown = rest; // a run, and after a slash one of the agents that it saved
  const choice = el("select", { aria: { label: "Run" }, on: { change: () => {
    panel.go(`#watch/${choice.value}`);
  } } });
  const heading = el("h1", {}, "Watch");
  const hint = el("p", { className: "lead", role: "status" }, "");
  const goal = el("strong", { className: "goal" });
  const clock = el("span", { className: "quiet" });
  const agent = el("span", { className: "state" });
  const canvas = el("canvas", { className: "scene", role: "img",
    aria: { label: "The scene from above" } });
  const view = new TopDown(canvas);
  const eyesCanvas = el("canvas", { className: "eyes", role: "img",
    aria: { label: "The scene through the agent's eyes" } });
  const eyes = new Eyes(eyesCanvas);
  const awayCanvas = el("canvas", { className: "eyes", role: "img", hidden: true,
    aria: { label: "The scene through the away agent's eyes" } });
  const awayEyes = new Eyes(awayCanvas);
  const cards = new MatchCards();
  const verdict = el("p", { className: "verdict", role: "status" });
  const bars = barsView();
  const mind = mindView();
  const lines = el("ol", { className: "results", aria: { label: "Results" } });
  const stage = el("div", { className: "stage", hidden: true },
    el("figure", {}, canvas, verdict, el("figcaption", {}, goal, clock)),
    el("div", { className: "beside" }, cards.nodes[0], eyesCanvas, cards.nodes[1], awayCanvas,
      el("h2", {}, "Reward by term, in this episode"), bars.node, mind.node,
      el("h2", {}, "Results"), lines));
  place.append(el("div", { className: "run-head" }, heading, choice, agent), hint, stage);
  panel.atEnd(() => { view.close(); eyes.close(); awayEyes.close(); });

  let known = "";
  agent.hidden = choice.hidden = true;
  panel.on("runs", ({ runs, complete }) => {
    const key = JSON.stringify(runs.map((run) => [run.run_id, run.state, run.name, run.saved]));
    if (key !== known) drawChoice(runs);
    known = key;
    const isKnown = complete || runs[0]?.state === "trains"; // which is the newest
    if (!isKnown && (!shown || !runs.length)) say(hint, LOOKING);
    else if (!runs.length) {
      fill(hint, "There is no run to watch yet. ", el("a", { href: "#start" }, "Choose a curriculum"),
        " to begin one.");
    }
    if (!shown && isKnown && runs.length) watch(runs[0].run_id);
  });

  function drawChoice(runs) {
    fill(choice, runs.map((run) => {
      const title = run.name || run.run_id.slice(0, 8);
      return [el("option", { value: run.run_id }, `${title} (${stateWords(run.state)})`),
        run.saved.map((name) => el("option", { value: `${run.run_id}/${name}` },
          `${title}, saved at ${stepWords(name)}`))];
    }));
    choice.value = shown;
    choice.hidden = runs.length === 0;
  }

  let episode = -1;
  panel.on("scene", (told) => {
    if (shown !== (told.agent ? `${told.run}/${told.agent}` : told.run)) return;
    stage.hidden = Boolean(told.waiting);
    hint.hidden = !told.waiting;
    agent.hidden = Boolean(told.waiting);
    if (told.waiting) {
      say(hint, told.waiting);
      return;
    }
    if (told.episode !== episode) view.begin();
    view.show(told.scene, told.episode === episode ? told.period : 0);
    eyes.show(told.scene, told.episode === episode ? told.period : 0);
    awayCanvas.hidden = !isMatch(told.scene);
    if (isMatch(told.scene)) awayEyes.show(awayScene(told.scene), told.episode === episode ? told.period : 0);
    cards.show(told.scene, told.names);
    const isOver = told.ended && isMatch(told.scene);
    say(verdict, isOver ? resultWords(told.scene.fighters, told.names, told.ended.line) : "");
    episode = told.episode;
    draw(told);
  });

  function draw(told) {
    say(agent, `weights of step ${count(told.agent_step)}`);
    say(goal, told.scene.target || told.goal);
    const left = told.time_limit === null ? "" : ` of ${told.time_limit}`;
    const what = told.scene.target ? told.goal : "";
    say(clock, told.ended ? `${told.ended.words} · ${told.ended.detail}` : `${what}${what ? " · " : ""}${told.seconds}${left} ${told.time_unit}`);
    bars.draw(told.terms);
    mind.draw(told.mind);
    fill(lines, told.lines.map(({ words, detail }) => (
      el("li", {}, words, " ", el("span", { className: "quiet" }, detail)))));
  }

  function watch(run) {
    shown = run;
    choice.value = run;
    stage.hidden = agent.hidden = true;
    hint.hidden = false;
    say(hint, "Loading the agent; the first time this takes some seconds …");
    const [id, name = ""] = run.split("/");
    panel.act("watch", { run: id, agent: name });
  }

  panel.whenOpen(() => {
    panel.act("list");
    if (shown) watch(shown);
  });
  return { go(other) { if (other && other !== shown) watch(other); } };
}
