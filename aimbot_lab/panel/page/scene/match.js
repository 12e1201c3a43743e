// A match of two agents: who is who, healths, guns, hits, what the away agent sees, who won and why.

import { el, fill, say } from "../dom.js";

const SEATS = ["home", "away"], YOU = "you";
const MAX_SQUARES = 10; // of health; more are a number alone
const MARKED = 600; // ms for which a hit stays marked

/** Whether a scene is of a match. */
export function isMatch(scene) {
  return Boolean(scene.fighters?.length);
}

/** The scene as the away agent sees it. */
export function awayScene(scene) {
  const [home, away] = scene.fighters;
  const { x, z, radius, health } = home;
  return {
    ...scene, ...away, hit: away.hit ? 0 : -1, wounded: home.hit, circle: null,
    bodies: [{ x, z, radius, hits_left: health, counts: true, home: true }],
  };
}

/** Who won a match whose `fighters` ended so with the line `Warning|Result|...` of home, and why. */
export function resultWords(fighters, names, line) {
  const [home, away] = fighters, healths = `health ${home.health} against ${away.health}`;
  if (home.health <= 0 && away.health <= 0) return "A draw: each shot the other down in the same moment";
  const won = /\|Win|^Won/.test(line) ? 0 : /\|Lose|^Lost/.test(line) ? 1 : -1;
  if (won < 0) return `A draw: the time is up, ${healths}`;
  const winner = titled(names, won), loser = titled(names, 1 - won);
  const wins = winner === YOU ? "You win" : `${winner[0].toUpperCase()}${winner.slice(1)} wins`;
  if (home.health > 0 && away.health > 0) return `${wins}: the time is up, ${healths}`;
  const has = winner === YOU ? "you have" : `${SEATS[won]} has`;
  const left = `${has} ${fighters[won].health} of ${fighters[won].max_health} health left`;
  return `${wins}: ${loser} ${loser === YOU ? "were" : "was"} shot down; ${left}`;
}

function titled(names, seat) {
  const name = names[seat], isNamed = name && name !== SEATS[seat];
  return name === YOU ? YOU : isNamed ? `${SEATS[seat]} (${name})` : SEATS[seat];
}

/** A card for each agent: `nodes` are home's and away's. */
export class MatchCards {
  constructor() {
    this.cards = SEATS.map((seat) => card(seat));
    this.nodes = this.cards.map(({ node }) => node);
    this.hide(true);
  }

  hide(hidden) {
    for (const node of this.nodes) node.hidden = hidden;
  }

  /** Shows both agents of a scene, where it is of a match. */
  show(scene, names) {
    this.hide(!isMatch(scene));
    if (!isMatch(scene)) return;
    const now = performance.now();
    scene.fighters.forEach((fighter, seat) => {
      const shown = this.cards[seat], other = scene.fighters[1 - seat];
      say(shown.name, names[seat] ?? "");
      drawHealth(shown, fighter);
      const gun = fighter.ready ? "gun ready" : `reloads, ${fighter.reload_seconds.toFixed(1)} s`;
      say(shown.gun, fighter.health > 0 ? gun : "down");
      if (fighter.hit || other.hit) Object.assign(shown, { until: now + MARKED, word: other.hit ? "is hit" : "hits" });
      else if (now > (shown.until ?? 0)) shown.word = fighter.fired ? "shoots" : "";
      say(shown.event, shown.word ?? "");
      shown.event.className = `event ${shown.word === "is hit" ? "hurt" : ""}`;
    });
  }
}

function card(seat) {
  const name = el("strong", {}), health = el("span", { className: "health", role: "img" });
  const points = el("span", { className: "points" }), gun = el("span", { className: "quiet gun" });
  const event = el("span", { className: "event" });
  const node = el("div", { className: `fighter ${seat}` },
    el("span", { className: "seat" }, seat), name, health, points, gun, event);
  return { node, name, health, points, gun, event, drawn: "" };
}

function drawHealth(shown, { health, max_health: most }) {
  const key = `${health}/${most}`;
  if (shown.drawn === key) return;
  shown.drawn = key;
  const squares = Math.min(most, MAX_SQUARES), full = Math.round(squares * health / Math.max(most, 1));
  fill(shown.health, Array.from({ length: squares }, (_, k) => el("i", { className: k < full ? "full" : "" })));
  shown.health.setAttribute("aria-label", `health ${health} of ${most}`);
  say(shown.points, `${health} of ${most}`);
}
