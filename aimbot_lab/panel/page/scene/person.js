// A person's keys and mouse: what is held, and how far the mouse was moved in units of the action.

const KEYS = {
  KeyW: "ahead", ArrowUp: "ahead", KeyS: "back", ArrowDown: "back",
  KeyD: "right", ArrowRight: "right", KeyA: "left", ArrowLeft: "left",
  KeyE: "turnRight", KeyQ: "turnLeft", Space: "attack",
};
const RADIANS = 0.0025; // a pixel of the mouse
const TURN = 2.2; // rad a second by Q and E
const SEND = 40; // ms

export class Person {
  /** Listens on `canvas`; `send` is called with what is held, at most every 40 ms. */
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
    this.ends = [];
    this.on(canvas, "click", () => this.active && this.lock());
    this.on(canvas, "keydown", (event) => this.key(event, true));
    this.on(canvas, "keyup", (event) => this.key(event, false));
    this.on(canvas, "blur", () => this.release());
    this.on(canvas, "mousedown", (event) => event.button === 0 && this.locked && this.hold("attack", true));
    this.on(document, "mouseup", (event) => event.button === 0 && this.hold("attack", false));
    this.on(document, "mousemove", (event) => this.locked && this.turn(event.movementX * RADIANS));
    this.on(document, "pointerlockchange", () => this.locked || this.release());
    this.timer = setInterval(() => this.tick(), SEND);
  }

  on(target, kind, listen) {
    target.addEventListener(kind, listen);
    this.ends.push(() => target.removeEventListener(kind, listen));
  }

  get locked() {
    return this.active && document.pointerLockElement === this.canvas;
  }

  lock() {
    this.canvas.focus();
    const asked = this.canvas.requestPointerLock();
    asked?.catch?.(() => {}); // refused right after Esc; the next click asks again
  }

  /** Takes over what the game says of the mouse; from now on keys act, where `active`. */
  begin({ limit, radians, active }) {
    Object.assign(this, { limit, radians, active, mouse: 0, taken: 0, sent: "" });
    this.release();
    if (!active && document.pointerLockElement === this.canvas) document.exitPointerLock();
  }

  key(event, down) {
    const what = KEYS[event.code];
    if (!this.active || !what || event.ctrlKey || event.metaKey || event.altKey) return;
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
