// A scene on the way from one decision to the next: places and views in between.

const JUMP = 3; // m, farther than a walk in one decision

/** Whether the two places are farther apart than a walk in one decision. */
export function jumped(before, now) {
  return Math.hypot(now.x - before.x, now.z - before.z) > JUMP;
}

/** The angle `share` of the way from `a` to `b`, the shorter way round. */
export function turned(a, b, share) {
  const way = Math.atan2(Math.sin(b - a), Math.cos(b - a));
  return a + share * way;
}

/** The scene `share` of the way from one to the next: the agent, the bodies, both of a match. */
export function between(before, now, share) {
  if (jumped(before, now)) return now;
  const all = (name) => now[name].map((one, k) => moved(before[name]?.[k], one, share));
  return { ...moved(before, now, share), bodies: all("bodies"), fighters: all("fighters") };
}

function moved(before, now, share) {
  if (!before || jumped(before, now)) return now;
  const mix = (a, b) => a + share * (b - a);
  const found = { ...now, x: mix(before.x, now.x), z: mix(before.z, now.z) };
  if (now.yaw !== undefined) found.yaw = turned(before.yaw, now.yaw, share);
  return found;
}
