/** Numbers in words. What is promised is rounded up, so that "at most" stays true. */

const WHOLE = new Intl.NumberFormat("en-GB");
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const MOMENT = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${WHOLE.format(count)} ${count === 1 ? one : many}`;
}

/** @param {number} size */
export function bytes(size) {
  if (size < 10_000) return counted(size, "byte");
  return size < 1_000_000 ? `${WHOLE.format(Math.round(size / 1000))} kB` : `${(size / 1_000_000).toFixed(1)} MB`;
}

/** With as many digits as a person reads; not for promises. @param {number} value @param {number} [digits] */
export function plain(value, digits = 3) {
  if (value === 0) return "0";
  const shown = Number(value.toPrecision(digits));
  return Math.abs(shown) >= 1000 ? WHOLE.format(shown) : `${shown}`.replace("-", "−");
}

/** Rounded up to three digits, but not where the third is only a slip of floats. @param {number} value @param {number} [digits] */
export function roundedUp(value, digits = 3) {
  if (!Number.isFinite(value)) return "infinite";
  if (value === 0) return "0";
  const unit = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  const shown = Number((Math.ceil(value / unit - 1e-4) * unit).toPrecision(digits));
  return shown >= 1000 ? WHOLE.format(shown) : `${shown}`;
}

/** e^epsilon, the factor by which chances may differ, rounded up. @param {number} epsilon */
export function factor(epsilon) {
  if (!Number.isFinite(epsilon)) return "any number of";
  if (epsilon < Math.log(1e6)) return roundedUp(Math.exp(epsilon));
  return `10${raised(Math.ceil(epsilon / Math.LN10 - 1e-9))}`;
}

/** A whole number as an exponent. @param {number} power */
export function raised(power) {
  return [...String(power)].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)])).join("");
}

/**
 * What a factor e^epsilon is worth, honestly.
 * @param {number} epsilon
 * @returns {{ level: "good" | "some" | "bad", says: string }}
 */
export function worth(epsilon) {
  if (epsilon <= 0.5) return { level: "good", says: "well hidden" };
  if (epsilon <= 1.5) return { level: "good", says: "hidden, not perfectly" };
  if (epsilon <= 3) return { level: "some", says: "weakly hidden" };
  return { level: "bad", says: "not hidden" };
}

/** @param {number} share 0 to 1 @param {number} [digits] */
export function percent(share, digits = 0) {
  const shown = (100 * share).toFixed(digits);
  const whole = share < 1 && Number(shown) === 100; // what is not certain is not shown as certain
  return `${whole ? `over ${(100 - 10 ** -digits).toFixed(digits)}` : shown}\u00a0%`; // which does not break before the sign
}

/** @param {Date} date */
export const day = (date) => DAY.format(date);

/** @param {Date} date */
export const moment = (date) => MOMENT.format(date);
