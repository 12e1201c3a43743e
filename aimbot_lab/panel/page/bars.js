// What stands beside an agent that plays: its reward by term, what it expects, how likely its choices are.

import { el, fill, say } from "./dom.js";
import { percent } from "./format.js";

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

/** `draw(mind, when)`: the critic's value, and a row of shares for each branch; what was taken is strong. */
export function mindView() {
  const title = el("h2", {}, "What it expects, and how likely each choice is");
  const body = el("div", {});
  const node = el("div", { className: "mind", hidden: true }, title, body);

  function draw(mind, when = "") {
    node.hidden = !mind;
    if (!mind) return;
    const { value, choices } = mind;
    fill(body,
      value !== null && el("p", {}, "Critic's value ", el("strong", {}, value.toFixed(2))),
      choices.map(([name, shares, taken, words = []]) => el("p", {},
        el("span", { className: "quiet" }, `${name} `), shares.map((share, k) => {
          const cell = el("span", { className: k === taken ? "share taken" : "share" }, `${words[k] ?? ""} ${percent(share, 0)}`.trim());
          cell.style.setProperty("--share", share);
          return cell;
        }))),
      when && el("p", { className: "quiet" }, when));
  }

  return { node, draw };
}
