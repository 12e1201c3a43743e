// The frame of the page: tabs by the address's hash, one part open at a time, the connection.

import { el, fill, notice, say } from "./dom.js";
import { Socket } from "./socket.js";
import * as play from "./parts/play.js";
import * as runs from "./parts/runs.js";
import * as start from "./parts/start.js";
import * as test from "./parts/test.js";
import * as training from "./parts/training.js";
import * as sweep from "./parts/sweep.js";
import * as watch from "./parts/watch.js";
import * as replays from "./parts/replays.js";

const PARTS = [start, runs, training, watch, test, play, replays, sweep]; // in the order of their tabs

const MAX_HASH = 1000; // characters of it that are looked at

const place = document.getElementById("part");
const line = document.getElementById("connection");
const tabs = new Map();
let opened = null; // {part, ends, close, go}

const socket = new Socket((state, reason) => {
  const words = {
    open: "",
    offline: "The panel is offline. What you see is its last state; the page reconnects by itself.",
    stranger: "The panel was restarted, or this page was opened without its token: open the " +
      "address that it printed. This page then connects by itself.",
    full: reason,
    other: reason,
  };
  line.hidden = state === "open";
  document.body.classList.toggle("offline", state !== "open");
  say(line, words[state]);
});
socket.on("panel", "error", (body) => notice(body.message));

/** The part that the address names, and what follows it: "#training/3f2a". */
function wanted() {
  const [name, ...rest] = decoded(location.hash.slice(1, MAX_HASH)).split("/");
  return { part: PARTS.find((one) => one.name === name) ?? PARTS[0], rest: rest.join("/") };
}

/** A part of the address as it was written; one that is not encoded ("50%") as it stands. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function go() {
  const { part, rest } = wanted();
  if (opened?.part === part) {
    opened.go?.(rest);
    return;
  }
  close();
  for (const [one, tab] of tabs) mark(tab, one === part);
  document.title = `${part.title} · aimbot-lab`;
  place.setAttribute("aria-labelledby", `tab-${part.name}`);
  place.className = `part-${part.name}`;
  const ends = [socket.on(part.name, "error", (body) => notice(body.message))];
  // What a part may use: whatever it begins by `on` and `whenOpen` ends when it is closed.
  const panel = {
    ask: (kind, body) => socket.ask(part.name, kind, body),
    act: (kind, body) => socket.ask(part.name, kind, body).catch((error) => notice(error.message)),
    on: (kind, listen) => ends.push(socket.on(part.name, kind, listen)),
    whenOpen: (open) => ends.push(socket.whenOpen(open)),
    atEnd: (end) => ends.push(end),
    go: (hash) => { location.hash = hash; },
    notice,
  };
  opened = { part, ends };
  fill(place);
  Object.assign(opened, part.open(place, panel, rest));
}

function close() {
  if (opened === null) return;
  for (const end of opened.ends) end();
  opened.close?.();
  if (socket.isOpen) socket.ask(opened.part.name, "leave").catch(() => {});
  opened = null;
}

function mark(tab, isOpen) {
  tab.setAttribute("aria-selected", String(isOpen));
  tab.tabIndex = isOpen ? 0 : -1;
  if (isOpen) tab.scrollIntoView({ block: "nearest", inline: "center" });
}

function move(event) {
  const list = [...tabs.values()];
  const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -list.length, End: list.length };
  if (!(event.key in steps)) return;
  const from = list.indexOf(document.activeElement);
  const to = Math.abs(steps[event.key]) === 1
    ? (from + steps[event.key] + list.length) % list.length
    : (steps[event.key] < 0 ? 0 : list.length - 1);
  event.preventDefault();
  list[to].focus();
  list[to].click();
}

for (const part of PARTS) {
  const given = { id: `tab-${part.name}`, href: `#${part.name}`, className: "tab" };
  const tab = el("a", { ...given, role: "tab", aria: { controls: "part" } }, part.title);
  tabs.set(part, tab);
}
fill(document.getElementById("tabs"), [...tabs.values()]).addEventListener("keydown", move);
window.addEventListener("hashchange", go);
document.getElementById("no-canvas").hidden = Boolean(document.createElement("canvas").getContext?.("2d"));
go();
