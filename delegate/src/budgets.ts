/** A budget: the most that may be spent in a period. Sums are of whole nano-epsilon: charges are rounded up, budgets down. */
import { invalidParameter } from "./errors.js";
import { ceiling, ofDecimal } from "./fraction.js";
import type { Noise } from "./noise.js";
import { checkedPeriod, type Period } from "./periods.js";

/** At most `epsilon` in each day or month of the calendar (UTC), or in all. */
export interface Budget {
  readonly epsilon: number;
  readonly per: Period;
}

/** What a charge takes: whole nano-epsilon; or none, and a mark, where the noise promises nothing. */
export interface Cost {
  readonly amount: number;
  readonly unprotected: number;
}

const DIGITS = 9;
const UNITS = 10n ** BigInt(DIGITS);

/** A float in nano-epsilon, rounded up. It is taken as the shortest decimal that reads back as it: 0.1 three times is 0.3. */
export function unitsUp(epsilon: number): number {
  const { numerator, denominator } = ofDecimal(String(epsilon))!;
  return Number(ceiling(numerator * UNITS, denominator));
}

/** Nano-epsilon as the exact decimal they stand for, without trailing zeros. */
export function shown(units: number): string {
  const digits = String(units).padStart(DIGITS + 1, "0");
  return `${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`.replace(/\.?0+$/, "");
}

/** What a release at `epsilon` costs when its noise is from this source. */
export const costFrom = (epsilon: number, noise: Noise): Cost =>
  noise.caveat === null ? { amount: unitsUp(epsilon), unprotected: 0 } : { amount: 0, unprotected: 1 };

/** A copy of the budget, if something can be charged to it and its epsilon has at most nine decimals. */
export function checkedBudget(budget: Budget): Budget {
  const { epsilon, per } = budget;
  const { numerator, denominator } = (epsilon > 0 && ofDecimal(String(epsilon))) || { numerator: 0n, denominator: 1n };
  if (numerator === 0n || (numerator * UNITS) % denominator !== 0n || !Number.isSafeInteger(unitsUp(epsilon))) {
    throw invalidParameter("the epsilon of a budget is a number above 0 of at most nine decimals, and below 9 million.");
  }
  return { epsilon, per: checkedPeriod("per", per) };
}
