// How a win rate is shown; what a lesson asks for and its evidence, the server says in words.

import { isNumber, rate } from "../format.js";

/** "88.9 % [30.2, 100.0]"; the interval of a passed lesson is that of its test. */
export function rateWords(one, episodes) {
  if (!episodes || !isNumber(one.win_rate)) return "–";
  return `${rate(one.win_rate, one.lower, one.upper)}${one.level_words ?? ""}`;
}
