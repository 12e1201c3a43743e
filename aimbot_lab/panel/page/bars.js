// Reward terms as bars: what each has given so far, and in the last decision.

import { el, fill, say } from "./dom.js";

/** `draw(terms)` takes [name, sum so far, last] of each term. */
export function barsView() {
  const node = el("div", { className: "bars" });
  let rows = [];
  let names = "";
  let widest = 1;

  function draw(terms) {
    const key = terms.map(([name]) => name).join(",");
    if (key !== names) {
      names = key;
      widest = 1;
      rows = terms.map(([name]) => row(name));
      fill(node, rows.map((one) => one.node));
    }
    if (terms.every(([, sum]) => sum === 0)) widest = 1;
    widest = Math.max(widest, ...terms.map(([, sum]) => Math.abs(sum)));
    terms.forEach(([, sum, last], k) => rows[k].set(sum, last));
  }

  function row(name) {
    const bar = el("span", {});
    const value = el("output", {});
    const node = el("div", { className: "term" }, el("span", {}, name.replaceAll("_", " ")),
      el("div", { className: "term-bar", aria: { hidden: "true" } }, bar), value);
    return { node, set(sum, last) {
      const width = 50 * Math.abs(sum) / widest;
      bar.style.width = `${width}%`;
      bar.style.left = `${sum < 0 ? 50 - width : 50}%`;
      bar.className = sum < 0 ? "less" : "";
      node.classList.toggle("now", last !== 0);
      say(value, sum.toFixed(1));
    } };
  }

  return { node, draw };
}
