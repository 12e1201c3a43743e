// What a run has come to: its outcome, its lessons, its curves, and what can be done with it.

import { curveView } from "../chart.js";
import { el, fill, say } from "../dom.js";
import { brief, count, duration, isNumber, percent } from "../format.js";
import { tile } from "../tile.js";
import { rateWords } from "./proof.js";

export function reportView(notice) {
  const outcome = el("p", { className: "outcome" });
  const tiles = {
    steps: tile("steps"), seconds: tile("trained for"), speed: tile("steps per second"),
    rate: tile("win rate, last passed lesson"),
  };
  const lessons = el("table", { className: "trials" });
  const cells = el("table", { className: "trials" });
  const lost = el("ul", {});
  const result = el("div", {}, outcome,
    el("div", { className: "tiles" }, Object.values(tiles).map((one) => one.node)),
    scroll(lessons, "Lessons"), scroll(cells, "Cells"), lost);
  const heading = el("h2", {}, "Curves");
  const curves = el("div", { className: "curves" });
  const commands = el("section", { className: "commands" });
  const fault = el("p", { className: "fault" });
  const node = el("div", { className: "report", hidden: true }, fault, result, heading, curves, commands);
  const views = [];

  function clear() {
    node.hidden = true;
  }

  /** Whether the result is known, so that the last live state need not be shown. */
  function draw(told, isOver) {
    const found = isOver ? told.result : null;
    node.hidden = false;
    say(fault, told.fault);
    fault.hidden = told.fault === "";
    result.hidden = found === null;
    if (found !== null) drawResult(found, told);
    drawCurves(told, found?.lessons.map((one) => one.ended_at_step) ?? []);
    drawCommands(isOver ? told.commands : []);
    return found !== null;
  }

  function drawResult(found, told) {
    say(outcome, told.outcome);
    say(tiles.steps.value, count(found.steps));
    say(tiles.steps.below, `seed ${found.seed}`);
    say(tiles.seconds.value, duration(told.training_seconds));
    say(tiles.seconds.below, `${duration(told.seconds)} from start to end`);
    say(tiles.speed.value, brief(told.steps_per_second));
    say(tiles.speed.below, isNumber(told.training_seconds) ? "while it trained" : "at its last report");
    if (found.has_wins === false) return drawReturns(found);
    const last = [...found.lessons].reverse().find((one) => isNumber(one.ended_at_step));
    say(tiles.rate.title, "win rate, last passed lesson");
    say(tiles.rate.value, percent(last?.win_rate));
    say(tiles.rate.below, last ? `${last.name}${last.asked_words && `: ${last.asked_words}`}` : "none was passed");
    drawTable(lessons, "Lessons", ["", "lesson", "passed at step", "episodes", "win rate (95 %)",
      "over the last", "asks for", "evidence"],
      found.lessons.map((one, k) => [k + 1, one.name, isNumber(one.ended_at_step)
        ? count(one.ended_at_step) : "not passed", count(one.episodes), rateWords(one, one.window),
      one.window ? count(one.window) : "–", one.asked_words.replace(/^win rate /, "") || "–",
      one.found_words || "–"]));
    drawTable(cells, "Last lesson, by target and difficulty",
      ["target", "difficulty", "win rate (95 %)", "won"],
      found.cells.map((one) => [one.target, one.difficulty || "any", rateWords(one, one.episodes),
        `${count(one.wins)} of ${count(one.episodes)}`]));
    cells.parentElement.hidden = found.cells.length === 0;
    fill(lost, found.regressions.map((one) => el("li", {}, lossWords(one))));
  }

  /** Of a world without wins: mean returns take the place of win rates. */
  function drawReturns(found) {
    const now = found.lessons.find((one) => !isNumber(one.ended_at_step)) ?? found.lessons.at(-1);
    say(tiles.rate.title, "mean return");
    say(tiles.rate.value, isNumber(now.mean_return) ? brief(now.mean_return) : "–");
    say(tiles.rate.below, `of the last ${count(now.window)} episodes`);
    drawTable(lessons, "Lessons", ["", "lesson", "passed at step", "episodes", "mean return",
      "over the last", "asks for", "evidence"],
      found.lessons.map((one, k) => [k + 1, one.name, isNumber(one.ended_at_step)
        ? count(one.ended_at_step) : "not passed", count(one.episodes),
      isNumber(one.mean_return) ? brief(one.mean_return) : "–", one.window ? count(one.window) : "–",
      one.asked_words || "–", one.found_words || "–"]));
    cells.parentElement.hidden = true;
    fill(lost);
  }

  function drawCurves(told, passed) {
    say(heading, told.result === null ? "Curves so far" : "Curves");
    heading.hidden = told.curves.length === 0;
    while (views.length < told.curves.length) views.push(curveView());
    for (const view of views.splice(told.curves.length)) view.close();
    if (curves.children.length !== views.length) fill(curves, views.map((view) => view.node));
    told.curves.forEach((curve, k) => views[k].draw({ ...curve, passed,
      lines: [{ ...curve, name: "value", role: "accent" }] }));
  }

  function drawCommands(list) {
    const key = JSON.stringify(list);
    if (commands.dataset.key === key) return;
    commands.dataset.key = key;
    fill(commands, list.length > 0 && el("h2", {}, "Go on in a terminal"),
      list.map(({ what, line }) => el("div", { className: "command" },
        el("span", { className: "quiet" }, what), commandLine(line, notice))));
  }

  return { node, draw, clear, close: () => views.forEach((view) => view.close()) };
}

/** A command with a button that copies it. */
export function commandLine(line, notice) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(line);
      notice("Copied.", "done");
    } catch {
      notice("This browser lets no page copy text: select the line and copy it yourself.");
    }
  };
  return el("span", { className: "copied" }, el("code", { tabIndex: 0 }, line),
    el("button", { type: "button", aria: { label: `Copy: ${line}` }, on: { click: copy } }, "Copy"));
}

function lossWords(one) {
  const what = `${one.target}${one.difficulty ? ` ${one.difficulty}` : ""} of lesson ${one.lesson + 1}`;
  const rate = `won ${percent(one.win_rate, 0)} of its last ${count(one.window)} episodes`;
  return one.kind === "lost" ? `Lost again: ${what}, ${rate}.` : `Back: ${what}, ${rate}.`;
}

function scroll(table, name) {
  return el("div", { className: "scroll", tabIndex: 0, role: "region", aria: { label: name } }, table);
}

function drawTable(table, caption, heads, rows) {
  fill(table, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text) => el("td", {}, String(text)))))));
}
