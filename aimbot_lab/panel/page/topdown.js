// A scene from above on a canvas: x to the right, z up. Colours are the style sheet's variables.

import { drawFloor, RIM } from "./floor_paint.js";
import { between, jumped } from "./scene/between.js";

const PATH_SECONDS = 10;
const ROLES = ["floor", "grid", "wall", "obstacle", "block", "goal", "agent", "enemy", "bystander",
  "down", "view", "ray", "path", "shot", "ghost", "ink"];

/** The style sheet's colours by role; to be asked again when the scheme changes. */
export function colours(node) {
  const style = getComputedStyle(node);
  return Object.fromEntries(ROLES.map((role) => [role, style.getPropertyValue(`--${role}`).trim()]));
}

/**
 * Draws scenes on `canvas` as they come, moving smoothly from one to the next.
 *
 * `show(scene, seconds)` says what is so now, and how soon the next is expected. A scene is a
 * "floor" (what the server's `scene_document` tells) or a "picture". `over(context, metres)` may
 * draw more on top, in metres; `at(event)` is where on the floor a pointer is.
 */
export class TopDown {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.over = null;
    this.path = []; // [x, z, time in s], newest last
    this.now = this.before = null;
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.changed = () => { this.colours = null; this.ask(); };
    this.scheme.addEventListener("change", this.changed);
    this.sized = new ResizeObserver(() => this.ask());
    this.sized.observe(canvas);
    this.asked = 0;
  }

  close() {
    this.scheme.removeEventListener("change", this.changed);
    this.sized.disconnect();
    cancelAnimationFrame(this.asked);
    this.closed = true;
  }

  show(scene, seconds = 0, { smooth = true } = {}) {
    const isNext = smooth && this.now && this.now.kind === scene.kind && seconds > 0;
    this.before = isNext ? this.now : null;
    this.now = scene;
    this.since = performance.now();
    this.period = 1000 * seconds;
    if (scene.kind === "floor") this.remember(scene);
    else this.load(scene.picture);
    this.ask();
  }

  /** Forgets the way so far, where an episode begins. */
  begin() {
    this.path = [];
    this.before = null;
  }

  setPath(points) {
    this.path = points;
  }

  remember(scene) {
    const { x, z } = scene;
    const time = scene.seconds ?? 0;
    const last = this.path.at(-1);
    if (last && (time < last[2] || jumped({ x: last[0], z: last[1] }, scene))) this.path = [];
    this.path.push([x, z, time]);
    while (this.path[0][2] < time - PATH_SECONDS) this.path.shift();
  }

  load(address) {
    const image = new Image();
    image.onload = () => { this.image = image; this.ask(); };
    image.src = address;
  }

  ask() {
    if (!this.asked && !this.closed) this.asked = requestAnimationFrame(() => this.frame());
  }

  frame() {
    this.asked = 0;
    if (!this.now || !this.context) return; // no canvas: the page has said so
    const { canvas, context } = this;
    const side = Math.round(canvas.clientWidth * (window.devicePixelRatio || 1));
    if (side === 0) return;
    if (canvas.width !== side) canvas.width = canvas.height = side;
    this.colours ??= colours(canvas);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, side, side);
    if (this.now.kind === "picture") {
      context.imageSmoothingEnabled = false;
      if (this.image) context.drawImage(this.image, 0, 0, side, side);
      return;
    }
    const share = this.before ? Math.min(1, (performance.now() - this.since) / this.period) : 1;
    const scene = share < 1 ? between(this.before, this.now, share) : this.now;
    const scale = side / (scene.size + 2 * RIM);
    context.setTransform(scale, 0, 0, -scale, RIM * scale, side - RIM * scale);
    drawFloor(context, scene, { colours: this.colours, path: this.path, pixel: 1 / scale });
    this.over?.(context, { colours: this.colours, pixel: 1 / scale, scene });
    if (share < 1) this.ask();
  }

  /** Where on the floor a pointer is: [x, z] in m. */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const metres = ((this.now?.size ?? 48) + 2 * RIM) / box.width;
    return [(event.clientX - box.left) * metres - RIM, (box.bottom - event.clientY) * metres - RIM];
  }
}
