/**
 * Private selection on the device: choose what to show from an offer. Proof: docs/proofs/private-selection.md.
 *
 * The steps have a fixed order that is both private and exact. A repeated token returns the choice written for it. Otherwise one call claims
 * the token, decides on public data which policy applies, and charges its cost. Only then does it read private data, draw and write the
 * choice. Every refusal depends on public data only.
 */
import { down, fraction, ofFloat } from "./arithmetic.js";
import { invalidParameter, TacitError } from "./errors.js";
import type { Choice, Displays, Ledger, Stores } from "./ledger.js";
import { costFrom, moment, type Limits } from "./limits.js";
import { envelope, gumbel, indexBelow, permuteAndFlip, topResponse, type Draw } from "./mechanisms.js";
import { costOf, withoutCost, type Candidate, type Offer, type Policy } from "./messages/private_selection.js";
import type { Noise } from "./noise.js";

const MOST_AHEAD = 31 * 24 * 3600; // seconds: a display outlives its offer by a day, so a server must not choose an arbitrary expiry
const LEAST_EPSILON = 1e-3; // cheaper policies are answered publicly: charges are kept forever, and a server could add countless tiny ones

/** What `choose` needs besides the offer. */
export interface ChoiceContext {
  readonly ledger: Ledger;
  readonly subject: string; // of private selection for this server
  readonly displays: Displays;
  readonly limits: Required<Limits>;
  readonly noise: Noise;
  /** Whether the user consents. Also wipes a profile that was started before their last revocation. */
  readonly consented: (stores: Stores) => Promise<boolean>;
  /** Estimates from private data how much the user likes items. null if the device has no scorer. */
  readonly quality: ((items: readonly string[]) => readonly (number | null)[]) | null;
}

/**
 * Chooses what to show. Returns null (no fill) for an offer that has expired or expires too late, belongs to a batch (this device has no
 * blind tokens) or has floors that cannot be met, and for a token that another call has claimed without writing a choice.
 */
export async function choose(offer: Offer, context: ChoiceContext): Promise<Choice | null> {
  const { displays, ledger, noise } = context;
  const { token, expires, policy, candidates } = offer;
  const written = await displays.find(token);
  if (written !== null) return written; // reads nothing private, so time and result of a repetition do not depend on it
  const ahead = expires - moment(ledger.clock) / 1000;
  if (!(ahead > 0 && ahead <= MOST_AHEAD) || offer.batch !== null) return null;
  const publicScores = candidates.map((candidate) => candidate.public_score);
  const supported = supports(policy);
  try {
    if (supported) prepare(policy, publicScores); // fails now, on public data, or not at all
  } catch {
    return null;
  }
  if (!(await displays.claim(token, expires))) return displays.find(token); // the other call may have written its choice meanwhile
  const consented = await ledger.database.transact("readonly", context.consented);
  const cost = costOf(policy);
  let [applied, scores] = [withoutCost(policy), null as number[] | null];
  if (consented && supported && cost === 0) applied = policy;
  else if (consented && supported && context.quality !== null && cost >= LEAST_EPSILON && cost <= context.limits.epsilon) {
    const charge = ledger.charge(context.subject, `choice ${token}`, costFrom(cost, noise), context.consented);
    const receipt = await charge.catch(nullIfRefused);
    if (receipt?.fresh) {
      const quality = context.quality;
      applied = policy;
      scores = privateScores(candidates, () => quality(candidates.map(({ item }) => item)));
    } else if (receipt !== null) return null; // the charge outlived its display: a second draw for it would be a second answer
  }
  const items = select(applied, scores, publicScores, noise).map((index) => candidates[index]!.item);
  return displays.choose({ token, items, expires, policy: applied, consented, epsilon: costOf(applied) });
}

/** null if the ledger refused a charge, which depends only on earlier offers. Rethrows every other problem. */
function nullIfRefused(problem: unknown): null {
  if (problem instanceof TacitError && (problem.code === "budget-exhausted" || problem.code === "conflict")) return null;
  throw problem;
}

const MICRO = 1_000_000;
const LARGEST = 1e300; // larger private scores count as NaN, because the difference of two of them overflows

/** bid * quality of every candidate. If that is not a number, or if `quality` fails, the candidate's public score. Never throws. */
export function privateScores(candidates: readonly Candidate[], quality: () => readonly (number | null)[]): number[] {
  const publicScores = candidates.map((candidate) => candidate.public_score);
  try {
    const estimates = quality();
    if (!Array.isArray(estimates) || estimates.length !== candidates.length) return publicScores;
    return candidates.map(({ bid }, index) => {
      const estimate: unknown = estimates[index];
      const score = typeof estimate === "number" ? (bid / MICRO) * estimate : NaN;
      return Math.abs(score) <= LARGEST ? score : publicScores[index]!; // NaN fails the comparison
    });
  } catch {
    return publicScores; // an error would answer a question that a server may have crafted
  }
}

const MOST_COINS = 200; // candidates times slots, for rules with an exponential each
const MOST_RANKED = 20_000; // candidates times slots, for rules that only sort

/**
 * Whether this device follows the policy. It has no Laplace sampler, does not calibrate clipped scores, and is never greedy, because that
 * promises nothing. It also refuses policies that take long, because a server could then time private data.
 */
export const supports = ({ rule, bounding, m, slots }: Policy): boolean =>
  rule !== "laplace" && rule !== "greedy" && bounding !== "clipped" && m * slots <= (bounding === "none" ? MOST_RANKED : MOST_COINS);

/**
 * Draws the indices of the candidates to show, one for each slot. If the policy costs nothing, `scores` are not read and may be null. Throws,
 * on public data, if the policy is not supported.
 */
export function select(policy: Policy, scores: readonly number[] | null, publicScores: readonly number[], noise: Noise): number[] {
  const draw = prepare(policy, publicScores);
  if (draw === null) return selectPublicly(policy, noise);
  if (scores?.length !== policy.m) throw new TacitError("invalid-input", "expected one private score for each candidate.");
  return draw(scores, noise);
}

/** Prepares a draw from public numbers, or fails. Returns null if private scores have no influence. */
function prepare(policy: Policy, publicScores: readonly number[]): ((scores: readonly number[], noise: Noise) => number[]) | null {
  if (publicScores.length !== policy.m || !publicScores.every(Number.isFinite) || !(supports(policy) || policy.m === 1)) {
    throw invalidParameter(`this device does not support ${policy.rule} with these public scores.`);
  }
  if (costOf(policy) === 0) return null;
  // slots are filled one after the other, and earlier picks are public by then
  const share = shareOf(policy);
  const draws = Array.from({ length: policy.slots }, (_, slot) => drawOf(policy, share, policy.m - slot));
  return (scores, noise) => {
    const left = scores.map((_, index) => index);
    return draws.map((draw) => {
      const picked = draw(
        left.map((index) => scores[index]!),
        noise,
      );
      return left.splice(picked, 1)[0]!;
    });
  };
}

/** The epsilon of one slot, rounded down so that all slots together cost at most the policy's epsilon. */
export function shareOf({ epsilon, slots }: Policy): number {
  const { numerator, denominator } = ofFloat(epsilon);
  return down(fraction(numerator, denominator * BigInt(slots)));
}

/** The draw of one of `count` candidates at this epsilon. */
function drawOf({ rule, d, floors }: Policy, epsilon: number, count: number): Draw {
  if (count === 1) return () => 0;
  if (rule === "rr") return topResponse(count, d, epsilon);
  return rule === "envelope" ? envelope(floors ?? [], epsilon) : rule === "pf" ? permuteAndFlip(count, epsilon) : gumbel(count, epsilon);
}

/** Selects in the public order; or uniformly, for the server's own exploration and for an rr in which every candidate is among the best. */
function selectPublicly(policy: Policy, noise: Noise): number[] {
  const left = Array.from({ length: policy.m }, (_, index) => index);
  const uniform = policy.rule === "uniform" || (policy.rule === "rr" && policy.m > 1);
  return Array.from({ length: policy.slots }, () => left.splice(uniform ? indexBelow(left.length, noise) : 0, 1)[0] as number);
}
