// How a win rate and its evidence are shown; what a lesson asks for, the server says in words.

import { count, isNumber, rate } from "../format.js";

/** "88.9 % [30.2, 100.0]"; the interval of a passed lesson is that of its test. */
export function rateWords(one, episodes) {
  if (!episodes || !isNumber(one.win_rate)) return "–";
  return `${rate(one.win_rate, one.lower, one.upper)}${one.level_words ?? ""}`;
}

export function odds(value) {
  if (value >= 1e6) return "1,000,000+";
  return value >= 1000 ? count(value) : String(Number(value.toPrecision(3)));
}
