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

function shown(children) {
  return children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false);
}

/** A line (text or an element) that appears for a while: what went wrong, or what was done. */
export function notice(content, kind = "fault") {
  const line = el("p", { className: `notice ${kind}` }, content);
  document.getElementById("notices").append(line);
  setTimeout(() => line.remove(), kind === "done" ? 30_000 : 9000);
}
