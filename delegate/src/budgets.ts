/** A budget: the most that may be spent in a period. Sums are of whole nano-epsilon: charges are rounded up, budgets down. */
import { invalidParameter } from "./errors.js";
import { ceiling, ofDecimal } from "./fraction.js";
import type { Noise } from "./noise.js";
import { checkedPeriod, DAY, endOf, startOf, type Period } from "./periods.js";

/** At most `epsilon` in each day or month of the calendar (UTC), or in all; or, sliding, in any 24 hours or 31 days. */
export interface Budget {
  readonly epsilon: number;
  readonly per: Period;
  readonly sliding?: boolean;
}

const LENGTHS = { day: DAY, month: 31 * DAY, lifetime: 0 };

/** The window of a charge at `at` holds the charges from this moment on. */
export const windowOf = ({ per, sliding }: Budget, at: number): number =>
  sliding ? at - LENGTHS[per] + 1 : startOf(per, at); // sliding, it is (at - length, at], in whole milliseconds

/** When the calendar opens the next window; null where it does not. */
export const renewalOf = ({ per, sliding }: Budget, at: number): number | null => (sliding ? null : endOf(per, at));

/** The span that a budget is for, in words. */
export const spanOf = ({ per, sliding }: Budget): string => (sliding ? "a sliding " : "each ") + per;

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
  const { epsilon, per, sliding = false } = budget;
  const { numerator, denominator } = (epsilon > 0 && ofDecimal(String(epsilon))) || { numerator: 0n, denominator: 1n };
  if (numerator === 0n || (numerator * UNITS) % denominator !== 0n || !Number.isSafeInteger(unitsUp(epsilon))) {
    throw invalidParameter("the epsilon of a budget is a number above 0 of at most nine decimals, and below 9 million.");
  }
  const found = { epsilon, per: checkedPeriod("per", per) };
  if (!sliding) return found;
  if (sliding !== true || per === "lifetime") throw invalidParameter("sliding is true or false, and a lifetime does not slide.");
  return { ...found, sliding };
}
