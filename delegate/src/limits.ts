/** What the owner of a device allows the servers to ask of it, whatever their offers say. Every limit acts on public data only. */
import { checkedBudget, type Budget } from "./budgets.js";
import { invalidParameter } from "./errors.js";
import { MOST_EPSILON } from "./policy.js";

export interface Limits {
  /** The most that one offer may cost; 1 unless said. */
  readonly epsilon?: number;
  /** For each server by itself; 10 in any 24 hours unless said. A common one would show every server what she does elsewhere. */
  readonly budget?: Budget;
}

export function checkedLimits({ epsilon = 1, budget = { epsilon: 10, per: "day", sliding: true } }: Limits = {}): Required<Limits> {
  if (!(epsilon > 0 && epsilon <= MOST_EPSILON)) throw invalidParameter(`limits.epsilon lies above 0 and is at most ${MOST_EPSILON}.`);
  return { epsilon, budget: checkedBudget(budget) };
}
