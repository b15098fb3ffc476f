/** Asking: this slot's signal, drawn and charged the first time, after that the same bytes, whatever is rated meanwhile. */
import { costFrom, shown, spanOf, unitsUp, type Budget, type Cost } from "./budgets.js";
import type { Stores } from "./database.js";
import { invalidParameter, TacitError } from "./errors.js";
import type { Fraction } from "./fraction.js";
import type { Ledger } from "./ledger.js";
import { drawSignal } from "./multi_selection.js";
import type { Noise } from "./noise.js";
import { moment, type Period } from "./periods.js";
import { promised, Signal } from "./signal.js";
import { slotOf } from "./slots.js";
import { inTurn } from "./turns.js";

/**
 * A signal, and where it is from: drawn now; drawn earlier in this slot; drawn in an older slot, or telling nothing, because the budget
 * of the period is spent.
 */
export interface Asked {
  readonly signal: Signal;
  readonly from: "fresh" | "memo" | "older" | "nothing";
}

/** What asking needs beside eta. */
export interface Asking {
  readonly ledger: Ledger;
  readonly subject: string; // of signals
  readonly budget: Budget;
  readonly refresh: Period;
  readonly perPeriod: number;
  readonly noise: Noise;
  readonly version: string; // of the feature space
  readonly dimension: number;
  /** Reads what is private, as it is at this transaction; refuses features outside the domain. */
  readonly features: (stores: Stores) => Promise<Float64Array>;
}

export async function ask(eta: Fraction, by: Asking): Promise<Asked> {
  const { ledger, subject } = by;
  const cost = costFrom(promised(eta, by.dimension).epsilon, by.noise);
  if (cost.amount > unitsUp(by.budget.epsilon)) {
    const least = `${shown(cost.amount)} of ${by.budget.epsilon} in ${spanOf(by.budget)}`;
    throw invalidParameter(`a signal with this eta never fits into the budget (${least}): ask with a larger eta.`);
  }
  const kind = `${by.version} ${eta.numerator}/${eta.denominator}`;
  const id = `${slotOf(moment(ledger.clock), by.refresh, by.perPeriod)} ${kind}`;
  const memo = await ledger.stored(subject, id);
  if (memo !== null) return { signal: Signal.fromBytes(memo), from: "memo" }; // before the profile is touched
  try {
    // From charge to keeping by one tab at a time: of two that draw at once the quicker would be kept, and how long a draw takes
    // depends on what is drawn.
    return await inTurn(`tacit ${ledger.database.db.name} ${subject} ${id}`, () => draw(id, cost, eta, by));
  } catch (problem) {
    if (!(problem instanceof TacitError && problem.code === "budget-exhausted")) throw problem;
  }
  const older = await ledger.newest(subject, ` ${kind}`);
  return older === null
    ? { signal: Signal.nothing(by.dimension, eta), from: "nothing" }
    : { signal: Signal.fromBytes(older), from: "older" };
}

/** Charges, draws and keeps; or finds what another tab has kept meanwhile. */
async function draw(id: string, cost: Cost, eta: Fraction, { ledger, subject, features, noise }: Asking): Promise<Asked> {
  let row: Float64Array | null = null;
  // Features are refused, if at all, before anything is charged or drawn. Where nothing fits they are not looked at, unless this
  // slot was charged and not drawn because of a crash.
  const receipt = await ledger.charge(subject, id, cost, async (stores) => (row = await features(stores)));
  if (receipt.stored !== null) return { signal: Signal.fromBytes(receipt.stored), from: "memo" };
  const drawn = drawSignal(row ?? (await ledger.database.transact("readonly", features)), eta, noise).toBytes();
  const kept = await ledger.keep(subject, id, drawn); // without turns another tab may have been first
  return { signal: Signal.fromBytes(kept), from: kept === drawn ? "fresh" : "memo" };
}
