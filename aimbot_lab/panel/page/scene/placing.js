// What the mouse does over the floor: the menu, the preview, the right click.

import { el, fill, say } from "../dom.js";

const STEP = 0.5; // m by an arrow key
const NEAR = 0.4; // m
const NOTHING = { key: "", label: "Nothing" };

export class Placing {
  /** `ask` is asked for a preview and to place; `stage` shows it. */
  constructor(stage, ask) {
    this.stage = stage;
    this.ask = ask;
    this.entry = NOTHING;
    this.variant = this.turns = 0;
    this.at = null;
    this.waiting = this.again = false;
    this.edits = 0; // that the page has made
    this.menu = el("fieldset", { className: "menu" });
    this.words = el("p", { className: "quiet place-words", role: "status" });
    this.button = el("button", { type: "button", on: { click: () => this.place() } }, "Place here");
    this.node = el("div", { className: "placing" }, this.menu, this.words, this.button);
    const { map } = stage;
    map.addEventListener("pointermove", (event) => this.move(event));
    map.addEventListener("pointerdown", (event) => event.pointerType !== "mouse" && this.move(event));
    map.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.hide());
    map.addEventListener("contextmenu", (event) => this.rightClick(event));
    map.addEventListener("keydown", (event) => this.key(event));
    this.turnKey = (event) => event.target !== map && this.turn(event);
    document.addEventListener("keydown", this.turnKey);
    this.tell();
  }

  /** Fills the menu: kinds with numbers ("Goto block 3") share a line. */
  fill(entries) {
    this.entries = [NOTHING, ...entries];
    const lines = new Map();
    for (const entry of this.entries) {
      const [, kind, number] = entry.label.match(/^(.*?)(?: (\d+))?$/);
      if (!lines.has(kind)) lines.set(kind, []);
      lines.get(kind).push([entry, number ?? kind]);
    }
    const rows = [...lines].map(([kind, list]) => el("div", { className: "menu-line" },
      list.length > 1 && el("span", {}, kind), list.map(([entry, word]) => this.choice(entry, word))));
    fill(this.menu, el("legend", {}, "Right click places"), rows);
    this.choose(this.entries.find(({ key }) => key === this.entry.key) ?? NOTHING);
  }

  choice(entry, word) {
    const input = el("input", {
      type: "radio", name: "thing", value: entry.key, checked: entry.key === this.entry.key,
      aria: { label: entry.label }, on: { change: () => this.choose(entry) },
    });
    return el("label", { className: "choice", title: entry.label }, input, el("span", {}, word));
  }

  choose(entry) {
    this.entry = entry;
    this.variant = this.turns = 0;
    this.show();
  }

  get outline() {
    return this.entry.outlines?.[this.variant];
  }

  move(event) {
    if (this.outline === undefined) return;
    this.at = this.stage.above.place(event.clientX, event.clientY);
    this.show();
  }

  hide() {
    this.at = null;
    this.show();
  }

  rightClick(event) {
    event.preventDefault();
    if (this.outline === undefined) return;
    const at = this.stage.above.place(event.clientX, event.clientY);
    // Clicks come in whole pixels: what the preview showed is what is meant.
    if (!this.at || Math.hypot(at[0] - this.at[0], at[1] - this.at[1]) > NEAR) this.at = at;
    this.place();
  }

  key(event) {
    if (this.outline === undefined) return;
    const ways = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    if (event.key in ways) {
      const [x, z] = this.at ?? [this.stage.above.size / 2, this.stage.above.size / 2];
      this.at = [x + STEP * ways[event.key][0], z + STEP * ways[event.key][1]];
    } else if (event.key === "Enter") this.place();
    else {
      this.turn(event);
      return;
    }
    event.preventDefault();
    this.show();
  }

  /** The keys that change what would be placed, wherever the page has the keyboard. */
  turn(event) {
    if (this.outline === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches?.("select, .eyes, input:not([type=radio])")) return;
    const count = this.entry.outlines.length;
    if (event.key === "[" || event.key === "]") {
      this.variant = (this.variant + (event.key === "]" ? 1 : count - 1)) % count;
    } else if (event.key === "r" && this.entry.turns) this.turns = (this.turns + 1) % 4;
    else return;
    event.preventDefault();
    this.show();
  }

  close() {
    document.removeEventListener("keydown", this.turnKey);
  }

  get wanted() {
    const [x, z] = this.at;
    return { key: this.entry.key, variant: this.variant, x, z, turns: this.turns };
  }

  /** Shows the preview, and asks whether it can be placed there, one question at a time. */
  async show() {
    const { outline, at, turns } = this;
    this.tell();
    if (outline === undefined || at === null) {
      this.stage.preview = null;
      return;
    }
    const fault = this.stage.preview?.fault ?? null;
    this.stage.preview = { outline, x: at[0], z: at[1], turns, fault };
    this.again = this.waiting;
    if (this.waiting) return;
    this.waiting = true;
    const { edits } = this;
    const answer = await this.ask("preview", this.wanted).catch(() => null);
    this.waiting = false;
    if (this.again) this.show();
    if (edits !== this.edits) return; // it was asked of another floor
    if (this.stage.preview && answer) this.stage.preview.fault = answer.fault;
    this.tell(answer?.fault);
  }

  async place() {
    if (this.outline === undefined || this.at === null) return;
    const answer = await this.ask("place", this.wanted);
    if (!answer) {
      this.show(); // which says why not
      return;
    }
    this.edits += 1;
    this.again = false;
    this.stage.preview = null; // until the pointer moves on: nothing else has room there
    say(this.words, `${this.entry.label}: placed.`);
  }

  tell(fault) {
    const { outline, entry } = this;
    this.button.hidden = outline === undefined || this.at === null;
    if (outline === undefined) say(this.words, "Choose a thing, then right click on the floor (or tap it and press “Place here”).");
    else if (fault) say(this.words, `${entry.label} can't be there: ${fault}.`);
    else if (entry.outlines.length > 1) {
      say(this.words, `“${outline.name}”, ${this.variant + 1} of ${entry.outlines.length}. ` +
        "[ and ] change it, r turns it.");
    } else say(this.words, "Right click on the floor. Arrow keys and Enter do as well.");
  }
}
