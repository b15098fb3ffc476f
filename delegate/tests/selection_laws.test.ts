// Do selections come as their laws say? False alarms: one in a billion for each test, and nothing is retried.
import { describe, expect, test } from "vitest";
import { STEPS } from "../src/boxes.js";
import { rateOf } from "../src/calibration.js";
import { exponentialCoin } from "../src/coins.js";
import { fraction, ofFloat, times, type Fraction } from "../src/fraction.js";
import { systemNoise, type Noise } from "../src/noise.js";
import { policyFromJSON, type Policy } from "../src/policy.js";
import { select, shareOf } from "../src/private_selection.js";
import { placeBelow } from "../src/uniform.js";
import { SeededNoise } from "./given_noise.js";
import { lawOf, pValue } from "./laws.js";
import { seeded } from "./seed.js";

const DRAWS = 30_000;
const ALARM = 1e-9;

const policy = (id: string, m: number, epsilon: number, more: object = {}): Policy =>
  policyFromJSON({
    version: 1,
    id,
    epsilon,
    m,
    d: 1,
    slots: 1,
    bounding: id === "rr" ? "none" : "scaled",
    width: null,
    floors: null,
    ...more,
  });

function counted(draw: (noise: Noise) => number, cells: number, noise: Noise): number[] {
  const counts = new Array<number>(cells).fill(0);
  for (let round = 0; round < DRAWS; round += 1) counts[draw(noise)]! += 1;
  return counts;
}

const choosing = (by: Policy, scores: readonly number[]) => (noise: Noise) =>
  select(
    by,
    scores,
    scores.map(() => 0),
    noise,
  )[0]!;

describe.each([
  ["rr", policy("rr", 4, 2), [0.1, 0.7, 0.7, 0.3]],
  ["rr with d = 2", policy("rr", 5, 2, { d: 2 }), [0.1, 0.7, 0.2, 0.3, 0.9]],
  ["pf", policy("pf", 4, 3), [4, 3, 1, 0]],
  ["pf, nearly equal scores", policy("pf", 3, 3), [0.2, 0.9, 0.90001]],
  ["gumbel", policy("gumbel", 4, 3), [4, 3, 1, 0]],
  ["gumbel among 12", policy("gumbel", 12, 4), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, NaN]],
])("%s", (_, by, scores) => {
  const counts = counted(choosing(by, scores), by.m, new SeededNoise(seeded(21)));

  test("is drawn from its law", () => {
    expect(
      pValue(
        counts,
        lawOf(
          by,
          scores.map((one) => (Number.isNaN(one) ? 0 : one)),
        ),
      ),
    ).toBeGreaterThan(ALARM);
  });

  test("that test rejects an epsilon that is a fifth larger or smaller", () => {
    const seen = scores.map((one) => (Number.isNaN(one) ? 0 : one));
    for (const factor of [1.2, 1 / 1.2]) {
      expect(pValue(counts, lawOf({ ...by, epsilon: by.epsilon * factor }, seen))).toBeLessThan(ALARM);
    }
  });
});

test("a broken twin is caught: a fair coin between the best one and any", () => {
  const [by, scores] = [policy("rr", 4, 2), [0.1, 0.7, 0.6, 0.3]];
  const twin = (noise: Noise): number => (placeBelow(2, noise) === 0 ? 1 : placeBelow(4, noise));
  expect(pValue(counted(twin, 4, new SeededNoise(seeded(22))), lawOf(by, scores))).toBeLessThan(ALARM);
});

test("a broken twin is caught: permute-and-flip that takes the first head instead of any", () => {
  const [by, scores] = [policy("pf", 4, 3), [4, 3, 1, 0]];
  const law = lawOf(by, scores);
  const twin = (noise: Noise): number => [...scores.keys()].find((place) => exponentialCoin(fraction(BigInt(place), 2n), noise))!;
  expect(pValue(counted(twin, 4, new SeededNoise(seeded(23))), law)).toBeLessThan(ALARM);
});

test("slots are filled without repeats, and the first of them as one slot at its share of epsilon", () => {
  const [by, scores] = [policy("pf", 4, 6, { slots: 2 }), [4, 3, 1, 0]];
  const first = counted(
    (noise) => {
      const picks = select(
        by,
        scores,
        scores.map(() => 0),
        noise,
      );
      expect(new Set(picks).size).toBe(2);
      return picks[0]!;
    },
    4,
    new SeededNoise(seeded(24)),
  );
  expect(pValue(first, lawOf(policy("pf", 4, 3), scores))).toBeGreaterThan(ALARM);
  expect(pValue(first, lawOf(policy("pf", 4, 6), scores))).toBeLessThan(ALARM); // the whole epsilon for each would be too much
});

test("an envelope is drawn from its law", () => {
  const by = policy("envelope", 4, Math.log(10), { bounding: "none", floors: [429496729, 429496729, 214748364, 42949673] });
  const scores = [0.2, 0.9, 0.1, 0.8];
  const counts = counted(choosing(by, scores), 4, new SeededNoise(seeded(25)));
  expect(pValue(counts, lawOf(by, scores))).toBeGreaterThan(ALARM);
  expect(pValue(counts, lawOf(by, [0.9, 0.8, 0.1, 0.2]))).toBeLessThan(ALARM);
});

test("the loss of pf and gumbel between opposite corners is at most epsilon, and nearly all of it", () => {
  for (const [rule, m, epsilon] of [
    ["pf", 2, 1],
    ["pf", 4, 5],
    ["pf", 8, 1],
    ["gumbel", 2, 1],
    ["gumbel", 5, 3],
    ["gumbel", 30, 1],
  ] as const) {
    const by = policy(rule, m, epsilon);
    const best = lawOf(by, [1, ...new Array<number>(m - 1).fill(0)])[0]!;
    const worst = lawOf(by, [0, ...new Array<number>(m - 1).fill(1)])[0]!;
    expect(Math.log(best / worst)).toBeLessThanOrEqual(epsilon + 1e-9);
    expect(Math.log(best / worst)).toBeGreaterThan(0.99 * epsilon);
  }
});

/** 2^BITS e^x, to within a few units: its Taylor series at x / 2^12, squared twelve times. */
const BITS = 320n;
function wideExp({ numerator, denominator }: Fraction): bigint {
  const small = (numerator << (BITS - 12n)) / denominator;
  let [term, sum] = [1n << BITS, 0n];
  for (let n = 1n; term !== 0n; n += 1n) {
    sum += term;
    term = ((term * small) >> BITS) / n;
  }
  for (let round = 0; round < 12; round += 1) sum = (sum * sum) >> BITS;
  return sum;
}

/** 2^BITS e^loss between opposite corners (docs/proofs/private-selection.md), for lambda = rate * STEPS. */
function wideLoss(rule: "gumbel" | "pf", k: number, rate: Fraction): bigint {
  const grown = wideExp(fraction(rate.numerator * BigInt(STEPS), rate.denominator)); // e^lambda
  const one = 1n << BITS;
  if (rule === "gumbel") return (grown * (one + BigInt(k - 1) * grown)) / (grown + BigInt(k - 1) * one);
  const flip = one - (one * one) / grown; // 1 - e^-lambda
  let power = one;
  for (let place = 0; place < k; place += 1) power = (power * flip) >> BITS;
  return (((grown * grown) >> BITS) * (one - power)) >> BITS;
}

test("in wide arithmetic the calibrated loss is at most epsilon, whatever floats did; a rate a billionth larger would be too much", () => {
  for (const rule of ["gumbel", "pf"] as const) {
    for (const k of [2, 3, 10, 200]) {
      for (const epsilon of [0.001, 0.1, 0.5, 1, 3, 10, 40]) {
        const rate = rateOf(rule, k, epsilon);
        const allowed = wideExp(ofFloat(epsilon));
        expect(wideLoss(rule, k, rate) <= allowed, `${rule} ${k} ${epsilon}`).toBe(true);
        if (epsilon < 0.1) continue; // there the margin is larger than a billionth
        expect(wideLoss(rule, k, times(rate, fraction(1_000_000_001n, 1_000_000_000n))) > allowed, `${rule} ${k} ${epsilon}`).toBe(true);
      }
    }
  }
});

test("the shares of all slots together are at most epsilon, and no larger float would do", () => {
  for (const epsilon of [0.001, 0.1, 0.3, 1, 1.7, 10, 40]) {
    for (const slots of [1, 2, 3, 7, 11, 100]) {
      const share = shareOf(policy("pf", 100, epsilon, { slots }));
      const sum = (each: Fraction): bigint => each.numerator * BigInt(slots) * ofFloat(epsilon).denominator;
      const most = (each: Fraction): bigint => ofFloat(epsilon).numerator * each.denominator;
      const [exact, next] = [ofFloat(share), ofFloat(share * (1 + 2 ** -52))];
      expect(sum(exact) <= most(exact), `${epsilon} ${slots}`).toBe(true);
      expect(sum(next) > most(next), `${epsilon} ${slots}`).toBe(true);
    }
  }
});

test("exponential coins fall heads as often as e^-x says, for small and large exponents", () => {
  for (const [above, under] of [
    [1n, 1000n],
    [1n, 3n],
    [7n, 2n],
  ] as const) {
    const heads = counted((noise) => Number(exponentialCoin(fraction(above, under), noise)), 2, systemNoise);
    const p = Math.exp(-Number(above) / Number(under));
    expect(pValue(heads, [1 - p, p])).toBeGreaterThan(ALARM);
    expect(pValue(heads, [1 - p ** 1.2, p ** 1.2])).toBeLessThan(p > 0.9 ? 1 : ALARM);
  }
});
