/** Parts of the calendar, in UTC, as milliseconds since 1970: windows of budgets, and slots of signals. */
import { invalidParameter, TacitError } from "./errors.js";

export type Period = "day" | "month" | "lifetime";

const PERIODS: readonly Period[] = ["day", "month", "lifetime"]; // by length
export const DAY = 86_400_000;
const END_OF_TIME = 2_900_000 * DAY; // in the year 9909: what comes later is in no calendar

/** The clock's time as whole milliseconds, if a calendar knows it. */
export function moment(clock: () => number): number {
  const at = Math.floor(clock());
  if (!(at >= 0 && at <= END_OF_TIME)) {
    throw new TacitError("ledger-unavailable", "the clock's time is in no calendar: mend it.");
  }
  return at;
}

/** Where the window that holds `at` begins; minus infinity for a lifetime. */
export const startOf = (per: Period, at: number): number => edgeOf(per, at, 0) ?? -Infinity;

/** When the calendar opens the next window; null for a lifetime. */
export const endOf = (per: Period, at: number): number | null => edgeOf(per, at, 1);

function edgeOf(per: Period, at: number, later: number): number | null {
  const date = new Date(at);
  if (per === "day") return at - (at % DAY) + later * DAY;
  return per === "month" ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1) : null;
}

export function checkedPeriod(what: string, period: unknown): Period {
  const found = PERIODS.find((one) => one === period);
  if (found === undefined) throw invalidParameter(`${what} must be one of ${PERIODS.join(", ")}.`);
  return found;
}

/**
 * Refuses slots that are longer than the budget's period: a device that lost its memos and is silent for one period would else
 * draw a second signal in one slot.
 */
export function requireWithin(refresh: Period, per: Period): void {
  if (PERIODS.indexOf(refresh) > PERIODS.indexOf(per)) {
    throw invalidParameter(`a slot must not be longer than the budget's period: say refresh "${per}", or a budget per "${refresh}".`);
  }
}
