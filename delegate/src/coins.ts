/** Is U < p? Decided exactly, however close, for a uniform U whose bits are drawn as they are needed. */
import { expBounds } from "./exp.js";
import type { Fraction } from "./fraction.js";
import { leadingBits, type Noise } from "./noise.js";

const WORD = 64;

/** A coin that falls heads with probability e^-exponent, exponent >= 0. One word of noise settles it but for once in 2^62 times. */
export function exponentialCoin(exponent: Fraction, noise: Noise): boolean {
  const negated = { ...exponent, numerator: -exponent.numerator };
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    prefix = (prefix << BigInt(WORD)) | leadingBits(noise, WORD);
    const [low, high] = expBounds(negated, known);
    if (prefix < low) return true; // U < (prefix + 1) / 2^known <= p
    if (prefix >= high) return false;
  }
}

/** One of several items, item i with probability proportional to e^-exponents[i]; the smallest exponent is 0. */
export function exponentialChoice(exponents: readonly Fraction[], noise: Noise): number {
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    prefix = (prefix << BigInt(WORD)) | leadingBits(noise, WORD);
    const bounds = exponents.map((one) => expBounds({ ...one, numerator: -one.numerator }, known + WORD));
    const [least, most] = bounds.reduce(([a, b], [low, high]) => [a + low, b + high], [0n, 0n]);
    // U times the total lies in [prefix * least, (prefix + 1) * most) / 2^known
    const [start, end] = [prefix * least, (prefix + 1n) * most];
    let [lowSum, highSum] = [0n, 0n];
    for (const [item, [low, high]] of bounds.entries()) {
      const begins = highSum << BigInt(known); // the stretch of this item surely contains [begins, ends)
      [lowSum, highSum] = [lowSum + low, highSum + high];
      const last = item === bounds.length - 1; // the last stretch ends with the total, which U never reaches
      if (begins <= start && (end <= lowSum << BigInt(known) || last)) return item;
    }
  }
}
