// A scene from above, with what is about to be placed: x to the right, z up.

import { drawFloor, RIM } from "../floor_paint.js";
import { colours } from "./colours.js";

export class Above {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  /** Fits the canvas to where it is shown; pixels to a metre. */
  fit(view) {
    const side = Math.round(this.canvas.clientWidth * (window.devicePixelRatio || 1));
    if (side > 0 && this.canvas.width !== side) this.canvas.width = this.canvas.height = side;
    this.size = view.size;
    this.scale = this.canvas.width / (view.size + 2 * RIM);
  }

  /** Where on the floor a place of the window is, in metres. */
  place(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const metres = (this.size + 2 * RIM) / box.width;
    return [(clientX - box.left) * metres - RIM, (box.bottom - clientY) * metres - RIM];
  }

  /** Draws `view`; `more` has `path`, and may have `fired` (whether a shot shows) and `preview`. */
  draw(view, { path, fired = false, preview = null }) {
    this.fit(view);
    if (!this.context) return; // no canvas: the page has said so
    const ink = this.context, shade = colours();
    ink.setTransform(this.scale, 0, 0, -this.scale, RIM * this.scale, (this.size + RIM) * this.scale);
    drawFloor(ink, { ...view, fired }, { colours: shade, path, pixel: 1 / this.scale });
    if (preview) this.preview(preview, shade);
  }

  /** What would be placed: {outline, x, z, turns, fault}. */
  preview({ outline, x, z, turns, fault }, shade) {
    const ink = this.context, colour = fault ? shade.bad : shade.ghost;
    ink.save();
    ink.translate(x, z);
    ink.rotate(-turns * Math.PI / 2); // to the right as seen from above, where z goes up
    ink.globalAlpha = 0.3;
    const half = outline.side / 2;
    if (half) this.box([-half, -half, half, half], colour);
    ink.globalAlpha = 0.85;
    for (const box of outline.boxes) this.box(box, colour);
    if (outline.circle) this.disc(outline.circle, null, colour, 0.22);
    for (const disc of outline.discs) this.disc(disc, colour, shade.ink, 0.08);
    ink.restore();
    ink.globalAlpha = 1;
  }

  box([minX, minZ, maxX, maxZ], colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(minX, minZ, maxX - minX, maxZ - minZ);
  }

  disc([x, z, radius], fill, edge = null, width = 0) {
    const ink = this.context;
    ink.beginPath();
    ink.arc(x, z, radius, 0, 2 * Math.PI);
    if (fill) {
      ink.fillStyle = fill;
      ink.fill();
    }
    if (edge) {
      ink.strokeStyle = edge;
      ink.lineWidth = width;
      ink.stroke();
    }
  }
}
