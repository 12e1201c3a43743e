// Elements from plain descriptions. Text is always text: nothing here reads HTML.

/**
 * An element. `given` holds properties (className, href, ...), `on` listeners by event, `aria` and
 * `data` attributes of that kind; children are elements, or texts, or lists of these.
 */
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  const { on = {}, aria = {}, data = {}, role, ...properties } = given;
  Object.assign(made, properties);
  if (role) made.setAttribute("role", role);
  for (const [name, value] of Object.entries(aria)) made.setAttribute(`aria-${name}`, value);
  for (const [name, value] of Object.entries(data)) made.dataset[name] = value;
  for (const [name, listen] of Object.entries(on)) made.addEventListener(name, listen);
  made.append(...shown(children));
  return made;
}

/** Puts `children` in place of what `parent` holds. */
export function fill(parent, ...children) {
  parent.replaceChildren(...shown(children));
  return parent;
}

/** Sets a text only where it is another, so that readers of the screen are not told again. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** A padlock, closed or open. */
export function lockIcon(isClosed) {
  const made = (tag, given) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(given)) node.setAttribute(name, value);
    return node;
  };
  const icon = made("svg", { viewBox: "0 0 20 20", width: 18, height: 18, fill: "none", stroke: "currentColor",
    "stroke-width": 2, "aria-hidden": "true" });
  icon.append(made("path", { d: isClosed ? "M6 9V6a4 4 0 0 1 8 0v3" : "M6 9V6a4 4 0 0 1 7.6-1.7" }),
    made("rect", { x: 4, y: 9, width: 12, height: 8, rx: 1.5, fill: isClosed ? "currentColor" : "none" }));
  return icon;
}

function shown(children) {
  return children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false);
}

/** A line (text or an element) that appears for a while: what went wrong, or what was done. */
export function notice(content, kind = "fault") {
  const line = el("p", { className: `notice ${kind}`, role: "alert" }, content);
  (document.querySelector("dialog[open]") ?? document.getElementById("notices")).append(line); // a dialog covers the others
  setTimeout(() => line.remove(), kind === "done" ? 30_000 : 9000);
}
