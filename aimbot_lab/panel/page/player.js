// Play, pause, speed, scrub and step: controls of something that has a number of moments.

import { el, say } from "./dom.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];

/** `show(number, {smooth, seconds})` shows a moment; keys: space, arrows, Home and End. */
export function playerControls(show) {
  let count = 0;
  let period = 0.1; // s of a moment at speed 1
  let at = 0;
  let speed = 1;
  let timer = 0;
  const play = el("button", { type: "button", className: "primary play", on: { click: toggle } }, "Play");
  const back = el("button", { type: "button", aria: { label: "One decision back" },
    on: { click: () => step(-1) } }, "◀");
  const ahead = el("button", { type: "button", aria: { label: "One decision ahead" },
    on: { click: () => step(1) } }, "▶");
  const scrub = el("input", { type: "range", min: "0", max: "0", value: "0", className: "scrub",
    aria: { label: "Decision" }, on: { input: () => { pause(); to(Number(scrub.value)); } } });
  const number = el("output", {});
  const speeds = el("select", { aria: { label: "Speed" }, on: { change: () => {
    speed = Number(speeds.value);
    if (timer) next();
  } } }, SPEEDS.map((one) => el("option", { value: String(one), selected: one === 1 }, `${one}×`)));
  const node = el("div", { className: "player", on: { keydown: key } },
    play, back, ahead, scrub, number, speeds);

  function to(wanted, how) {
    at = Math.min(Math.max(wanted, 0), Math.max(count - 1, 0));
    scrub.value = String(at);
    say(number, `${at} of ${Math.max(count - 1, 0)}`);
    scrub.setAttribute("aria-valuetext", `decision ${at} of ${Math.max(count - 1, 0)}`);
    show(at, how);
  }

  function step(by) {
    pause();
    to(at + by);
  }

  function toggle() {
    if (timer) {
      pause();
      return;
    }
    if (at >= count - 1) to(0);
    say(play, "Pause");
    next();
  }

  function next() {
    clearTimeout(timer);
    const seconds = period / speed;
    timer = setTimeout(() => {
      if (at >= count - 1) {
        pause();
        return;
      }
      to(at + 1, { smooth: true, seconds });
      next();
    }, 1000 * seconds);
  }

  function pause() {
    clearTimeout(timer);
    timer = 0;
    say(play, "Play");
  }

  function key(event) {
    const own = event.target === scrub || event.target === speeds;
    const does = { " ": toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1) }[event.key];
    if (!does || own || (event.key === " " && event.target.tagName === "BUTTON")) return;
    event.preventDefault();
    does();
  }

  return {
    node,
    pause,
    close: pause,
    set(given) {
      ({ count, period } = given);
      scrub.max = String(Math.max(count - 1, 0));
      say(number, `${at} of ${Math.max(count - 1, 0)}`);
    },
    begin() { pause(); to(0); },
  };
}
