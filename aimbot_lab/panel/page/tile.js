// A number with its name above and a remark below.

import { el } from "./dom.js";

export function tile(label) {
  const value = el("strong", {});
  const below = el("span", { className: "quiet" });
  return { node: el("div", { className: "tile" }, el("span", {}, label), value, below), value, below };
}
