// What is shown between two decisions: places and views in between, and the path of the last seconds.

import { between, jumped } from "./between.js";

const PATH_SECONDS = 10;
const LINGER = 400; // ms after which nothing shows any more of a shot or a hit

export class Motion {
  /** `seconds` between two decisions. */
  constructor(seconds) {
    this.seconds = seconds;
    this.clear();
  }

  clear() {
    this.before = this.view = null;
    this.time = 0;
    this.path = []; // [x, z, ms]
    this.fired = this.hit = this.hurt = -Infinity; // ms
  }

  /** Takes the view after a decision, which came at `now` ms. */
  push(view, now) {
    const isOther = !this.view || jumped(this.view, view);
    this.before = isOther ? view : this.at(now);
    this.view = view;
    this.time = now;
    if (view.fired) this.fired = now;
    if (view.hit >= 0) this.hit = now;
    if (view.wounded ?? view.fighters[1]?.hit) this.hurt = now;
    if (isOther) this.path = [];
    this.path.push([view.x, view.z, now]);
    while (this.path.length && this.path[0][2] < now - 1000 * PATH_SECONDS) this.path.shift();
  }

  /** Ms since the last shot, the last one that hit, and the last hit that was taken. */
  since(now) {
    return { shot: now - this.fired, hit: now - this.hit, hurt: now - this.hurt };
  }

  /** Whether nothing has moved, and no shot has shown, for a while at `now` ms. */
  rests(now) {
    return now - this.time > 1000 * this.seconds + LINGER;
  }

  /** The view at `now` ms: on its way from the last but one to the last. */
  at(now) {
    if (!this.view) return null;
    const share = Math.min(Math.max((now - this.time) / (1000 * this.seconds), 0), 1);
    return between(this.before, this.view, share);
  }
}
