// What is shown between two decisions: places and views in between, and the path of the last seconds.

const JUMP = 3; // m that nobody walks in a decision
const PATH_SECONDS = 10;

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
    this.fired = this.hit = -Infinity; // ms
  }

  /** Takes the view after a decision, which came at `now` ms. */
  push(view, now) {
    const jumped = !this.view || Math.hypot(view.x - this.view.x, view.z - this.view.z) > JUMP;
    this.before = jumped ? view : this.at(now);
    this.view = view;
    this.time = now;
    if (view.fired) this.fired = now;
    if (view.hit >= 0) this.hit = now;
    if (jumped) this.path = [];
    this.path.push([view.x, view.z, now]);
    while (this.path.length && this.path[0][2] < now - 1000 * PATH_SECONDS) this.path.shift();
  }

  /** The view at `now` ms: on its way from the last but one to the last. */
  at(now) {
    if (!this.view) return null;
    const share = Math.min(Math.max((now - this.time) / (1000 * this.seconds), 0), 1);
    const turn = Math.atan2(Math.sin(this.view.yaw - this.before.yaw), Math.cos(this.view.yaw - this.before.yaw));
    return {
      ...this.view,
      x: this.before.x + (this.view.x - this.before.x) * share,
      z: this.before.z + (this.view.z - this.before.z) * share,
      yaw: this.before.yaw + turn * share,
    };
  }
}
