// Scenes that come one after another, seen through the agent's eyes.

import { FirstPerson } from "./first_person.js";
import { Motion } from "./motion.js";

export class Eyes {
  constructor(canvas) {
    this.canvas = canvas;
    this.first = new FirstPerson(canvas);
    this.motion = new Motion(0.1);
    this.draw = this.draw.bind(this);
    this.next = requestAnimationFrame(this.draw);
  }

  /** Shows a scene after moving to it for `seconds`; pictures have no eyes. */
  show(scene, seconds = 0) {
    this.canvas.hidden = scene.kind !== "floor";
    if (this.canvas.hidden) return;
    if (seconds === 0) this.motion.clear();
    this.motion.seconds = Math.max(seconds, 0.001);
    this.motion.push(scene, performance.now());
  }

  draw(now) {
    this.next = requestAnimationFrame(this.draw);
    const { motion } = this, view = motion.at(now);
    const still = motion.rests(now);
    if (!view || this.canvas.hidden || (still && this.drawn === motion.view)) return;
    this.drawn = still ? motion.view : null;
    this.first.draw(view, motion.since(now));
  }

  close() {
    cancelAnimationFrame(this.next);
  }
}
