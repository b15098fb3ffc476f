/**
 * Slots: when a device may draw a fresh signal. A slot is a part of the calendar, so that the time of a fresh signal says nothing
 * about the user; drawing one "because the features have moved" would.
 */
import { invalidParameter } from "./errors.js";
import { checkedPeriod, endOf, moment, startOf, type Period } from "./periods.js";

/** The name of the slot that `at` (milliseconds since 1970, UTC) lies in: a day or month, or one of its equal parts. */
export function slotOf(at: number, refresh: Period = "month", perPeriod = 1): string {
  checkedSlots(refresh, perPeriod);
  const now = moment(() => at);
  const end = endOf(refresh, now);
  if (end === null) return "ever";
  const name = new Date(now).toISOString().slice(0, refresh === "day" ? 10 : 7);
  const start = startOf(refresh, now);
  const part = Math.floor(((now - start) * perPeriod) / (end - start));
  return perPeriod === 1 ? name : `${name}.${part + 1}of${perPeriod}`;
}

/** Refuses parameters of slots that do not go together. */
export function checkedSlots(refresh: Period, perPeriod: number): void {
  checkedPeriod("refresh", refresh);
  if (!Number.isInteger(perPeriod) || perPeriod < 1 || perPeriod > (refresh === "lifetime" ? 1 : 1000)) {
    throw invalidParameter("perPeriod must be a whole number from 1 to 1000; a lifetime has no parts.");
  }
}
