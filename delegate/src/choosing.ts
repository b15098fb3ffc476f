/**
 * Choosing from an offer, in the one order that is both private and exact: a repeated token gets the items that were written for it;
 * the token is claimed, by one call only; on public data it is decided which policy applies, and that is charged; only then what is
 * private is looked at; the draw; the writing; the showing. What is refused is refused on public data.
 */
import { costFrom } from "./budgets.js";
import type { Stores } from "./database.js";
import { choiceOf, type Choice, type Displays } from "./displays.js";
import { TacitError } from "./errors.js";
import type { Ledger } from "./ledger.js";
import type { Limits } from "./limits.js";
import type { Noise } from "./noise.js";
import type { Offer } from "./offer.js";
import { moment } from "./periods.js";
import { costOf, withoutCost } from "./policy.js";
import { prepared, select, supported } from "./private_selection.js";
import { privateScores } from "./scoring.js";

const MOST_AHEAD = 31 * 24 * 3600; // seconds: a display outlives its offer by a day, so a server must not say when that is
const LEAST_EPSILON = 1e-3; // what costs less, and not nothing, is answered publicly: charges are kept for good, none is to be pumped

/** What a choice needs beside the offer. */
export interface Choosing {
  readonly ledger: Ledger;
  readonly subject: string; // of private selection for this server
  readonly displays: Displays;
  readonly limits: Required<Limits>;
  readonly noise: Noise;
  /** Whether she consents; wipes a profile that she has revoked since it was begun. */
  readonly consented: (stores: Stores) => Promise<boolean>;
  /** How much she would like items: reads what is private. null where the device has nothing private to choose by. */
  readonly quality: ((items: readonly string[]) => readonly (number | null)[]) | null;
}

/**
 * What to show. null, no fill, for an offer that expired or expires too late, that is of a batch (this device has no blind tokens), or
 * whose policy cannot be followed; and for a token that another call has claimed, and not written anything for.
 */
export async function choose(offer: Offer, by: Choosing): Promise<Choice | null> {
  const { displays, ledger, noise } = by;
  const stored = await displays.find(offer.token);
  if (stored !== null) return choiceOf(stored); // nothing private is touched: time and outcome of a repetition do not depend on it
  const ahead = offer.expires - moment(ledger.clock) / 1000;
  if (!(ahead > 0 && ahead <= MOST_AHEAD) || offer.batch !== null) return null;
  const publicScores = offer.candidates.map((one) => one.public_score);
  const follows = supported(offer.policy);
  try {
    if (follows) prepared(offer.policy, publicScores); // all that the draw will need, from public numbers
  } catch {
    return null;
  }
  if (!(await displays.claim(offer.token, offer.expires))) {
    const written = await displays.find(offer.token); // meanwhile the other call may have written what it drew
    return written === null ? null : choiceOf(written);
  }
  const consented = await ledger.database.transact("readonly", by.consented);
  const cost = costOf(offer.policy);
  let [applied, scores] = [withoutCost(offer.policy), null as number[] | null];
  if (consented && follows && cost === 0) applied = offer.policy;
  else if (consented && follows && by.quality !== null && cost >= LEAST_EPSILON && cost <= by.limits.epsilon) {
    const receipt = await ledger.charge(by.subject, `choice ${offer.token}`, costFrom(cost, noise), by.consented).catch(refused);
    if (receipt?.fresh) {
      const quality = by.quality;
      applied = offer.policy;
      scores = privateScores(offer.candidates, () => quality(offer.candidates.map((one) => one.item)));
    } else if (receipt !== null) return null; // it has outlived its display: another draw for the same charge would be another answer
  }
  const items = select(applied, scores, publicScores, noise).map((place) => offer.candidates[place]!.item);
  const { token, expires } = offer;
  return displays.choose({ token, items, expires, policy: applied, consented, epsilon: costOf(applied) });
}

/** null where the ledger refuses a charge, which follows from how much was offered; every other problem is one. */
function refused(problem: unknown): null {
  if (problem instanceof TacitError && (problem.code === "budget-exhausted" || problem.code === "conflict")) return null;
  throw problem;
}
