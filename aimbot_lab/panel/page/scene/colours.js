// The colours of scenes, from the page's style, light or dark.

const NAMES = [
  "floor", "grid", "wall", "obstacle", "block", "goal", "agent", "enemy", "bystander", "down",
  "view", "ray", "path", "shot", "ghost", "bad", "ink", "quiet", "sheet", "line",
];

let found = null;
const scheme = window.matchMedia("(prefers-color-scheme: dark)");
scheme.addEventListener("change", () => { found = null; });

/** The colours by name, as the style says now; the same object until the scheme changes. */
export function colours() {
  if (found === null) {
    const style = getComputedStyle(document.documentElement);
    found = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return found;
}

/** "#4a5462" as [74, 84, 98]. */
export function channels(colour) {
  const digits = colour.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}

/** A colour between two, `share` of the way to the second. */
export function blended(one, two, share) {
  const [from, to] = [channels(one), channels(two)];
  const mixed = from.map((part, k) => Math.round(part + (to[k] - part) * share));
  return `rgb(${mixed.join(" ")})`;
}
