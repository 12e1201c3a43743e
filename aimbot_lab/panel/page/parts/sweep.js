// Sweep: begun and stopped, trials as they end in parallel coordinates, and what was confirmed.

import { el, fill, say } from "../dom.js";
import { clock, count, duration, isNumber, shownEnds } from "../format.js";
import { Parallel, shortNames } from "../parallel.js";

export const name = "sweep";
export const title = "Sweeps";

export function open(place, panel, rest) {
  let shown = rest;
  const list = el("ul", { className: "runs", aria: { label: "Sweeps" } });
  let held = null; // what a page has begun last
  const heading = el("h1", {}, "Sweeps");
  const state = el("span", { className: "state", role: "status" });
  const lead = el("p", { className: "lead" });
  const best = el("p", { className: "outcome", role: "status" });
  const luck = el("p", { className: "quiet" });
  const stop = el("button", { type: "button", className: "danger", hidden: true,
    on: { click: () => panel.act("stop", { name: shown }) } }, "Stop");
  const anew = el("button", { type: "button", on: { click: () => ask() } }, "Start a sweep …");
  const resume = el("button", { type: "button", className: "primary", hidden: true,
    on: { click: () => ask(last) } }, "Resume …");
  let last = null; // the report that is shown
  const form = el("form", { className: "sheet", hidden: true });
  const fault = el("pre", { className: "fault", hidden: true });
  const confirmed = el("table", { className: "trials" });
  const canvas = el("canvas", { className: "parallel", role: "img",
    aria: { label: "Each trial as a line over its values; better ones are stronger" } });
  const view = new Parallel(canvas);
  const table = el("table", { className: "trials" });
  const links = el("p", { className: "quiet" });
  const body = el("div", { hidden: true }, best, luck,
    el("div", { className: "scroll", tabIndex: 0, role: "region", aria: { label: "Confirmed" } }, confirmed), canvas, el("p", { className: "quiet" }, "A line is a trial: the stronger, the better. The best is yellow."),
    el("div", { className: "scroll", tabIndex: 0, role: "region", aria: { label: "Trials" } }, table), links);
  place.append(el("aside", {}, el("h2", {}, "Sweeps"), list),
    el("div", {}, el("div", { className: "run-head" }, heading, state, el("span", { className: "grow" }), anew, resume, stop),
      fault, form, lead, body));
  panel.atEnd(() => view.close());

  panel.on("holding", ({ started }) => {
    const isMine = started !== null && started.sweep !== "";
    const isNew = isMine && held?.begun_ms !== started.begun_ms;
    held = started;
    anew.disabled = started?.alive ?? false;
    anew.title = anew.disabled ? `${started.title} still runs` : "";
    fault.hidden = !isMine || started.alive || started.run_id !== null;
    say(fault, fault.hidden ? "" : `${started.title} did not begin\n${started.last_words}`);
    if (isNew && started.alive && started.sweep !== shown) {
      awaited = started.sweep;
      say(lead, `${started.title} is starting …`);
    }
  });
  let awaited = ""; // a sweep that has been started, until it is listed
  panel.on("sweeps", ({ sweeps }) => {
    if (!sweeps.length && !awaited) {
      say(lead, "A sweep searches for better settings: it trains again and again, with other values each time, " +
        "and proves the best of them on fresh seeds. None has begun in this data folder.");
    }
    if (awaited && sweeps.some((one) => one.name === awaited)) {
      panel.go(addressOf(awaited));
      awaited = "";
    }
    fill(list, sweeps.map((one) => el("li", {}, el("a", { href: addressOf(one.name),
      className: "run-link", aria: one.name === shown ? { current: "true" } : {} },
    el("strong", {}, one.name),
    el("span", { className: "quiet" }, `changed ${clock(one.changed_ms)}`)))));
    if (!shown && !awaited && sweeps.length) watch(sweeps[0].name);
    else if (body.hidden && sweeps.some((one) => one.name === shown)) panel.act("watch", { name: shown }); // half written before
  });
  panel.on("report", (told) => {
    if (told.name === shown) draw(told);
  });

  function draw(told) {
    body.hidden = false;
    say(heading, told.name);
    say(state, told.status);
    state.className = `state ${told.status === "running" ? "trains" : ""}`;
    say(lead, `${count(told.ended)} of ${count(told.total)} trials ended; measured by ` +
      `${told.measure}, ${told.maximizes ? "more" : "less"} is better.`);
    last = told;
    const isRunning = told.status === "running" || told.status === "confirming";
    stop.hidden = !isRunning;
    resume.hidden = isRunning || told.status === "done";
    drawBest(told);
    drawConfirmed(told);
    view.draw(told);
    drawTable(told);
    say(links, told.pictures &&
      `Optuna's pictures (history, importances, slices) are with the sweep's run in MLflow: ${told.pictures}`);
  }

  /** The headline: what fresh seeds have confirmed; until then the search's best, as what it is. */
  function drawBest(told) {
    const found = told.trials.find((one) => one.number === told.best);
    const proved = told.confirmed.find((one) => one.number === told.best && isNumber(one.value));
    if (proved) {
      const gain = isNumber(proved.gain_lower)
        ? `, ${signed(proved.gain)} [${signed(proved.gain_lower)}, ${signed(proved.gain_upper)}] over the defaults` : "";
      say(best, `Confirmed on ${count(proved.seeds)} fresh seeds: trial ${proved.label}, ${valueWords(proved)}${gain}`);
      say(luck, [told.verdict, isNumber(proved.searched) && `its value in the search was ${short(proved.searched)}, ` +
        "which luck had a part in"].filter(Boolean).join("; "));
      return;
    }
    say(best, found ? `Best of the search so far, not confirmed: trial ${found.number}, ${valueWords(found)}`
      : "No trial has a value yet.");
    const wait = told.to_confirm ? `${count(told.confirm_ended)} of ${count(told.to_confirm)} confirmed. ` : "";
    say(luck, found ? `${wait}The best of many is partly lucky: the confirmation on fresh seeds decides.` : "");
  }

  function drawConfirmed(told) {
    confirmed.parentElement.hidden = told.confirmed.length === 0;
    fillTable(confirmed, "Confirmed on fresh seeds", ["trial", "seeds", `${told.measure}`, "over the defaults", "in the search"],
      told.confirmed.map((one) => ({ className: one.number === told.best ? "is-best" : "", cells: [one.label, count(one.seeds),
        valueWords(one), isNumber(one.gain) ? signed(one.gain) + (isNumber(one.gain_lower)
          ? ` [${signed(one.gain_lower)}, ${signed(one.gain_upper)}]` : "") : "–", short(one.searched)] })));
  }

  /** The sheet that begins a sweep, or has `told` go on. */
  async function ask(told = null) {
    const offers = (await panel.act("offer"))?.choices ?? [];
    const fit = offers.filter((one) => !one.fault);
    const choice = el("select", { on: { change: () => take(fit.find((one) => one.key === choice.value)) } },
      fit.map((one) => el("option", { value: one.key }, one.title)));
    const [called, trials, workers] = [["text", {}], ["number", { min: "1" }], ["number", { min: "1" }]]
      .map(([type, more]) => el("input", { type, required: true, ...more }));
    const about = el("p", { className: "quiet" });
    const go = el("button", { type: "submit", className: "primary" }, told ? "Resume" : "Start");
    const take = (one) => {
      say(about, one.about);
      [called.value, trials.value, workers.value] = [one.name, one.trials, one.workers];
    };
    form.onsubmit = async (event) => {
      event.preventDefault();
      go.disabled = true;
      const done = await panel.act("begin", { key: choice.value, name: called.value, trials: Number(trials.value),
        workers: Number(workers.value) });
      go.disabled = false;
      form.hidden = Boolean(done);
    };
    fill(form, el("h2", {}, told ? `Resume ${told.name}` : "Start a sweep"), el("div", { className: "fields" },
      el("label", {}, "File", choice), el("label", {}, "Name", called), el("label", {}, "Trials", trials),
      el("label", {}, "Processes", workers)), about,
    offers.filter((one) => one.fault).map((one) => el("p", { className: "fault" }, one.fault)),
    el("div", { className: "run-head" }, go, el("button", { type: "button", on: { click: () => { form.hidden = true; } } }, "Cancel")));
    form.hidden = false;
    const first = fit.find((one) => one.name === told?.name && one.searches === told.searches)
      ?? fit.find((one) => one.searches === told?.searches) ?? fit[0];
    if (first) {
      choice.value = first.key;
      take(first);
    }
    if (told) [called.value, trials.value] = [told.name, told.total];
  }

  function drawTable(told) {
    const heads = ["trial", "state", ...shortNames(told.keys), told.measure, "took"];
    const rows = [...told.trials].reverse();
    fillTable(table, "Trials, the newest first", heads, rows.map((one) => ({
      className: one.number === told.best ? "is-best" : "", title: one.reason ?? "",
      cells: [one.number, one.state, ...one.values.map(short), valueWords(one), duration(one.seconds)] })));
  }

  function watch(sweep) {
    shown = sweep;
    body.hidden = true;
    say(lead, "The sweep is read …");
    panel.act("watch", { name: sweep });
    for (const link of list.querySelectorAll("a")) {
      if (link.hash === addressOf(sweep)) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  panel.whenOpen(() => {
    panel.act("list");
    if (shown) watch(shown);
  });
  return { go(other) { if (other && other !== shown) watch(other); } };
}

function fillTable(table, caption, heads, rows) {
  fill(table, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map(({ cells, ...given }) => el("tr", given, cells.map((text) => el("td", {}, String(text)))))));
}

function signed(value) {
  const shown = Math.abs(value) >= 1000 ? count(value) : value.toFixed(3);
  return value > 0 ? `+${shown}` : shown;
}

function addressOf(sweep) {
  return `#sweep/${encodeURIComponent(sweep)}`;
}

/** A trial's value with its interval: "0.610 [0.520, 0.694]", "more than 40,000". */
function valueWords(trial) {
  if (!isNumber(trial.value)) return "–";
  const more = trial.at_least ? "more than " : "";
  if (!isNumber(trial.lower) || !isNumber(trial.upper)) return more + short(trial.value);
  const shown = Math.abs(trial.upper) >= 1000 ? count : (value) => value.toFixed(3);
  const [low, high] = shownEnds(trial.lower, trial.upper, 3);
  return `${more}${shown(trial.value)} [${shown(low)}, ${shown(high)}]`;
}

function short(value) {
  if (!isNumber(value)) return value === null ? "–" : String(value);
  return Math.abs(value) >= 1000 ? count(value) : String(Number(value.toPrecision(4)));
}
