// Runs: all of them with a filter, several in one chart, and their names, tags and notes.

import { curveView } from "../chart.js";
import { el, fill, say } from "../dom.js";
import { brief, clock, count, counted, isNumber, rate } from "../format.js";
import { NAME_LETTERS } from "../run/sheet.js";
import { stateWords } from "./training.js";

export const name = "runs";
export const title = "Runs";

const COLOURS = 8; // of the style sheet
const DASHES = [[], [7, 4], [2, 3]];
const MAX_AT_ONCE = COLOURS * DASHES.length; // runs that one click chooses: lines that can be told apart
const PAUSE = 5000; // ms between two looks at the curves of runs that train
const NOTE = "note"; // the tag that a run's note is
const ORDERS = {
  newest: ["Newest first", (one, other) => other.begun_ms - one.begun_ms],
  best: ["Best win rate first", (one, other) => (other.win_rate ?? -1) - (one.win_rate ?? -1)],
  name: ["By name", (one, other) => nameOf(one).localeCompare(nameOf(other))],
};

// Kept while other parts are looked at, and when the page is loaded again.
let kept = {};
try {
  kept = JSON.parse(sessionStorage.getItem(name) ?? "{}");
} catch { /* this browser keeps nothing */ }
const chosen = new Map(kept.chosen); // run id -> its number among the colours
const sought = { words: "", order: "newest", ...kept.sought };

export function open(place, panel) {
  let runs = [];
  let complete = false;
  const curves = new Map(); // run id -> its curves
  const rows = new Map(); // run id -> {node, key, check}
  const search = el("input", { type: "search", placeholder: "name, tag, state, lesson …",
    value: sought.words, aria: { label: "Filter" }, on: { input: draw } });
  const order = el("select", { aria: { label: "Order" }, on: { change: draw } },
    Object.entries(ORDERS).map(([key, [words]]) => el("option", { value: key, selected: key === sought.order }, words)));
  const number = el("span", { className: "quiet", role: "status" }, "Loading runs …");
  const fault = el("p", { className: "fault", hidden: true });
  const clear = el("button", { type: "button", on: { click: () => { chosen.clear(); draw(); compare(); } } }, "Choose none");
  const drop = el("button", { type: "button", className: "danger", on: { click: () => ask([...chosen.keys()]) } }, "Delete …");
  const measure = el("select", { aria: { label: "What is compared" }, on: { change: plot } });
  const smooth = el("input", { type: "range", min: "0", max: "0.95", step: "0.05", value: "0",
    aria: { label: "Smoothing" }, on: { input: plot } });
  const view = curveView();
  const chart = el("section", { className: "compare", hidden: true, aria: { label: "Chosen runs" } },
    el("div", { className: "run-head" }, measure, el("label", { className: "smooth" }, "Smoothing", smooth),
      el("span", { className: "quiet" }, "drag to zoom, click a name to hide it"), el("span", { className: "grow" }), clear, drop),
    view.node);
  const table = el("tbody", {});
  const all = el("input", { type: "checkbox", aria: { label: "Compare all listed runs" },
    on: { change: () => chooseListed(all.checked) } });
  const heads = [all, "run", "state", "win rate (95 %)", "lesson", "tags", "begun", ""];
  const list = el("table", { className: "trials all-runs" }, el("thead", {}, el("tr", {},
    heads.map((head) => (head && head !== all ? el("th", { scope: "col" }, head) : el("td", {}, head))))), table);
  const dialog = el("dialog", { aria: { label: "Run" } });
  place.append(el("h1", {}, "Runs"), fault,
    el("div", { className: "run-head" }, search, order, number), chart,
    el("div", { className: "scroll", tabIndex: 0, role: "region", aria: { label: "Runs" } }, list), dialog);
  const timer = setInterval(() => {
    load(runs.filter((run) => run.state === "trains" && chosen.has(run.run_id)).map((run) => run.run_id));
  }, PAUSE);
  panel.atEnd(() => { clearInterval(timer); view.close(); });

  panel.on("runs", (told) => {
    ({ runs, complete } = told);
    fault.hidden = !told.fault;
    say(fault, told.fault);
    const known = new Set(runs.map((run) => run.run_id));
    if (complete) for (const id of [...chosen.keys()].filter((one) => !known.has(one))) chosen.delete(id);
    draw();
    compare();
  });

  /** The runs that are found, in the order that a person chose. */
  function listed() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return runs.filter((run) => words.every((word) => textOf(run).includes(word))).sort(ORDERS[order.value][1]);
  }

  function draw() {
    Object.assign(sought, { words: search.value, order: order.value });
    try {
      sessionStorage.setItem(name, JSON.stringify({ sought, chosen: [...chosen] }));
    } catch { /* it is kept until the page is loaded again */ }
    const shown = listed();
    all.checked = shown.length > 0 && shown.every((run) => chosen.has(run.run_id));
    say(number, !complete && !runs.length ? "Loading runs …" : shown.length === runs.length
      ? counted(runs.length, "run") : `${count(shown.length)} of ${counted(runs.length, "run")}`);
    const nodes = shown.map(rowOf);
    const isSame = nodes.length === table.children.length && nodes.every((node, k) => table.children[k] === node);
    if (!isSame) fill(table, nodes); // else a row keeps the focus that it has
  }

  function rowOf(run) {
    const key = JSON.stringify([run, clock(run.begun_ms)]);
    if (rows.get(run.run_id)?.key !== key) rows.set(run.run_id, { key, ...made(run) });
    const row = rows.get(run.run_id);
    const at = chosen.get(run.run_id);
    row.check.checked = at !== undefined;
    row.check.style.accentColor = at === undefined ? "" : `var(--${roleOf(at)})`;
    return row.node;
  }

  function made(run) {
    const check = el("input", { type: "checkbox", aria: { label: `Compare ${nameOf(run)}` },
      on: { change: () => choose(run.run_id, check.checked) } });
    const { [NOTE]: note, ...tags } = run.tags ?? {};
    return { check, node: el("tr", { data: { run: run.run_id } },
      el("td", {}, check),
      el("td", {}, el("a", { href: `#training/${run.run_id}` }, el("strong", {}, nameOf(run))),
        el("span", { className: "quiet" }, ` ${run.run_id.slice(0, 8)}`),
        note && el("p", { className: "quiet run-note" }, note)),
      el("td", {}, el("span", { className: `state ${run.state}` }, stateWords(run.state))),
      el("td", {}, worthOf(run)),
      el("td", {}, run.lesson || "–"),
      el("td", {}, Object.entries(tags).map(([tag, value]) => el("span", { className: "tag" }, `${tag}=${value}`))),
      el("td", {}, clock(run.begun_ms)),
      el("td", {}, el("button", { type: "button", on: { click: () => edit(run) } }, "Edit"))) };
  }

  function choose(run, isChosen) {
    mark(run, isChosen);
    draw();
    compare();
  }

  function chooseListed(isChosen) {
    for (const run of listed().slice(0, isChosen ? MAX_AT_ONCE : undefined)) mark(run.run_id, isChosen);
    draw();
    compare();
  }

  /** Gives a run a colour that is free, unless it has one, or takes it away. */
  function mark(run, isChosen) {
    const taken = new Set(chosen.values());
    let free = 0;
    while (taken.has(free)) free += 1;
    if (!isChosen) chosen.delete(run);
    else if (!chosen.has(run)) chosen.set(run, free);
  }

  /** Fetches what is not known of the chosen runs, then draws it. */
  function compare() {
    chart.hidden = chosen.size === 0;
    load([...chosen.keys()].filter((one) => !curves.has(one)));
    plot();
  }

  async function load(wanted) {
    for (const run of wanted.filter((one) => !curves.has(one))) curves.set(run, []); // is under way
    for (const run of wanted) {
      const found = await panel.act("curves", { run });
      curves.set(run, found?.curves ?? []);
      plot();
    }
  }

  function plot() {
    const found = [...chosen].flatMap(([run, at]) => (curves.get(run) ?? []).map((curve) => ({ run, at, curve })));
    const titles = [...new Set(found.map(({ curve }) => curve.title))];
    if (titles.join("|") !== measure.dataset.key) {
      const before = measure.value;
      measure.dataset.key = titles.join("|");
      fill(measure, titles.map((one) => el("option", { value: one }, one)));
      if (titles.includes(before)) measure.value = before;
    }
    measure.hidden = view.node.hidden = titles.length === 0;
    if (chart.hidden || !titles.length) return;
    const shown = found.filter(({ curve }) => curve.title === measure.value);
    view.draw({ ...shown[0].curve, smooth: Number(smooth.value), lines: shown.map(({ run, at, curve }) => ({
      ...curve, name: nameOf(runs.find((one) => one.run_id === run)), role: roleOf(at),
      dash: DASHES[Math.floor(at / COLOURS) % DASHES.length],
    })) });
  }

  /** A dialog of `children`, whose buttons end it; `done` is what the first of them does. */
  function show(heading, words, children, done, className = "primary") {
    const close = () => dialog.close();
    const go = el("button", { type: "submit", className }, words);
    fill(dialog, el("form", { on: { submit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      if (await done()) close();
      go.disabled = false;
    } } }, el("h2", {}, heading), children,
    el("div", { className: "run-head" }, go, el("button", { type: "button", on: { click: close } }, "Cancel"))));
    if (!dialog.open) dialog.showModal();
  }

  function edit(run) {
    const { [NOTE]: note = "", ...tags } = run.tags ?? {};
    const called = el("input", { type: "text", value: nameOf(run), required: true, maxLength: NAME_LETTERS });
    const noted = el("textarea", { rows: 4, value: note });
    const listed = el("textarea", { rows: 4, placeholder: "key=value, one a line",
      value: Object.entries(tags).map(([key, value]) => `${key}=${value}`).join("\n") });
    show(`Run ${run.run_id.slice(0, 8)}`, "Save", [
      el("label", {}, "Name", called), el("label", {}, "Note", noted), el("label", {}, "Tags", listed),
      el("button", { type: "button", className: "danger", on: { click: () => ask([run.run_id]) } }, "Delete …"),
    ], () => {
      const wanted = Object.fromEntries(listed.value.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
        const at = line.indexOf("=");
        return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
      }));
      const gone = Object.keys(tags).filter((key) => !(key in wanted)).map((key) => [key, null]);
      const changed = { ...Object.fromEntries(gone), ...wanted, [NOTE]: noted.value.trim() || null };
      return panel.act("label", { run: run.run_id, name: called.value, tags: changed });
    });
  }

  function ask(ids) {
    const names = ids.map((id) => nameOf(runs.find((one) => one.run_id === id)));
    show(ids.length === 1 ? `Delete ${names[0]}?` : `Delete ${counted(ids.length, "run")}?`, "Delete for good", [
      ids.length > 1 && el("p", {}, names.join(", ")),
      el("p", {}, "Agents, replays, curves and checkpoints are deleted. This can't be undone."),
    ], () => panel.act("delete", { runs: ids }), "danger");
  }

  panel.whenOpen(() => panel.act("list"));
  return {};
}

function nameOf(run) {
  return run?.name || run?.run_id.slice(0, 8) || "";
}

function roleOf(at) {
  return `run-${at % COLOURS + 1}`;
}

/** What a filter looks into. */
function textOf(run) {
  const tags = Object.entries(run.tags ?? {}).map(([key, value]) => `${key}=${value}`);
  return [nameOf(run), run.run_id, stateWords(run.state), run.state, run.lesson, run.experiment, ...tags]
    .join(" ").toLowerCase();
}

function worthOf(run) {
  if (isNumber(run.win_rate)) return rate(run.win_rate, run.lower, run.upper);
  return isNumber(run.mean_return) ? `mean return ${brief(run.mean_return)}` : "–";
}
