// Do the samplers draw from their laws? False alarms: one in a billion for each test, and nothing is retried.
import { describe, expect, test } from "vitest";
import { expBounds, fraction, ofFloat, times, type Fraction } from "../src/arithmetic.js";
import { below, discreteLaplace, exponentialCoin, indexBelow, rateOf, STEPS } from "../src/mechanisms.js";
import { policyFromJSON, type Policy } from "../src/messages/private_selection.js";
import { leadingBits, systemNoise, type Noise } from "../src/noise.js";
import { select, shareOf } from "../src/private_selection.js";
import { GivenNoise, SeededNoise, seeded } from "./given_noise.js";
import { laplacePmf, lawOf, pValue } from "./laws.js";

describe("discrete Laplace", () => {
  const DRAWS = 100_000;
  const ALARM = 1e-9;
  const CELLS = 24; // on each side

  type Sampler = (scale: Fraction, noise: Noise) => bigint;

  /** Counts draws in cells of a third of the scale, or of single numbers. */
  function counted(sampler: Sampler, scale: Fraction, noise: Noise): number[] {
    const counts = new Array<number>(2 * CELLS + 1).fill(0);
    for (let draw = 0; draw < DRAWS; draw += 1) counts[cellOf(Number(sampler(scale, noise)), widthFor(scale))]! += 1;
    return counts;
  }

  function lawOfCells(scale: Fraction, stretched = 1): number[] {
    const [width, s] = [widthFor(scale), (Number(scale.numerator) / Number(scale.denominator)) * stretched];
    const law = new Array<number>(2 * CELLS + 1).fill(0);
    const reach = Math.ceil(60 * s) + CELLS * width;
    if (reach < 1e5) for (let n = -reach; n <= reach; n += 1) law[cellOf(n, width)]! += laplacePmf(n, s);
    else {
      // P(n <= x) in closed form: the tail beyond x, on its own side, is e^-((x + 1)/s) / (1 + e^(-1/s))
      const cdf = (x: number): number =>
        x >= 0 ? 1 - Math.exp(-(x + 1) / s) / (1 + Math.exp(-1 / s)) : Math.exp(x / s) / (1 + Math.exp(-1 / s));
      const edge = (cell: number): number => Math.ceil((cell - CELLS - 0.5) * width) - 1;
      for (let cell = 0; cell <= 2 * CELLS; cell += 1) {
        law[cell] = (cell === 2 * CELLS ? 1 : cdf(edge(cell + 1))) - (cell === 0 ? 0 : cdf(edge(cell)));
      }
    }
    return law;
  }

  const widthFor = ({ numerator, denominator }: Fraction): number => Math.max(1, Math.floor(Number(numerator) / Number(denominator) / 3));
  const cellOf = (n: number, width: number): number => Math.min(2 * CELLS, Math.max(0, Math.floor(n / width + 0.5) + CELLS));

  /** A twin that does not draw "-0" again, so 0 is twice as likely. */
  const withoutRedraw: Sampler = ({ numerator, denominator }, noise) => {
    for (;;) {
      const remainder = below(numerator, noise);
      if (!twinCoin(remainder, numerator, noise)) continue;
      let rounds = 0n;
      while (twinCoin(1n, 1n, noise)) rounds += 1n;
      const magnitude = (remainder + numerator * rounds) / denominator;
      return leadingBits(noise, 1) === 1n ? -magnitude : magnitude;
    }
  };

  /** A twin without a tail beyond one scale. */
  const withoutTail: Sampler = ({ numerator, denominator }, noise) => {
    for (;;) {
      const remainder = below(numerator, noise);
      if (twinCoin(remainder, numerator, noise)) return (leadingBits(noise, 1) === 1n ? -remainder : remainder) / denominator;
    }
  };

  function twinCoin(above: bigint, under: bigint, noise: Noise): boolean {
    for (let round = 1n; ; round += 1n) if (below(under * round, noise) >= above) return round % 2n === 1n;
  }

  describe.each([
    ["2/5", fraction(2n, 5n)],
    ["3", fraction(3n, 1n)],
    ["40/3", fraction(40n, 3n)],
    ["eta 0.1 on the grid", fraction(1n << 20n, 10n)],
    ["eta 10 on the grid", fraction(10n << 20n, 1n)],
  ])("scale %s", (_, scale) => {
    const counts = counted(discreteLaplace, scale, new SeededNoise(seeded(11)));

    test("the sampler draws from its law", () => {
      expect(pValue(counts, lawOfCells(scale))).toBeGreaterThan(ALARM);
    });

    test("the test rejects a scale that is ten percent off", () => {
      expect(pValue(counts, lawOfCells(scale, 1.1))).toBeLessThan(ALARM);
      expect(pValue(counts, lawOfCells(scale, 1 / 1.1))).toBeLessThan(ALARM);
    });
  });

  test("the test catches twins that draw 0 twice as often, or have no tail", () => {
    const scale = fraction(3n, 1n);
    for (const twin of [withoutRedraw, withoutTail]) {
      expect(pValue(counted(twin, scale, new SeededNoise(seeded(12))), lawOfCells(scale))).toBeLessThan(ALARM);
    }
  });

  test("system noise gives the same law", () => {
    const scale = fraction(1n << 20n, 20n);
    expect(pValue(counted(discreteLaplace, scale, systemNoise), lawOfCells(scale))).toBeGreaterThan(ALARM);
  });
});

describe("selection", () => {
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

  const selecting = (rule: Policy, scores: readonly number[]) => (noise: Noise) =>
    select(
      rule,
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
  ])("%s", (_, rule, scores) => {
    const counts = counted(selecting(rule, scores), rule.m, new SeededNoise(seeded(21)));

    test("is drawn from its law", () => {
      expect(
        pValue(
          counts,
          lawOf(
            rule,
            scores.map((score) => (Number.isNaN(score) ? 0 : score)),
          ),
        ),
      ).toBeGreaterThan(ALARM);
    });

    test("the test rejects an epsilon that is a fifth larger or smaller", () => {
      const seen = scores.map((score) => (Number.isNaN(score) ? 0 : score));
      for (const factor of [1.2, 1 / 1.2]) {
        expect(pValue(counts, lawOf({ ...rule, epsilon: rule.epsilon * factor }, seen))).toBeLessThan(ALARM);
      }
    });
  });

  test("a broken twin is caught: a fair coin between the best and any candidate", () => {
    const [rule, scores] = [policy("rr", 4, 2), [0.1, 0.7, 0.6, 0.3]];
    const twin = (noise: Noise): number => (indexBelow(2, noise) === 0 ? 1 : indexBelow(4, noise));
    expect(pValue(counted(twin, 4, new SeededNoise(seeded(22))), lawOf(rule, scores))).toBeLessThan(ALARM);
  });

  test("a broken twin is caught: permute-and-flip that takes the first head instead of any", () => {
    const [rule, scores] = [policy("pf", 4, 3), [4, 3, 1, 0]];
    const law = lawOf(rule, scores);
    const twin = (noise: Noise): number => [...scores.keys()].find((place) => exponentialCoin(fraction(BigInt(place), 2n), noise))!;
    expect(pValue(counted(twin, 4, new SeededNoise(seeded(23))), law)).toBeLessThan(ALARM);
  });

  test("slots have no repeats, and the first is drawn like a single slot at its share of epsilon", () => {
    const [rule, scores] = [policy("pf", 4, 6, { slots: 2 }), [4, 3, 1, 0]];
    const first = counted(
      (noise) => {
        const picks = select(
          rule,
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
    expect(pValue(first, lawOf(policy("pf", 4, 6), scores))).toBeLessThan(ALARM); // the whole epsilon for each slot would be too much
  });

  test("an envelope is drawn from its law", () => {
    const rule = policy("envelope", 4, Math.log(10), { bounding: "none", floors: [429496729, 429496729, 214748364, 42949673] });
    const scores = [0.2, 0.9, 0.1, 0.8];
    const counts = counted(selecting(rule, scores), 4, new SeededNoise(seeded(25)));
    expect(pValue(counts, lawOf(rule, scores))).toBeGreaterThan(ALARM);
    expect(pValue(counts, lawOf(rule, [0.9, 0.8, 0.1, 0.2]))).toBeLessThan(ALARM);
  });

  test("the loss of pf and gumbel between opposite corners is at most epsilon and nearly epsilon", () => {
    for (const [rule, m, epsilon] of [
      ["pf", 2, 1],
      ["pf", 4, 5],
      ["pf", 8, 1],
      ["gumbel", 2, 1],
      ["gumbel", 5, 3],
      ["gumbel", 30, 1],
    ] as const) {
      const chosen = policy(rule, m, epsilon);
      const best = lawOf(chosen, [1, ...new Array<number>(m - 1).fill(0)])[0]!;
      const worst = lawOf(chosen, [0, ...new Array<number>(m - 1).fill(1)])[0]!;
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
    const unit = 1n << BITS;
    if (rule === "gumbel") return (grown * (unit + BigInt(k - 1) * grown)) / (grown + BigInt(k - 1) * unit);
    const flip = unit - (unit * unit) / grown; // 1 - e^-lambda
    let power = unit;
    for (let place = 0; place < k; place += 1) power = (power * flip) >> BITS;
    return (((grown * grown) >> BITS) * (unit - power)) >> BITS;
  }

  test("in wide arithmetic the calibrated loss is at most epsilon, and a rate larger by a billionth would exceed it", () => {
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

  test("the slots' shares add up to at most epsilon, and the next float would exceed it", () => {
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

  test("exponential coins have probability e^-x, for small and large exponents", () => {
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

  test.each([
    [2, 0.5, 0.28092980360202946, 0.49999999997089617],
    [3, 1, 0.5372600745397921, 0.7576863437786931],
    [15, 1, 0.5000004193945539, 0.537212504176349],
    [200, 5, 2.5000000181017903, 2.5303983556509313],
    [2, 40, 39.3068528182759, 39.99999999883585],
    [10_000, 0.001, 0.0005, 0.0005000499904491675],
  ])("rates among %d candidates at epsilon %d equal Python's", (k, epsilon, pf, gumbel) => {
    const rates = (["pf", "gumbel"] as const).map((rule) => rateOf(rule, k, epsilon));
    const [first, second] = rates.map(({ numerator, denominator }) => (Number(numerator) / Number(denominator)) * 2 ** 20);
    expect(Math.abs(first! - pf)).toBeLessThan(1e-9 * Math.max(1, epsilon));
    expect(Math.abs(second! - gumbel)).toBeLessThan(1e-9 * Math.max(1, epsilon));
  });

  test("a coin that one word does not decide draws a second word", () => {
    const exponent = fraction(1n, 3n);
    const [low, high] = expBounds(fraction(-1n, 3n), 64);
    expect(high - low).toBe(1n);
    const [finerLow] = expBounds(fraction(-1n, 3n), 128);
    const rest = finerLow - (low << 64n); // where e^-x lies within the last bit of the first word
    for (const [word, heads] of [
      [rest - 1n, true],
      [rest + 2n, false],
    ] as const) {
      const noise = new GivenNoise(low.toString(16).padStart(16, "0") + word.toString(16).padStart(16, "0"));
      expect(exponentialCoin(exponent, noise)).toBe(heads);
      expect(noise.left).toHaveLength(0);
    }
    const sure = new GivenNoise((low - 1n).toString(16).padStart(16, "0"));
    expect(exponentialCoin(exponent, sure)).toBe(true);
    expect(exponentialCoin(exponent, new GivenNoise(high.toString(16).padStart(16, "0")))).toBe(false);
  });
});
