// Weights that sum to 1: the laws of the package's DifficultyWeights, and how they are shown.

const DIGITS = 3;
const UNIT = 10 ** DIGITS;

/**
 * `weights` with the one at `index` set to `wanted`: unlocked others keep their proportions
 * (equally where all are 0), locked ones stay, and what they hold can't be taken.
 */
export function moved(weights, locked, index, wanted) {
  const free = weights.map((_, k) => k).filter((k) => k !== index && !locked[k]);
  const kept = sum(weights.filter((_, k) => locked[k]));
  const room = Math.max(0, 1 - kept);
  const weight = free.length ? Math.min(Math.max(wanted, 0), room) : room;
  const before = sum(free.map((k) => weights[k]));
  const left = Math.max(0, room - weight);
  return weights.map((one, k) => {
    if (k === index) return weight;
    if (!free.includes(k)) return one;
    return before > 0 ? left * (one / before) : left / free.length;
  });
}

/** The most that the weight at `index` can take. */
export function most(weights, locked, index) {
  return Math.max(0, 1 - sum(weights.filter((_, k) => locked[k] && k !== index)));
}

/** Texts with three digits that sum to 1 as they stand there: the largest rests are rounded up. */
export function texts(weights) {
  const floors = weights.map((one) => Math.floor(one * UNIT + 1e-9));
  const rests = weights.map((one, k) => [one * UNIT - floors[k], k]);
  rests.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const missing = Math.round(sum(weights) * UNIT) - sum(floors);
  for (const [, k] of rests.slice(0, Math.max(0, missing))) floors[k] += 1;
  return floors.map((one) => (one / UNIT).toFixed(DIGITS));
}

function sum(values) {
  return values.reduce((total, one) => total + one, 0);
}
