/**
 * The limits that the owner of a device sets: budgets for signals and offers, and slots, which say when a fresh signal may be drawn. Limits
 * depend on public data only, and no offer changes them.
 *
 * Sums are in nano-epsilon, as integers. Charges are rounded up. Calendar times are in UTC, as milliseconds since 1970.
 */
import { ceiling, ofDecimal } from "./arithmetic.js";
import { invalidParameter, TacitError } from "./errors.js";
import { MOST_EPSILON } from "./messages/private_selection.js";
import type { Noise } from "./noise.js";

export type Period = "day" | "month" | "lifetime";

/** At most `epsilon` in each calendar day or month (UTC), or in a lifetime. If `sliding`: in any 24 hours or any 31 days. */
export interface Budget {
  readonly epsilon: number;
  readonly per: Period;
  readonly sliding?: boolean;
}

/** Limits for offers. */
export interface Limits {
  /** The most that one offer may cost; 1 by default. */
  readonly epsilon?: number;
  /** The budget for each server; 10 in any 24 hours by default. A shared budget would show each server what the user does elsewhere. */
  readonly budget?: Budget;
}

/** Returns the limits with their defaults. Throws if a value is out of range. */
export function checkLimits({ epsilon = 1, budget = { epsilon: 10, per: "day", sliding: true } }: Limits = {}): Required<Limits> {
  if (!(epsilon > 0 && epsilon <= MOST_EPSILON)) throw invalidParameter(`limits.epsilon must be above 0 and at most ${MOST_EPSILON}.`);
  return { epsilon, budget: checkBudget(budget) };
}

/** Returns a copy of the budget. Throws unless its epsilon is positive and has at most nine decimals. */
export function checkBudget({ epsilon, per, sliding = false }: Budget): Budget {
  const { numerator, denominator } = (epsilon > 0 && ofDecimal(String(epsilon))) || { numerator: 0n, denominator: 1n };
  if (numerator === 0n || (numerator * UNITS) % denominator !== 0n || !Number.isSafeInteger(unitsUp(epsilon))) {
    throw invalidParameter("a budget's epsilon must be above 0, below 9 million, and have at most nine decimals.");
  }
  const budget = { epsilon, per: checkPeriod("per", per) };
  if (!sliding) return budget;
  if (sliding !== true || per === "lifetime") throw invalidParameter("sliding must be true or false, and false for a lifetime.");
  return { ...budget, sliding };
}

/** The start of a charge's window: the window of a charge at `at` holds all charges from this moment on. */
export const windowOf = ({ per, sliding }: Budget, at: number): number =>
  sliding ? at - LENGTHS[per] + 1 : (edgeOf(per, at, 0) ?? -Infinity); // sliding: (at - length, at], in whole milliseconds

/** When the next calendar window opens; null for a lifetime or a sliding window. */
export const renewalOf = ({ per, sliding }: Budget, at: number): number | null => (sliding ? null : edgeOf(per, at, 1));

/** The budget's period in words. */
export const periodText = ({ per, sliding }: Budget): string => (sliding ? "a sliding " : "each ") + per;

/** The price of a charge: `amount` in nano-epsilon; or 0 and the mark `unprotected` if the noise promises nothing. */
export interface Cost {
  readonly amount: number;
  readonly unprotected: number;
}

/** The cost of a release at `epsilon` with noise from this source. */
export const costFrom = (epsilon: number, noise: Noise): Cost =>
  noise.caveat === null ? { amount: unitsUp(epsilon), unprotected: 0 } : { amount: 0, unprotected: 1 };

const DIGITS = 9;
const UNITS = 10n ** BigInt(DIGITS);

/** Converts a float to nano-epsilon, rounded up. The float stands for its shortest decimal, so three charges of 0.1 make 0.3. */
export function unitsUp(epsilon: number): number {
  const { numerator, denominator } = ofDecimal(String(epsilon))!;
  return Number(ceiling(numerator * UNITS, denominator));
}

/** Formats nano-epsilon as an exact decimal without trailing zeros. */
export function formatUnits(units: number): string {
  const digits = String(units).padStart(DIGITS + 1, "0");
  return `${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`.replace(/\.?0+$/, "");
}

/**
 * The name of the slot that contains `at` (milliseconds since 1970): a day or month, or one of its equal parts.
 *
 * A device may draw one fresh signal in each slot. Slots follow the calendar, so the time of a fresh signal says nothing about the user.
 * Drawing "because the features have moved" would.
 */
export function slotOf(at: number, refresh: Period = "month", perPeriod = 1): string {
  checkSlots(refresh, perPeriod);
  const now = moment(() => at);
  const end = edgeOf(refresh, now, 1);
  if (end === null) return "ever";
  const name = new Date(now).toISOString().slice(0, refresh === "day" ? 10 : 7);
  const start = edgeOf(refresh, now, 0)!;
  const part = Math.floor(((now - start) * perPeriod) / (end - start));
  return perPeriod === 1 ? name : `${name}.${part + 1}of${perPeriod}`;
}

/**
 * Throws if the slots are invalid or, given the budget's period, longer than it. With longer slots, a device that lost its stored signals
 * and stayed silent for one period could draw a second signal in one slot.
 */
export function checkSlots(refresh: Period, perPeriod: number, per: Period = "lifetime"): void {
  checkPeriod("refresh", refresh);
  if (!Number.isInteger(perPeriod) || perPeriod < 1 || perPeriod > (refresh === "lifetime" ? 1 : 1000)) {
    throw invalidParameter("perPeriod must be a whole number from 1 to 1000, and 1 for a lifetime.");
  }
  if (PERIODS.indexOf(refresh) > PERIODS.indexOf(per)) {
    throw invalidParameter(`a slot must not be longer than the budget's period: use refresh "${per}", or a budget per "${refresh}".`);
  }
}

const PERIODS: readonly Period[] = ["day", "month", "lifetime"]; // by length
export const DAY = 86_400_000;
const LENGTHS = { day: DAY, month: 31 * DAY, lifetime: 0 };
const END_OF_TIME = 2_900_000 * DAY; // in the year 9909

/** The clock's time in whole milliseconds. Throws if the clock shows an impossible date. */
export function moment(clock: () => number): number {
  const at = Math.floor(clock());
  if (!(at >= 0 && at <= END_OF_TIME)) {
    throw new TacitError("ledger-unavailable", "the system clock shows an impossible date; nothing was charged. Set it and try again.");
  }
  return at;
}

/** Where the calendar period that contains `at` starts (`later` 0) or the next one starts (`later` 1); null for a lifetime. */
function edgeOf(per: Period, at: number, later: number): number | null {
  const date = new Date(at);
  if (per === "day") return at - (at % DAY) + later * DAY;
  return per === "month" ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1) : null;
}

function checkPeriod(what: string, value: unknown): Period {
  const period = PERIODS.find((known) => known === value);
  if (period === undefined) throw invalidParameter(`${what} must be one of ${PERIODS.join(", ")}.`);
  return period;
}
