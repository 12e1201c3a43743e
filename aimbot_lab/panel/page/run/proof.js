// What a lesson asks for, and how that was shown, in words.

import { count, interval, isNumber, percent } from "../format.js";

/** "win rate > 30 %"; empty where the lesson asks for nothing, or an older run does not say. */
export function asked(lesson) {
  return claim(lesson, "");
}

/** "22.1 of 20", which is evidence; the measure itself where no test judges. */
export function found(lesson) {
  if (isNumber(lesson.evidence)) return `${odds(lesson.evidence)} of ${odds(lesson.evidence_needed)}`;
  return isNumber(lesson.value) ? `${measured(lesson, lesson.value)} (no test)` : "";
}

/** How a passed lesson was proven: "win rate > 30 %, evidence 22.1 of 20". */
export function proof(lesson) {
  if (isNumber(lesson.evidence)) return `${claim(lesson, "")}, evidence ${found(lesson)}`;
  return isNumber(lesson.value) ? claim(lesson, ` ${measured(lesson, lesson.value)}`) : "";
}

/** "88.9 % (30.2 % to 100.0 %)"; the interval of a passed lesson is that of its test. */
export function rateWords(one, episodes) {
  if (!episodes || !isNumber(one.win_rate)) return "–";
  const needed = one.ended_at_step && one.measure === "win_rate" ? one.evidence_needed : null;
  const isUsual = !isNumber(needed) || Math.abs(needed - 20) < 1e-9;
  const level = isUsual ? "" : ` at ${Number((100 - 100 / needed).toPrecision(6))} %`;
  return `${percent(one.win_rate)} (${interval(one.lower, one.upper)})${level}`;
}

export function odds(value) {
  if (value >= 1e6) return "1,000,000+";
  return value >= 1000 ? count(value) : String(Number(value.toPrecision(3)));
}

function claim(lesson, value) {
  if (!lesson.measure) return "";
  const where = lesson.every_cell ? " (each cell)" : "";
  return `${lesson.measure.replace("_", " ")}${value} > ${measured(lesson, lesson.threshold)}${where}`;
}

function measured(lesson, value) {
  const isRate = lesson.measure === "win_rate";
  return `${Number(((isRate ? 100 : 1) * value).toPrecision(4))}${isRate ? " %" : ""}`;
}
