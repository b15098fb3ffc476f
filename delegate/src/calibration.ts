/**
 * How large the rate of a selection from k scaled scores may be: its true loss, solved for epsilon. The loss between opposite corners
 * of the boxes is the largest there is (docs/proofs/private-selection.md). With lambda = rate * STEPS it is
 *
 *     gumbel  lambda + ln((1 + (k - 1) e^lambda) / (e^lambda + k - 1))
 *     pf      2 lambda + ln(1 - (1 - e^-lambda)^k)
 *
 * and rises with lambda. Floats are allowed here and only here: lambda is public, and MARGIN, many times their error, is taken off
 * epsilon before it is solved for. The law that is then drawn has exactly the rate that was found.
 */
import { STEPS } from "./boxes.js";
import { fraction, ofFloat, type Fraction } from "./fraction.js";

const { exp, expm1, log, log1p, max } = Math;
const MARGIN = 2 ** -35; // of epsilon, at least 2^-35 itself

/** The exponent of one grid step at which the rule among `k` candidates spends at most epsilon; never below epsilon / (2 STEPS). */
export function rateOf(rule: "gumbel" | "pf", k: number, epsilon: number): Fraction {
  const loss = rule === "gumbel" ? gumbelLoss : flipLoss;
  const target = epsilon - MARGIN * max(1, epsilon);
  let [low, high] = [epsilon / 2, epsilon]; // the loss lies between lambda and 2 lambda
  for (let round = 0; round < 60; round += 1) {
    const middle = (low + high) / 2;
    if (loss(middle, k) <= target)
      low = middle; // what is returned was found to be low enough
    else high = middle;
  }
  const { numerator, denominator } = ofFloat(low);
  return fraction(numerator, denominator * BigInt(STEPS));
}

function gumbelLoss(lambda: number, k: number): number {
  const others = log(k - 1);
  const gap = lambda - others;
  return 2 * lambda + log1p(exp(-lambda - others)) - (max(gap, 0) + log1p(exp(-Math.abs(gap))));
}

/** No difference of near numbers is formed: ln(1 - e^x) is taken in the one of two ways that keeps its digits. */
const flipLoss = (lambda: number, k: number): number => 2 * lambda + logOneMinusExp(k * logOneMinusExp(-lambda));

const logOneMinusExp = (x: number): number => (x > -0.7 ? log(-expm1(x)) : log1p(-exp(x)));
