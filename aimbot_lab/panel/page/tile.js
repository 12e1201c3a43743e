// A number with its name above and a remark below.

import { el } from "./dom.js";

export function tile(label) {
  const title = el("span", {}, label);
  const value = el("strong", {});
  const below = el("span", { className: "quiet" });
  return { node: el("div", { className: "tile" }, title, value, below), title, value, below };
}
