// A scene through the agent's eyes: walls as columns by one ray each, bodies as billboards.

import { castBodies, castWall } from "./casting.js";
import { blended, colours } from "./colours.js";
import { sprites } from "./sprites.js";

const COLUMN = 2; // pixels
const SHADES = 24;
const FADE = 60; // m to the darkest wall
const OUTER = "#93a0b2", INNER = "#bfa679", NIGHT = "#10141a"; // the same in light and in dark
const FLASH = 130; // ms

export class FirstPerson {
  constructor(canvas) {
    canvas.width = 960;
    canvas.height = 540;
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.half = Math.floor(canvas.width / COLUMN / 2);
    this.columns = Array.from({ length: 2 * this.half + 1 }); // the middle one is the crosshair's
    this.shade = null;
  }

  /** Draws `view`; `since` gives ms since the last shot, hit, and hit that was taken. */
  draw(view, since = {}) {
    if (!this.context) return; // no canvas: the page has said so
    this.colour();
    const focus = this.canvas.width / 2 / Math.tan(view.view_angle * Math.PI / 360);
    this.background();
    for (let k = 0; k < this.columns.length; k += 1) {
      const angle = Math.atan((k - this.half) * COLUMN / focus);
      this.columns[k] = this.column(view, k, angle, focus);
    }
    if (view.circle) this.ring(view, focus);
    this.bodies(view, focus);
    this.gun(since.shot ?? Infinity);
    this.crosshair(view, since.hit ?? Infinity);
    this.compass(view);
    if ((since.hurt ?? Infinity) < 2 * FLASH) this.hurt();
  }

  /** A frame: a hit was taken. */
  hurt() {
    const { width, height } = this.canvas;
    this.context.strokeStyle = "#ff2828";
    this.context.lineWidth = 36;
    this.context.strokeRect(0, 0, width, height);
  }

  /** What stands in a column: {wall, bodies}; draws its wall. */
  column(view, k, angle, focus) {
    const wall = castWall(view, view.x, view.z, view.yaw + angle);
    const bodies = castBodies(view, view.x, view.z, view.yaw + angle, wall.distance);
    const depth = wall.distance * Math.cos(angle);
    const scale = focus / Math.max(depth, 0.05), middle = this.canvas.height / 2;
    const lines = wall.along - Math.floor(wall.along) < 0.05 ? 2 : 0; // one to each metre
    const far = Math.min(Math.floor(depth / FADE * SHADES), SHADES - 1);
    const tones = this.tones[wall.box < 0 ? 0 : 1][wall.side];
    this.context.fillStyle = tones[Math.min(far + lines, SHADES - 1)];
    const [eye, height] = view.heights, top = middle - (height - eye) * scale;
    this.context.fillRect(this.left(k), top, COLUMN, height * scale);
    return { wall, bodies, depth, angle };
  }

  left(k) {
    return this.canvas.width / 2 + (k - this.half) * COLUMN - COLUMN / 2;
  }

  bodies(view, focus) {
    const middle = this.canvas.height / 2, seen = sprites(colours());
    const [eye, , height] = view.heights;
    this.columns.forEach(({ bodies, angle }, k) => {
      for (const met of bodies) {
        const body = view.bodies[met.body];
        const away = (body.x - view.x) * Math.sin(view.yaw) + (body.z - view.z) * Math.cos(view.yaw);
        const scale = focus / Math.max(away, met.distance * Math.cos(angle), 0.3);
        const standing = body.home ? seen.home : body.counts ? seen.enemy : seen.bystander;
        const picture = body.hits_left <= 0 ? seen.down : standing;
        const column = Math.min(Math.floor((met.across + 1) / 2 * picture.width), picture.width - 1);
        const top = middle - (height - eye) * scale;
        this.context.drawImage(
          picture, column, 0, 1, picture.height, this.left(k), top, COLUMN, height * scale,
        );
      }
    });
  }

  /** The circle to be reached, on the floor, where no wall hides it. */
  ring(view, focus) {
    const [x, z, radius] = view.circle, [eye] = view.heights, ink = this.context;
    ink.strokeStyle = this.shade.goal;
    ink.lineWidth = 3;
    let last = null;
    for (let k = 0; k <= 72; k += 1) {
      const toX = x + radius * Math.sin(k * Math.PI / 36) - view.x;
      const toZ = z + radius * Math.cos(k * Math.PI / 36) - view.z;
      const ahead = toX * Math.sin(view.yaw) + toZ * Math.cos(view.yaw);
      const right = toX * Math.cos(view.yaw) - toZ * Math.sin(view.yaw);
      const column = this.columns[Math.round(right / ahead * focus / COLUMN) + this.half];
      const hidden = ahead < 0.2 || !column || column.depth < ahead;
      const point = hidden ? null : [
        this.canvas.width / 2 + right / ahead * focus, this.canvas.height / 2 + eye / ahead * focus,
      ];
      if (point && last) {
        ink.beginPath();
        ink.moveTo(...last);
        ink.lineTo(...point);
        ink.stroke();
      }
      last = point;
    }
  }

  background() {
    const { width, height } = this.canvas, ink = this.context;
    ink.fillStyle = this.sky;
    ink.fillRect(0, 0, width, height / 2);
    ink.fillStyle = this.ground;
    ink.fillRect(0, height / 2, width, height / 2);
  }

  gun(shot) {
    const { width, height } = this.canvas, ink = this.context;
    const back = shot < FLASH ? 14 * (1 - shot / FLASH) : 0, x = width / 2, y = height + back;
    if (shot < FLASH) {
      ink.fillStyle = "#ffd25e";
      ink.beginPath();
      ink.arc(x, y - 118, 34 * (1 - shot / FLASH) + 12, 0, 2 * Math.PI);
      ink.fill();
    }
    ink.fillStyle = "#2b3138";
    ink.fillRect(x - 13, y - 112, 26, 112);
    ink.fillStyle = "#4a535e";
    ink.fillRect(x - 7, y - 112, 8, 112);
    ink.fillStyle = "#1d2227";
    ink.fillRect(x - 34, y - 42, 68, 42);
  }

  crosshair(view, hit) {
    const x = this.canvas.width / 2, y = this.canvas.height / 2, ink = this.context;
    ink.lineWidth = 2;
    for (const [colour, shift] of [["#000", 1], [view.ready ? "#fff" : "#c9c9c9", 0]]) {
      ink.strokeStyle = colour;
      ink.beginPath();
      for (const [a, b] of [[-14, -5], [5, 14]]) {
        ink.moveTo(x + a + shift, y + shift);
        ink.lineTo(x + b + shift, y + shift);
        ink.moveTo(x + shift, y + a + shift);
        ink.lineTo(x + shift, y + b + shift);
      }
      ink.stroke();
    }
    if (hit > 2 * FLASH) return;
    ink.strokeStyle = this.shade.shot;
    ink.lineWidth = 5;
    ink.beginPath();
    for (const [a, b] of [[-1, -1], [1, -1], [-1, 1], [1, 1]]) {
      ink.moveTo(x + 10 * a, y + 10 * b);
      ink.lineTo(x + 24 * a, y + 24 * b);
    }
    ink.stroke();
  }

  /** An arrow to the circle, and how far it is. */
  compass(view) {
    if (!view.circle) return;
    const toX = view.circle[0] - view.x, toZ = view.circle[1] - view.z, ink = this.context;
    ink.save();
    ink.translate(this.canvas.width / 2, 46);
    ink.fillStyle = "#000a";
    ink.beginPath();
    ink.arc(0, 0, 34, 0, 2 * Math.PI);
    ink.fill();
    ink.save();
    ink.rotate(Math.atan2(toX, toZ) - view.yaw);
    ink.fillStyle = "#f0b040";
    ink.beginPath();
    for (const [x, y] of [[0, -28], [12, 12], [0, 5], [-12, 12]]) ink.lineTo(x, y);
    ink.fill();
    ink.restore();
    ink.fillStyle = "#fff";
    ink.strokeStyle = "#000";
    ink.lineWidth = 4;
    ink.font = "bold 20px system-ui, sans-serif";
    ink.textAlign = "center";
    const words = `${Math.hypot(toX, toZ).toFixed(0)} m`;
    ink.strokeText(words, 0, 58);
    ink.fillText(words, 0, 58);
    ink.restore();
  }

  /** Colours of walls by kind, side and distance; worked out again where the scheme changes. */
  colour() {
    if (this.shade === colours()) return;
    this.shade = colours();
    const night = NIGHT;
    this.tones = [OUTER, INNER].map((base) => [0, 0.22].map((dark) =>
      Array.from({ length: SHADES }, (_, k) => blended(base, night, dark + (0.8 - dark) * k / SHADES))));
    const { height } = this.canvas;
    this.sky = this.context.createLinearGradient(0, 0, 0, height / 2);
    this.sky.addColorStop(0, blended("#5b6f86", night, 0.2));
    this.sky.addColorStop(1, blended("#5b6f86", night, 0.7));
    this.ground = this.context.createLinearGradient(0, height / 2, 0, height);
    this.ground.addColorStop(0, blended("#7a7263", night, 0.6));
    this.ground.addColorStop(1, blended("#7a7263", night, 0.1));
  }
}
