// A person's keys and mouse: what is held, and how far the mouse was moved in units of the action.

const KEYS = {
  KeyW: "ahead", ArrowUp: "ahead", KeyS: "back", ArrowDown: "back",
  KeyD: "right", ArrowRight: "right", KeyA: "left", ArrowLeft: "left",
  KeyE: "turnRight", KeyQ: "turnLeft", Space: "attack",
};
/** What keeps its keys until the game runs: the controls that need them. */
const KEEPS = {
  Space: "select, input, button",
  ArrowUp: "select, input, .part-test .map", ArrowDown: "select, input, .part-test .map",
  ArrowLeft: "select, input, .part-test .map, [role=tab]", ArrowRight: "select, input, .part-test .map, [role=tab]",
};
const RADIANS = 0.0025; // a pixel of the mouse
const TURN = 2.2; // rad a second by Q and E
const SEND = 40; // ms

export class Person {
  /**
   * Listens to the keys of the page, whatever has the focus, and to the mouse on `canvas`; `send` is
   * called with what is held, at most every 40 ms.
   */
  constructor(canvas, send) {
    this.canvas = canvas;
    this.send = send;
    this.limit = 5;
    this.radians = 0.08;
    this.held = new Set();
    this.mouse = 0; // units since the game was opened
    this.taken = 0; // of these, by the world
    this.sent = "";
    this.active = false;
    this.runs = false; // whether the game does: all its keys are the game's then
    this.ends = [];
    this.on(canvas, "click", () => this.active && this.lock());
    this.on(document, "keydown", (event) => this.key(event, this.takes(event)), true);
    this.on(document, "keyup", (event) => this.key(event, false), true);
    this.on(window, "blur", () => this.release());
    this.on(canvas, "mousedown", (event) => event.button === 0 && this.locked && this.hold("attack", true));
    this.on(document, "mouseup", (event) => event.button === 0 && this.hold("attack", false));
    this.on(document, "mousemove", (event) => this.locked && this.turn(event.movementX * RADIANS));
    this.on(document, "pointerlockchange", () => this.locked || this.release());
    this.timer = setInterval(() => this.tick(), SEND);
  }

  on(target, kind, listen, capture = false) {
    target.addEventListener(kind, listen, capture);
    this.ends.push(() => target.removeEventListener(kind, listen, capture));
  }

  get locked() {
    return this.active && document.pointerLockElement === this.canvas;
  }

  lock() {
    this.canvas.focus();
    const asked = this.canvas.requestPointerLock?.();
    asked?.catch?.(() => {}); // refused right after Esc; the next click asks again
  }

  /** Takes over what the game says of the mouse; from now on keys act, where `active`. */
  begin({ limit, radians, active }) {
    Object.assign(this, { limit, radians, active, runs: false, mouse: 0, taken: 0, sent: "" });
    this.release();
    if (!active && document.pointerLockElement === this.canvas) document.exitPointerLock();
  }

  /** Whether a key that goes down is the game's. */
  takes(event) {
    if (!this.active || event.ctrlKey || event.metaKey || event.altKey) return false;
    return this.runs || !(event.code in KEEPS) || !event.target.matches?.(KEEPS[event.code]);
  }

  key(event, down) {
    const what = KEYS[event.code];
    if (!what || !(down || this.held.has(what))) return;
    event.preventDefault();
    event.stopPropagation();
    this.hold(what, down);
  }

  hold(what, down) {
    if (down) this.held.add(what);
    else this.held.delete(what);
    this.tick(0);
  }

  release() {
    this.held.clear();
    this.tick(0);
  }

  turn(radians) {
    this.mouse += radians / this.radians;
  }

  /** Radians that the view has turned and the world does not know of yet, within its bound. */
  get ahead() {
    const units = Math.max(-this.limit, Math.min(this.mouse - this.taken, this.limit));
    return this.active ? units * this.radians : 0;
  }

  tick(ms = SEND) {
    if (!this.active) return;
    const way = (one, other) => Number(this.held.has(one)) - Number(this.held.has(other));
    this.turn(way("turnRight", "turnLeft") * TURN * ms / 1000);
    const body = {
      ahead: way("ahead", "back"), right: way("right", "left"),
      attack: this.held.has("attack"), mouse: this.mouse,
    };
    const text = JSON.stringify(body);
    if (text === this.sent) return;
    this.sent = text;
    this.send(body);
  }

  close() {
    clearInterval(this.timer);
    for (const end of this.ends) end();
    if (document.pointerLockElement === this.canvas) document.exitPointerLock();
  }
}
