// Weights that sum to 1, as they are shown; the server knows how they move.

const DIGITS = 3;
const UNIT = 10 ** DIGITS;

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
