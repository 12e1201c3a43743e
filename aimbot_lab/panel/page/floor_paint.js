// How a floor from above is painted, in metres: `pixel` is the size of one in these.

import { BODY, NOTHING, castRays, castView, castWall, sight } from "./scene/casting.js";
import { awayScene, isMatch } from "./scene/match.js";

export const RIM = 1.5; // m of wall around the floor
const GRID = 5; // m between the floor's lines

/** The whole scene, with the agent's way so far. */
export function drawFloor(context, scene, { colours: c, path, pixel }) {
  const { size } = scene;
  fillBox(context, [-RIM, -RIM, size + RIM, size + RIM], c.wall);
  fillBox(context, [0, 0, size, size], c.floor);
  context.lineWidth = pixel;
  context.strokeStyle = c.grid;
  for (let at = GRID; at < size; at += GRID) {
    line(context, [[at, 0], [at, size]]);
    line(context, [[0, at], [size, at]]);
  }
  for (const plot of scene.plots) fillBox(context, plot, c.block);
  if (scene.circle) {
    const [x, z, radius] = scene.circle;
    context.fillStyle = c.goal;
    context.globalAlpha = 0.3;
    disc(context, x, z, radius);
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = c.goal;
    context.lineWidth = 2 * pixel;
    context.stroke();
  }
  for (const box of scene.boxes) fillBox(context, box, c.obstacle);
  if (isMatch(scene)) drawRays(context, awayScene(scene), { ...c, view: c.enemy, ray: c.enemy, enemy: c.agent }, pixel);
  drawRays(context, scene, c, pixel);
  context.strokeStyle = c.path;
  context.lineWidth = 2 * pixel;
  line(context, path);
  if (isMatch(scene)) {
    drawMatch(context, scene, c, pixel);
    return;
  }
  for (const body of scene.bodies) drawBody(context, body, c, pixel);
  if (scene.fired) drawShot(context, scene, c, pixel);
  drawAgent(context, scene, c, pixel);
}

/** Both agents of a match, who is down as a cross. */
function drawMatch(context, scene, c, pixel) {
  const views = [scene, awayScene(scene)];
  for (const view of views) if (view.fired) drawShot(context, view, c, pixel);
  views.forEach((view, seat) => {
    const colour = seat ? c.enemy : c.agent;
    if (scene.fighters[seat].health > 0) drawAgent(context, view, { ...c, agent: colour }, pixel);
    else drawBody(context, { ...view, hits_left: 0 }, { ...c, down: colour }, pixel);
  });
}

/** What the agent sees, from where it is drawn: the rays that came with the scene are of a decision. */
function drawRays(context, scene, c, pixel) {
  if (!scene.rays.length) return;
  const { x, z, yaw } = scene;
  context.fillStyle = c.view;
  context.globalAlpha = 0.12;
  context.beginPath();
  context.moveTo(x, z);
  for (const point of castView(scene)) context.lineTo(...point);
  context.fill();
  for (const [angle, far, kind] of castRays(scene)) {
    const end = [x + far * Math.sin(yaw + angle), z + far * Math.cos(yaw + angle)];
    context.strokeStyle = context.fillStyle = kind === BODY ? c.enemy : c.ray;
    context.globalAlpha = kind === BODY ? 0.9 : 0.55;
    context.lineWidth = (kind === BODY ? 1.6 : 1) * pixel;
    line(context, [[x, z], end]);
    if (kind === NOTHING) continue;
    disc(context, ...end, 0.22);
    context.fill();
  }
  context.globalAlpha = 1;
}

function drawBody(context, { x, z, radius, hits_left: hits, counts }, c, pixel) {
  if (hits <= 0) {
    context.strokeStyle = c.down;
    context.lineWidth = 2.5 * pixel;
    line(context, [[x - radius, z - radius], [x + radius, z + radius]]);
    line(context, [[x - radius, z + radius], [x + radius, z - radius]]);
    return;
  }
  context.fillStyle = counts ? c.enemy : c.bystander;
  context.strokeStyle = c.ink;
  context.lineWidth = pixel;
  disc(context, x, z, radius);
  context.fill();
  context.stroke();
  for (let k = 1; k < hits; k += 1) { // a ring for each hit that is left beyond the last
    disc(context, x, z, radius + 0.25 * k);
    context.stroke();
  }
}

function drawShot(context, scene, c, pixel) {
  const { x, z, yaw } = scene;
  const body = scene.bodies[scene.hit];
  const way = body ? Math.atan2(body.x - x, body.z - z) : yaw;
  const far = body ? Math.hypot(body.x - x, body.z - z) : sight(scene, x, z, yaw).distance;
  const reach = Math.min(far, castWall(scene, x, z, way).distance);
  const end = [x + reach * Math.sin(way), z + reach * Math.cos(way)];
  context.strokeStyle = c.shot;
  context.lineWidth = 3 * pixel;
  line(context, [[x, z], end]);
  if (isMatch(scene) && !body) return; // a ring is a hit there
  disc(context, ...end, 0.9);
  context.stroke();
}

function drawAgent(context, { x, z, yaw, radius }, c, pixel) {
  context.strokeStyle = c.ink;
  context.lineWidth = 3 * pixel;
  line(context, [[x, z], [x + 1.3 * Math.sin(yaw), z + 1.3 * Math.cos(yaw)]]);
  context.fillStyle = c.agent;
  context.lineWidth = 1.5 * pixel;
  disc(context, x, z, radius);
  context.fill();
  context.stroke();
}

function fillBox(context, [left, bottom, right, top], colour) {
  context.fillStyle = colour;
  context.fillRect(left, bottom, right - left, top - bottom);
}

function disc(context, x, z, radius) {
  context.beginPath();
  context.arc(x, z, radius, 0, 2 * Math.PI);
}

function line(context, points) {
  if (points.length < 2) return;
  context.beginPath();
  context.moveTo(points[0][0], points[0][1]);
  for (const [x, z] of points.slice(1)) context.lineTo(x, z);
  context.stroke();
}
