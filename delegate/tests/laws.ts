/** Reference laws, in floats and from the formulas, that the samplers are tested against. */
import { weightOf } from "../src/arithmetic.js";
import { rateOf, scaleScores, STEPS } from "../src/mechanisms.js";
import type { Policy } from "../src/messages/private_selection.js";

/** The probability of every candidate in a single slot, given private scores. */
export function lawOf(policy: Policy, scores: readonly number[]): number[] {
  const order = scores.map((_, place) => place).sort((a, b) => scores[b]! - scores[a]! || a - b);
  if (policy.rule === "rr") {
    const weight = Number(weightOf(policy.epsilon)) / 2 ** 32;
    const total = policy.d * weight + policy.m - policy.d;
    return scores.map((_, place) => (order.indexOf(place) < policy.d ? weight : 1) / total);
  }
  if (policy.rule === "envelope") {
    const law = policy.floors!.map((floor) => floor / 2 ** 32);
    let spare = 1 - law.reduce((sum, probability) => sum + probability, 0);
    for (const place of order) {
      const given = Math.min(spare, law[place]! * Math.expm1(policy.epsilon));
      law[place]! += given;
      spare -= given;
    }
    return law;
  }
  const rate = rateOf(policy.rule as "pf" | "gumbel", policy.m, policy.epsilon);
  const flips = scaleScores(scores).map((step) => Math.exp(((step - STEPS) * Number(rate.numerator)) / Number(rate.denominator)));
  if (policy.rule === "gumbel") return flips.map((flip) => flip / flips.reduce((sum, other) => sum + other, 0));
  // a_i times the integral over t in [0, 1] of the product of (1 - a_j t), j != i: a polynomial, integrated term by term
  return flips.map((own, place) => {
    const others = flips.filter((_, other) => other !== place);
    const polynomial = others.reduce((product, a) => [...product, 0].map((coefficient, power) => coefficient - a * (product[power - 1] ?? 0)), [1]);
    return own * polynomial.reduce((sum, coefficient, power) => sum + coefficient / (power + 1), 0);
  });
}

/** P(n) of the discrete Laplace law. */
export const laplacePmf = (n: number, scale: number): number => Math.tanh(0.5 / scale) * Math.exp(-Math.abs(n) / scale);

/** The p-value of a chi-square test of counts against a law. Pass counts, never frequencies. */
export function pValue(counts: readonly number[], law: readonly number[]): number {
  const draws = counts.reduce((sum, count) => sum + count, 0);
  let [statistic, cells] = [0, 0];
  let [rest, expectedRest] = [0, 0]; // cells with few expected counts are pooled
  counts.forEach((count, place) => {
    const expected = draws * law[place]!;
    if (expected < 20) {
      rest += count;
      expectedRest += expected;
      return;
    }
    statistic += (count - expected) ** 2 / expected;
    cells += 1;
  });
  if (expectedRest >= 5) {
    statistic += (rest - expectedRest) ** 2 / expectedRest;
    cells += 1;
  } else if (rest > 60) return 0;
  return upperGamma((cells - 1) / 2, statistic / 2);
}

/** The regularised upper incomplete gamma function, by its series or its continued fraction. */
function upperGamma(a: number, x: number): number {
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let [term, sum] = [1 / a, 1 / a];
    for (let n = 1; n < 5000; n += 1) sum += term *= x / (a + n);
    return 1 - front * sum;
  }
  let [b, c] = [x + 1 - a, 1e300];
  let d = 1 / b;
  let h = d;
  for (let n = 1; n < 5000; n += 1) {
    const an = -n * (n - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
  }
  return front * h;
}

/** Stirling's series, after shifting to where its error is below 1e-12. */
function logGamma(a: number): number {
  if (a < 12) return logGamma(a + 1) - Math.log(a);
  return (a - 0.5) * Math.log(a) - a + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * a) - 1 / (360 * a ** 3) + 1 / (1260 * a ** 5);
}
