// Rays against a scene's walls, boxes and bodies: metres, x to the right, z ahead at yaw 0.

export const WALL = 0, BODY = 1, NOTHING = -1;
const EDGE = 1e-5; // rad beside a corner or a body's edge
const STEP = Math.PI / 90; // rad between two directions, at most

/** Metres from (x, z) along a unit way to the box [min x, min z, max x, max z]; Infinity: none. */
function toBox(x, z, wayX, wayZ, box) {
  let near = -Infinity, far = Infinity, side = 0;
  if (wayX !== 0) {
    const one = (box[0] - x) / wayX, two = (box[2] - x) / wayX;
    near = Math.min(one, two);
    far = Math.max(one, two);
  } else if (x < box[0] || x > box[2]) return [Infinity, 0];
  if (wayZ !== 0) {
    const one = (box[1] - z) / wayZ, two = (box[3] - z) / wayZ;
    if (Math.min(one, two) > near) {
      near = Math.min(one, two);
      side = 1;
    }
    far = Math.min(far, Math.max(one, two));
  } else if (z < box[1] || z > box[3]) return [Infinity, 0];
  return near <= far && near > 0 ? [near, side] : [Infinity, 0];
}

/**
 * The nearest wall or box from (x, z) along `angle`: {distance, side, along, box}. `side` is 0 where
 * it faces along x, `along` the metres along it, `box` its number or -1 for the floor's wall.
 */
export function castWall(view, x, z, angle) {
  const wayX = Math.sin(angle), wayZ = Math.cos(angle);
  const toX = wayX > 0 ? (view.size - x) / wayX : wayX < 0 ? -x / wayX : Infinity;
  const toZ = wayZ > 0 ? (view.size - z) / wayZ : wayZ < 0 ? -z / wayZ : Infinity;
  let distance = Math.min(toX, toZ), side = toX < toZ ? 0 : 1, box = -1;
  for (let k = 0; k < view.boxes.length; k += 1) {
    const [near, facing] = toBox(x, z, wayX, wayZ, view.boxes[k]);
    if (near < distance) [distance, side, box] = [near, facing, k];
  }
  const along = side === 0 ? z + distance * wayZ : x + distance * wayX;
  return { distance, side, along, box };
}

/**
 * The bodies met from (x, z) along `angle` before `reach`, the farthest first: {distance, across,
 * body}. `across` is where it is met, from -1 (its left edge) to 1. A body that is down is met too.
 */
export function castBodies(view, x, z, angle, reach) {
  const wayX = Math.sin(angle), wayZ = Math.cos(angle), met = [];
  for (let k = 0; k < view.bodies.length; k += 1) {
    const body = view.bodies[k];
    const toX = body.x - x, toZ = body.z - z;
    const along = toX * wayX + toZ * wayZ;
    const right = toX * wayZ - toZ * wayX; // of the ray, to the body's middle
    const rest = body.radius * body.radius - right * right;
    if (rest < 0 || along <= 0) continue;
    const distance = along - Math.sqrt(rest);
    if (distance > 0 && distance < reach) met.push({ distance, across: -right / body.radius, body: k });
  }
  return met.sort((one, two) => two.distance - one.distance);
}

/** What a shot or the middle ray would meet: {kind, distance, body}. */
export function sight(view, x, z, angle) {
  const wall = castWall(view, x, z, angle);
  const standing = castBodies(view, x, z, angle, wall.distance)
    .filter(({ body }) => view.bodies[body].hits_left > 0);
  if (!standing.length) return { kind: WALL, distance: wall.distance, body: -1 };
  const { distance, body } = standing[standing.length - 1];
  return { kind: BODY, distance, body };
}

/** The agent's rays from where it is drawn, which is between two decisions: [angle, metres, kind]. */
export function castRays(view) {
  return view.rays.map(([angle]) => {
    const { kind, distance } = sight(view, view.x, view.z, view.yaw + angle);
    return distance > view.ray_range ? [angle, view.ray_range, NOTHING] : [angle, distance, kind];
  });
}

/** The outline of what the agent sees from there: points from the left edge of its view to the right. */
export function castView(view) {
  const half = view.view_angle * Math.PI / 360, steps = Math.ceil(2 * half / STEP);
  const angles = Array.from({ length: steps + 1 }, (_, k) => half * (2 * k / steps - 1));
  const see = (x, z, radius = 0) => {
    const toX = x - view.x, toZ = z - view.z, far = Math.hypot(toX, toZ);
    const wide = Math.asin(Math.min(radius / far, 1)), ahead = Math.atan2(toX, toZ) - view.yaw;
    for (const angle of [ahead - wide - EDGE, ahead - wide + EDGE, ahead + wide - EDGE, ahead + wide + EDGE]) {
      const turn = Math.atan2(Math.sin(angle), Math.cos(angle));
      if (Math.abs(turn) < half) angles.push(turn);
    }
  };
  for (const [left, low, right, high] of [...view.boxes, [0, 0, view.size, view.size]]) {
    for (const x of [left, right]) for (const z of [low, high]) see(x, z);
  }
  for (const { x, z, radius } of view.bodies) see(x, z, radius);
  return angles.sort((one, two) => one - two).map((angle) => {
    const way = view.yaw + angle;
    const far = Math.min(sight(view, view.x, view.z, way).distance, view.ray_range);
    return [view.x + far * Math.sin(way), view.z + far * Math.cos(way)];
  });
}
