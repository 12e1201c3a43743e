// Numbers as a person reads them.

const whole = new Intl.NumberFormat("en");

/** 1,234,567; a dash for what is not known. */
export function count(value) {
  return isNumber(value) ? whole.format(Math.round(value)) : "–";
}

/** "1 run", "2 runs". */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** 412 k, 3.2 M; 0.5. */
export function brief(value) {
  if (!isNumber(value)) return "–";
  for (const [size, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(3))} ${name}`;
  }
  return String(Math.abs(value) < 10 ? Number(value.toPrecision(2)) : Math.round(value));
}

/** 83.1 %. */
export function percent(share, digits = 1) {
  return isNumber(share) ? `${(100 * share).toFixed(digits)} %` : "–";
}

/**
 * Both ends of a rate's interval as `digits` decimals show them, without claiming what is not
 * known: an end below 1 does not read as 1, nor one above 0 as 0.
 */
export function shownEnds(lower, upper, digits) {
  const unit = 10 ** -digits;
  const low = isNumber(lower) && lower < 1 && Number(lower.toFixed(digits)) === 1 ? 1 - unit : lower;
  const high = isNumber(upper) && upper > 0 && Number(upper.toFixed(digits)) === 0 ? unit : upper;
  return [low, high];
}

/** 91.2 % [88.5, 93.4], as the terminal shows it. */
export function rate(value, lower, upper, digits = 1) {
  if (!isNumber(lower)) return percent(value, digits);
  const ends = shownEnds(lower, upper, digits + 2).map((end) => (100 * end).toFixed(digits));
  return `${percent(value, digits)} [${ends.join(", ")}]`;
}

/** 12 s, 3 min 20 s, 2 h 5 min. */
export function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${whole.format(Math.floor(s / 3600))} h ${Math.floor((s % 3600) / 60)} min`;
}

/** 11:20, or 3 Mar, 11:20 where that was another day. */
export function clock(ms) {
  if (!ms) return "";
  const then = new Date(ms);
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (then.toDateString() === new Date().toDateString()) return time;
  return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${time}`;
}

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
