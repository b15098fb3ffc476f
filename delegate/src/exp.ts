/** The exponential in whole numbers: enclosures that are proved, as narrow as is asked for. */
import { ceiling, ofFloat, type Fraction } from "./fraction.js";

export const WEIGHT_BITS = 32;
const REDUCED = 8; // the series is summed at exponents below 2^-8

/** Whole numbers (low, high) with low <= 2^count e^exponent <= high, whose difference stays small as `count` grows. */
export function expBounds(exponent: Fraction, count: number): [bigint, bigint] {
  const { numerator, denominator } = exponent;
  const negative = numerator < 0n;
  const size = negative ? -numerator : numerator;
  if (size === 0n) return [1n << BigInt(count), 1n << BigInt(count)];
  if (negative && size >= BigInt(count) * denominator) return [0n, 1n]; // e^-count is below 2^-count
  // e^x = (e^(x / 2^halvings))^(2^halvings): every squaring loses a bit, a negative exponent twice as many as e^|x| has
  const halvings = REDUCED + (size / denominator).toString(2).length;
  const precision = BigInt(count + 64 + 2 * halvings + 4 * Number(size / denominator));
  let [low, high] = series(size, denominator << BigInt(halvings), precision);
  for (let left = halvings; left > 0; left -= 1) {
    low = (low * low) >> precision;
    high = ((high * high) >> precision) + 1n;
  }
  if (negative) {
    const one = 1n << (2n * precision);
    [low, high] = [one / high, one / low + 1n];
  }
  const spare = precision - BigInt(count);
  return [low >> spare, ceiling(high, 1n << spare)];
}

/** Enclosure of 2^precision e^(size/denominator), for an exponent above 0 and below 2^-8: the series, rounded to both sides. */
function series(size: bigint, denominator: bigint, precision: bigint): [bigint, bigint] {
  const one = 1n << precision;
  let [term, sum, terms] = [one, one, 1n];
  while (term > 0n) {
    term = (term * size) / (denominator * terms);
    sum += term;
    terms += 1n;
  }
  // Each term is too small by less than 2, since an earlier error shrinks with the terms; what follows the last is below 2.
  return [sum, sum + 2n * terms + 2n];
}

/** 2^32 e^epsilon rounded down, at least 2^32: the ratio to 2^32 never exceeds e^epsilon. `epsilon` is a float, taken exactly. */
export function weightOf(epsilon: number): bigint {
  const exact = ofFloat(epsilon);
  for (let more = 96; ; more *= 2) {
    const [low, high] = expBounds(exact, WEIGHT_BITS + more).map((end) => end >> BigInt(more)) as [bigint, bigint];
    const least = 1n << BigInt(WEIGHT_BITS);
    if (low === high) return low > least ? low : least;
  }
}
