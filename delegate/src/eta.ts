/** eta, the scale of a signal's noise in the units of features: the user's choice, as the fraction that was meant. */
import { invalidParameter } from "./errors.js";
import { fraction, ofDecimal, type Fraction } from "./fraction.js";

export const MOST_U32 = (1n << 32n) - 1n;

/** `eta` exactly: a number is read as the shortest decimal that means it, so that 0.1 is 1/10; a text is "0.1" or "1/10". */
export function exactEta(eta: number | string): Fraction {
  const written = typeof eta === "number" || typeof eta === "string" ? String(eta) : "";
  const [, above, under] = /^\s*(\d{1,40})\/(\d{1,40})\s*$/.exec(written) ?? [];
  const exact =
    above === undefined || under === undefined ? ofDecimal(written) : BigInt(under) === 0n ? null : fraction(BigInt(above), BigInt(under));
  if (exact === null || !inRange(exact)) {
    throw invalidParameter("eta must be a number from 0.001 to 10 of at most nine decimals, or a fraction of two numbers below 2^32.");
  }
  return exact;
}

/** From 1/1000 to 10, and in 64 bits. */
export const inRange = ({ numerator, denominator }: Fraction): boolean =>
  1000n * numerator >= denominator && numerator <= 10n * denominator && numerator <= MOST_U32 && denominator <= MOST_U32;
