/**
 * The randomised steps: selection from private scores, randomised response, discrete Laplace noise. Every draw is exact. A sampler uses
 * integers only and draws from precisely the law that its proof states; docs/proofs/exact-samplers.md explains the methods.
 */
import { bitLength, expBounds, fraction, ofFloat, WEIGHT_BITS, weightOf, type Fraction } from "./arithmetic.js";
import { invalidParameter } from "./errors.js";
import { leadingBits, type Noise } from "./noise.js";

/** Draws the index of one candidate, given the private scores of all candidates. */
export type Draw = (scores: readonly number[], noise: Noise) => number;

const SHIFT = BigInt(WEIGHT_BITS);
const WHOLE = 1n << (2n * SHIFT); // an envelope's probabilities are multiples of 2^-64

/** Weighs each of the d best 2^32 e^epsilon, rounded down, and every other candidate 2^32 (docs/proofs/top-response.md). */
export function topResponse(count: number, d: number, epsilon: number): Draw {
  const weight = weightOf(epsilon);
  const best = BigInt(d) * weight;
  const total = best + (BigInt(count - d) << SHIFT);
  return (scores, noise) => {
    const order = rank(scores);
    const draw = below(total, noise);
    const other = Number((draw - best) >> SHIFT); // negative if one of the best was drawn
    if (d > 1) return order[other < 0 ? Number(draw / weight) : d + other]!;
    return other < 0 ? order[0]! : other + Number(other >= order[0]!); // the other candidates keep the server's order
  };
}

/** Gives every candidate its public floor and raises the privately best to e^epsilon times theirs (docs/proofs/envelope.md). */
export function envelope(floors: readonly number[], epsilon: number): Draw {
  const exact = floors.map(BigInt);
  const total = exact.reduce((sum, floor) => sum + floor, 0n);
  const weight = weightOf(epsilon);
  if (total << SHIFT > WHOLE || total * weight < WHOLE) {
    throw invalidParameter("the sum of floors must be at most 1, and e^epsilon times the sum at least 1.");
  }
  return (scores, noise) => {
    const weights = exact.map((floor) => floor << SHIFT);
    let spare = WHOLE - (total << SHIFT);
    for (const candidate of rank(scores)) {
      const most = exact[candidate]! * (weight - (1n << SHIFT));
      const raise = most < spare ? most : spare;
      weights[candidate]! += raise;
      spare -= raise;
    }
    let draw = leadingBits(noise, 2 * WEIGHT_BITS);
    return weights.findIndex((own) => (draw -= own) < 0n);
  };
}

/** Tosses a coin of e^(-rate * gap) for every candidate and takes one of the heads uniformly (docs/proofs/permute-and-flip.md). */
export function permuteAndFlip(count: number, epsilon: number): Draw {
  const rate = rateOf("pf", count, epsilon);
  return (scores, noise) => {
    const coins = exponentsOf(scores, rate).map((exponent) => exponentialCoin(exponent, noise)); // tosses all of them, even after a head
    const heads = coins.flatMap((head, candidate) => (head ? [candidate] : []));
    return heads[indexBelow(heads.length, noise)]!;
  };
}

/** The exponential mechanism, in one exact draw (docs/proofs/exponential.md). */
export function gumbel(count: number, epsilon: number): Draw {
  const rate = rateOf("gumbel", count, epsilon);
  return (scores, noise) => exponentialChoice(exponentsOf(scores, rate), noise);
}

/** The rate times each candidate's gap to the best one. */
function exponentsOf(scores: readonly number[], rate: Fraction): Fraction[] {
  // the best score is always STEPS
  return scaleScores(scores).map((step) => ({ numerator: BigInt(STEPS - step) * rate.numerator, denominator: rate.denominator }));
}

/**
 * Randomised response for one click: returns the bit, flipped with probability 1/(1 + e^epsilon) (docs/proofs/randomised-response.md).
 * Charge epsilon first.
 */
export function randomisedBit(clicked: boolean, epsilon: number, noise: Noise): number {
  const weight = weightOf(epsilon);
  return Number(clicked === below(weight + (1n << SHIFT), noise) < weight);
}

/** Indices from the highest score to the lowest. Ties keep their order, and NaN ranks lowest. */
export function rank(scores: readonly number[]): number[] {
  const values = scores.map((score) => (score > -Number.MAX_VALUE ? score : -Number.MAX_VALUE));
  return values.map((_, index) => index).sort((a, b) => (values[a] === values[b] ? 0 : values[b]! > values[a]! ? 1 : -1));
}

export const STEPS = 2 ** 20;
const LARGEST = Number.MAX_VALUE;

/**
 * Scales the scores of one profile to (score - lowest) / (highest - lowest), in steps of a grid. Equal scores all become STEPS.
 *
 * The lowest and highest scores are private, but the result always lies in [0, 1] for every candidate. That range is the box, and its
 * full width is the sensitivity. Any number is accepted, including NaN, because a refusal would be visible.
 */
export function scaleScores(scores: readonly number[]): number[] {
  // halves, because the difference of two finite scores may overflow
  const halves = scores.map((score) => 0.5 * Math.min(Math.max(score, -LARGEST), LARGEST));
  const numbers = halves.filter((half) => !Number.isNaN(half));
  const low = Math.min(...numbers);
  const width = Math.max(...numbers) - low;
  if (!(width > 0)) return halves.map(() => STEPS); // also if every score is NaN
  return halves.map((half) => (Number.isNaN(half) ? 0 : Math.floor(((half - low) / width) * STEPS))); // NaN ranks lowest
}

const { exp, expm1, log, log1p, max } = Math;
const MARGIN = 2 ** -35; // relative to epsilon, and at least 2^-35

/**
 * Calibrates a selection from k scaled scores: the largest exponent of one grid step whose true loss is at most epsilon, and never below
 * epsilon / (2 STEPS). The loss is largest between opposite corners of the boxes (docs/proofs/private-selection.md). With
 * lambda = rate * STEPS it is
 *
 *     gumbel  lambda + ln((1 + (k - 1) e^lambda) / (e^lambda + k - 1))
 *     pf      2 lambda + ln(1 - (1 - e^-lambda)^k)
 *
 * and it rises with lambda. This is the only place where floats are allowed: lambda is public, and the solver first subtracts MARGIN,
 * many times the floats' error, from epsilon. The draw then uses exactly the rate returned here.
 */
export function rateOf(rule: "gumbel" | "pf", k: number, epsilon: number): Fraction {
  const loss = rule === "gumbel" ? gumbelLoss : flipLoss;
  const target = epsilon - MARGIN * max(1, epsilon);
  let [low, high] = [epsilon / 2, epsilon]; // the loss lies between lambda and 2 lambda
  for (let round = 0; round < 60; round += 1) {
    const middle = (low + high) / 2;
    if (loss(middle, k) <= target)
      low = middle; // only a rate whose loss was checked is returned
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

const flipLoss = (lambda: number, k: number): number => 2 * lambda + logOneMinusExp(k * logOneMinusExp(-lambda));

/** ln(1 - e^x), by whichever of two formulas does not subtract nearly equal numbers. */
const logOneMinusExp = (x: number): number => (x > -0.7 ? log(-expm1(x)) : log1p(-exp(x)));

/**
 * Draws from the discrete Laplace law P(n) = tanh(1/2s) e^(-|n|/s) with scale s, in integers only.
 *
 * C. Canonne, G. Kamath and T. Steinke, The discrete Gaussian for differential privacy, 2020, Algorithms 1 and 2. The number of
 * draws depends on the noise drawn, never on the value it is added to.
 */
export function discreteLaplace({ numerator, denominator }: Fraction, noise: Noise): bigint {
  for (;;) {
    // P(remainder) is proportional to e^(-remainder / numerator). With the rounds, P(x) is proportional to e^(-x / numerator), x >= 0.
    const remainder = below(numerator, noise);
    if (!seriesCoin(remainder, numerator, noise)) continue;
    let rounds = 0n;
    while (seriesCoin(1n, 1n, noise)) rounds += 1n;
    const magnitude = (remainder + numerator * rounds) / denominator;
    const negative = leadingBits(noise, 1) === 1n;
    if (!negative) return magnitude;
    if (magnitude > 0n) return -magnitude; // "-0" would make 0 twice as likely, so it is drawn again
  }
}

/** Heads with probability e^-(above/under), for a fraction from 0 to 1, by the alternating series of the exponential (Algorithm 1). */
function seriesCoin(above: bigint, under: bigint, noise: Noise): boolean {
  for (let round = 1n; ; round += 1n) {
    if (below(under * round, noise) >= above) return round % 2n === 1n;
  }
}

const WORD = 64;

/**
 * Heads with probability e^-exponent, for any exponent >= 0. Decides exactly whether U < e^-exponent by drawing the bits of a uniform U as
 * needed. One word of noise is enough except once in 2^62 times.
 */
export function exponentialCoin(exponent: Fraction, noise: Noise): boolean {
  const negated = { ...exponent, numerator: -exponent.numerator };
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    prefix = (prefix << BigInt(WORD)) | leadingBits(noise, WORD);
    const [low, high] = expBounds(negated, known);
    if (prefix < low) return true; // U < (prefix + 1) / 2^known <= p
    if (prefix >= high) return false;
  }
}

/** Draws item i with probability proportional to e^-exponents[i]. The smallest exponent is 0. */
export function exponentialChoice(exponents: readonly Fraction[], noise: Noise): number {
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    prefix = (prefix << BigInt(WORD)) | leadingBits(noise, WORD);
    const bounds = exponents.map((exponent) => expBounds({ ...exponent, numerator: -exponent.numerator }, known + WORD));
    const [least, most] = bounds.reduce(([a, b], [low, high]) => [a + low, b + high], [0n, 0n]);
    // U times the total lies in [prefix * least, (prefix + 1) * most) / 2^known
    const [start, end] = [prefix * least, (prefix + 1n) * most];
    let [lowSum, highSum] = [0n, 0n];
    for (const [item, [low, high]] of bounds.entries()) {
      const begins = highSum << BigInt(known); // this item's interval certainly contains [begins, ends)
      [lowSum, highSum] = [lowSum + low, highSum + high];
      const last = item === bounds.length - 1; // the last interval ends with the total, which U never reaches
      if (begins <= start && (end <= lowSum << BigInt(known) || last)) return item;
    }
  }
}

/** Draws a uniform integer in [0, bound) by rejection, so that every value is exactly equally likely. */
export function below(bound: bigint, noise: Noise): bigint {
  const size = bitLength(bound - 1n);
  for (;;) {
    const value = size === 0 ? 0n : leadingBits(noise, size);
    if (value < bound) return value;
  }
}

/** The same for a bound that is a plain number. */
export const indexBelow = (bound: number, noise: Noise): number => Number(below(BigInt(bound), noise));
