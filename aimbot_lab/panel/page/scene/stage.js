// A game's two views, drawn as long as anything moves: from above and through the eyes.

import { el, say } from "../dom.js";
import { Above } from "./above.js";
import { FirstPerson } from "./first_person.js";
import { MatchCards } from "./match.js";
import { Motion } from "./motion.js";
import { Person } from "./person.js";

const LIGHT = 250; // ms of a shot from above
const COARSE = matchMedia("(pointer: coarse)"); // a finger
const DARK = matchMedia("(prefers-color-scheme: dark)");
const PAD = [["turnLeft", "↶", "Turn left"], ["ahead", "▲", "Walk ahead"], ["turnRight", "↷", "Turn right"],
  ["left", "◀", "Walk left"], ["back", "▼", "Walk back"], ["right", "▶", "Walk right"], ["attack", "Shoot", ""]];

export class Stage {
  /** `hold` is called with what a person holds. */
  constructor(hold) {
    this.map = el("canvas", {
      className: "map", tabIndex: 0, role: "img", width: 600, height: 600, aria: { label: "The arena from above" },
    });
    this.eyes = el("canvas", {
      className: "eyes", tabIndex: 0, role: "img", aria: { label: "What the agent sees" },
    });
    this.target = el("strong", {});
    this.goal = el("span", {});
    this.time = el("span", { className: "seconds" });
    this.line = el("p", { className: "mission" }, this.target, this.goal, this.time);
    this.hint = el("p", { className: "eyes-hint" });
    this.eyesBox = el("div", { className: "eyes-box" }, this.eyes, this.hint);
    this.cards = new MatchCards();
    this.names = [];
    this.above = new Above(this.map);
    this.first = new FirstPerson(this.eyes);
    this.motion = new Motion(0.1);
    this.person = new Person(this.eyes, hold);
    this.pad = el("div", { className: "pad", hidden: true, role: "group", aria: { label: "Controls" } },
      PAD.map(([what, sign, words]) => this.holder(what, sign, words)));
    this.preview = null;
    this.drawn = []; // what was drawn last, where nothing moved
    this.draw = this.draw.bind(this);
    this.next = requestAnimationFrame(this.draw);
  }

  /**
   * Begins another game: seconds between decisions, what the mouse does, whether a person acts, and
   * the `names` of both in a match.
   */
  begin({ seconds, limit, radians, active, names = [] }) {
    this.names = names;
    this.motion.seconds = seconds;
    this.motion.clear();
    this.person.begin({ limit, radians, active });
    this.hint.hidden = !active;
    this.pad.hidden = !active || !COARSE.matches;
  }

  /** A button that holds `what` as long as a finger is on it. */
  holder(what, sign, words) {
    const hold = (isHeld) => (event) => {
      event.preventDefault();
      if (isHeld) event.currentTarget.setPointerCapture(event.pointerId);
      this.person.hold(what, isHeld);
    };
    return el("button", { type: "button", className: what, aria: words ? { label: words } : {},
      on: { pointerdown: hold(true), pointerup: hold(false), pointercancel: hold(false), contextmenu: (event) => event.preventDefault() } }, sign);
  }

  /** Takes the frame after a decision. */
  push(frame) {
    const { view } = frame;
    this.motion.push(view, performance.now());
    this.person.taken = frame.mouse;
    this.cards.show(view, this.names);
    say(this.target, view.target);
    say(this.goal, view.goal);
    say(this.time, view.seconds_left === null ? "" : `${view.seconds_left.toFixed(1)} s left`);
  }

  draw(now) {
    this.next = requestAnimationFrame(this.draw);
    const view = this.motion.at(now);
    if (!view) return;
    const { person, motion } = this;
    const free = COARSE.matches ? "Hold the buttons below to walk, turn and shoot."
      : "Click to look with the mouse. WASD or arrows walk, Q and E turn, Space shoots.";
    say(this.hint, person.locked ? "Left click shoots. Esc frees the mouse." : free);
    this.hint.classList.toggle("fading", person.locked);
    const shown = motion.rests(now) ? this.shown() : [];
    if (shown.length && shown.every((part, k) => part === this.drawn[k])) return;
    this.drawn = shown;
    if (person.active) view.yaw = motion.view.yaw + person.ahead; // a person's own turns show at once
    const since = motion.since(now);
    if (this.map.clientWidth) {
      const fired = since.shot < LIGHT;
      this.above.draw(view, { path: motion.path, fired, preview: this.preview });
    }
    if (this.eyes.clientWidth) this.first.draw(view, since);
  }

  /** What the picture depends on while nothing moves. */
  shown() {
    return [this.motion.view, this.person.ahead, JSON.stringify(this.preview), DARK.matches,
      this.map.clientWidth, this.eyes.clientWidth, window.devicePixelRatio];
  }

  close() {
    cancelAnimationFrame(this.next);
    this.person.close();
  }
}
