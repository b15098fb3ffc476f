/**
 * Private selection at the device: which policies it can follow, and the draw. A policy and public scores decide all but the draw;
 * private scores come last. Proof: docs/proofs/private-selection.md.
 */
import { scaled, STEPS } from "./boxes.js";
import { rateOf } from "./calibration.js";
import { exponentialChoice, exponentialCoin } from "./coins.js";
import { invalidParameter, TacitError } from "./errors.js";
import { WEIGHT_BITS, weightOf } from "./exp.js";
import { down, fraction, ofFloat, type Fraction } from "./fraction.js";
import { leadingBits, type Noise } from "./noise.js";
import { ranked } from "./order.js";
import { costOf, type Policy } from "./policy.js";
import { below, placeBelow } from "./uniform.js";

const MOST_COINS = 200; // candidates times slots, each with an exponential
const MOST_RANKED = 20_000; // each put in order
const SHIFT = BigInt(WEIGHT_BITS);
const WHOLE = 1n << (2n * SHIFT); // the probabilities of an envelope are whole numbers of 2^-64

/** Draws the place of one candidate, given private scores of all of them. */
type Draw = (scores: readonly number[], noise: Noise) => number;

/**
 * Whether this device can follow the policy: it has no sampler for Laplace noise, does not calibrate clipped scores, and is never
 * greedy, which promises nothing. Nor does it follow one that takes long: a server could then time what is private.
 */
export const supported = ({ rule, bounding, m, slots }: Policy): boolean =>
  rule !== "laplace" && rule !== "greedy" && bounding !== "clipped" && m * slots <= (bounding === "none" ? MOST_RANKED : MOST_COINS);

/**
 * The places of the items to show, one for each slot. Without a cost `scores` are not looked at, and may be null. Refused, on public
 * data, where the policy is not supported.
 */
export function select(policy: Policy, scores: readonly number[] | null, publicScores: readonly number[], noise: Noise): number[] {
  const draw = prepared(policy, publicScores);
  if (draw !== null && scores?.length !== policy.m) {
    throw new TacitError("invalid-input", "expected one private score for each candidate.");
  }
  return draw === null ? selectPublicly(policy, noise) : draw(scores as readonly number[], noise);
}

/** All that a draw needs, made from public numbers; null where private scores have no say. What cannot be done fails here. */
export function prepared(policy: Policy, publicScores: readonly number[]): ((scores: readonly number[], noise: Noise) => number[]) | null {
  if (publicScores.length !== policy.m || !publicScores.every(Number.isFinite) || !(supported(policy) || policy.m === 1)) {
    throw invalidParameter(`this device does not follow ${policy.rule} with these public scores.`);
  }
  if (costOf(policy) === 0) return null;
  // slots are filled one after the other; earlier picks are public by then
  const each = shareOf(policy);
  const draws = Array.from({ length: policy.slots }, (_, pick) => oneOf(policy, each, policy.m - pick));
  return (scores, noise) => {
    const left = scores.map((_, place) => place);
    return draws.map(
      (draw) =>
        left.splice(
          draw(
            left.map((place) => scores[place]!),
            noise,
          ),
          1,
        )[0]!,
    );
  };
}

/** The epsilon of one slot, rounded down: that of all of them together is at most the policy's. */
export function shareOf({ epsilon, slots }: Policy): number {
  const { numerator, denominator } = ofFloat(epsilon);
  return down(fraction(numerator, denominator * BigInt(slots)));
}

/** The publicly best; or, for the server's own exploration and for an rr whose candidates are all the best, any of them. */
function selectPublicly(policy: Policy, noise: Noise): number[] {
  const left = Array.from({ length: policy.m }, (_, place) => place);
  const uniform = policy.rule === "uniform" || (policy.rule === "rr" && policy.m > 1);
  return Array.from({ length: policy.slots }, () => left.splice(uniform ? placeBelow(left.length, noise) : 0, 1)[0] as number);
}

/** The draw of one of `count` candidates at this epsilon. */
function oneOf({ rule, d, floors }: Policy, epsilon: number, count: number): Draw {
  if (count === 1) return () => 0;
  if (rule === "rr") return topResponse(count, d, epsilon);
  return rule === "envelope" ? envelope(floors ?? [], epsilon) : rule === "pf" ? permuteAndFlip(count, epsilon) : gumbel(count, epsilon);
}

/** Each of the d best weighs 2^32 e^epsilon, rounded down, every other candidate 2^32 (docs/proofs/top-response.md). */
function topResponse(count: number, d: number, epsilon: number): Draw {
  const weight = weightOf(epsilon);
  const best = BigInt(d) * weight;
  const total = best + (BigInt(count - d) << SHIFT);
  return (scores, noise) => {
    const order = ranked(scores);
    const draw = below(total, noise);
    const other = Number((draw - best) >> SHIFT); // below 0: one of the best
    if (d > 1) return order[other < 0 ? Number(draw / weight) : d + other]!;
    return other < 0 ? order[0]! : other + Number(other >= order[0]!); // the others in the server's order
  };
}

/** Every candidate keeps a public floor, and the privately best are raised to e^epsilon times theirs (docs/proofs/envelope.md). */
function envelope(floors: readonly number[], epsilon: number): Draw {
  const exact = floors.map(BigInt);
  const total = exact.reduce((sum, floor) => sum + floor, 0n);
  const weight = weightOf(epsilon);
  if (total << SHIFT > WHOLE || total * weight < WHOLE) {
    throw invalidParameter("floors must add up to at most 1, and e^epsilon times as much to at least 1.");
  }
  return (scores, noise) => {
    const weights = exact.map((floor) => floor << SHIFT);
    let spare = WHOLE - (total << SHIFT);
    for (const place of ranked(scores)) {
      const most = exact[place]! * (weight - (1n << SHIFT));
      const given = most < spare ? most : spare;
      weights[place]! += given;
      spare -= given;
    }
    let draw = leadingBits(noise, 2 * WEIGHT_BITS);
    return weights.findIndex((one) => (draw -= one) < 0n);
  };
}

/** All candidates toss a coin of e^(-rate * behind), one of the heads is taken, all alike (docs/proofs/permute-and-flip.md). */
function permuteAndFlip(count: number, epsilon: number): Draw {
  const rate = rateOf("pf", count, epsilon);
  return (scores, noise) => {
    const coins = exponentsOf(scores, rate).map((exponent) => exponentialCoin(exponent, noise)); // all are tossed
    const heads = coins.flatMap((head, place) => (head ? [place] : []));
    return heads[placeBelow(heads.length, noise)]!;
  };
}

/** The exponential mechanism, in one exact draw (docs/proofs/exponential.md). */
function gumbel(count: number, epsilon: number): Draw {
  const rate = rateOf("gumbel", count, epsilon);
  return (scores, noise) => exponentialChoice(exponentsOf(scores, rate), noise);
}

/** How far each candidate is behind the best one, times the rate. */
function exponentsOf(scores: readonly number[], rate: Fraction): Fraction[] {
  // the best has all the steps there are
  return scaled(scores).map((one) => ({ numerator: BigInt(STEPS - one) * rate.numerator, denominator: rate.denominator }));
}
