// Rays against a scene's walls, boxes and bodies: metres, x to the right, z ahead at yaw 0.

export const WALL = 0, BODY = 1;

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
