// Arithmetic that must be exact: fractions, exponentials, amounts, digests, readings. Numbers of Python's device stand beside.
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkedBudget, shown, unitsUp } from "../src/budgets.js";
import { rateOf } from "../src/calibration.js";
import { exponentialCoin } from "../src/coins.js";
import { TacitError } from "../src/errors.js";
import { exactEta } from "../src/eta.js";
import { expBounds, weightOf } from "../src/exp.js";
import { versionOf } from "../src/features.js";
import { down, fraction, ofDecimal, ofFloat, up, type Fraction } from "../src/fraction.js";
import { fromHalf } from "../src/half.js";
import { toHalf } from "./forms.js";
import { GivenNoise } from "./given_noise.js";
import { mapOf, linearEstimates } from "../src/local_models.js";
import { drawSignal } from "../src/multi_selection.js";
import { systemNoise } from "../src/noise.js";
import { readingsOf } from "../src/readings.js";

const SPACE = { names: ["a", "b", "c", "d"], likedFrom: 4, genres: [[0, 1], [0], [2], [1, 2, 3], []] };

const atMost = (first: Fraction, second: Fraction): boolean => first.numerator * second.denominator <= second.numerator * first.denominator;

test("the digest of a feature space is the one that Python's device puts into its memo keys", async () => {
  expect(await versionOf(SPACE)).toBe("a5633f623ebe16c5f8d8553c54ecae67");
  expect(await versionOf({ ...SPACE, likedFrom: 3.5 })).toBe("c6cad563e10a5ddd50a520a624b7146a");
});

test.each([
  ["0.1", [10.0, 15.000076293958955, 12.000076293956226, 27.000076293969872, 40.00007629394531], 10.000076293954407, 10_000_000_000],
  ["0.3", [3.3333333333333335, 5.000025431319652, 4.000025431318742, 9.000025431323293, 13.33335876464844], 3.3333587646514697, 3_333_333_334],
  ["1/7", [7.0, 10.500053405771268, 8.40005340576936, 18.900053405778912, 28.00005340576172], 7.000053405768085, 7_000_000_000],
  ["2", [0.5, 0.7500038146979477, 0.6000038146978113, 1.3500038146984936, 2.0000038146972656], 0.5000038146977204, 500_000_000],
] as const)("readings and the price of a signal with eta = %s are those of Python's device", (eta, all, added, price) => {
  const readings = readingsOf(
    exactEta(eta),
    SPACE,
    new Map([
      [0, 5],
      [2, 2],
      [3, 4],
    ]),
    true,
  );
  expect(Object.values(readings)).toEqual(all);
  const empty = readingsOf(exactEta(eta), SPACE, new Map(), true);
  expect([empty.oneRatingAdded, empty.oneRatingRemoved, empty.oneRatingMoved]).toEqual([added, null, null]);
  expect(unitsUp(readings.perUnit)).toBe(price);
  expect(readingsOf(exactEta(eta), SPACE, new Map(), false).anywhere).toBe(Infinity);
  expect(() => JSON.stringify(readings)).toThrow(TacitError);
});

test.each([
  [1e-9, "4294967300"],
  [0.001, "4299264411"],
  [0.1, "4746672949"],
  [2.718281828, "65087060692"],
  [10, "94602950235157"],
  [39.9999, "1010870930877619944263275407"],
  [40, "1010972023025234199425327336"],
])("the weight at epsilon %d is Python's", (epsilon, weight) => {
  expect(String(weightOf(epsilon))).toBe(weight);
});

test.each([
  [2, 0.5, 0.28092980360202946, 0.49999999997089617],
  [3, 1, 0.5372600745397921, 0.7576863437786931],
  [15, 1, 0.5000004193945539, 0.537212504176349],
  [200, 5, 2.5000000181017903, 2.5303983556509313],
  [2, 40, 39.3068528182759, 39.99999999883585],
  [10_000, 0.001, 0.0005, 0.0005000499904491675],
])("rates among %d candidates at epsilon %d are Python's", (k, epsilon, pf, gumbel) => {
  const found = (["pf", "gumbel"] as const).map((rule) => rateOf(rule, k, epsilon));
  const [first, second] = found.map(({ numerator, denominator }) => (Number(numerator) / Number(denominator)) * 2 ** 20);
  expect(Math.abs(first! - pf)).toBeLessThan(1e-9 * Math.max(1, epsilon));
  expect(Math.abs(second! - gumbel)).toBeLessThan(1e-9 * Math.max(1, epsilon));
});

test("enclosures of the exponential hold, and are narrow", () => {
  fc.assert(
    fc.property(fc.bigInt(-4000n, 4000n), fc.bigInt(1n, 400n), fc.integer({ min: 8, max: 300 }), (above, under, bits) => {
      const exponent = fraction(above, under);
      const [low, high] = expBounds(exponent, bits);
      const [finerLow, finerHigh] = expBounds(exponent, bits + 80);
      expect(low << 80n <= finerLow && finerHigh <= high << 80n).toBe(true); // the finer one lies within
      if (above <= 0n) expect(high - low <= 2n).toBe(true);
      const near = Math.exp(Number(above) / Number(under)) * 2 ** 8;
      const [first, last] = expBounds(exponent, 8);
      if (near < 2 ** 50) expect(Number(first) <= near * (1 + 1e-12) && near * (1 - 1e-12) <= Number(last)).toBe(true);
    }),
  );
});

test("floats are rounded up and down to the nearest that is not on the wrong side", () => {
  fc.assert(
    fc.property(fc.bigInt(1n, 1n << 90n), fc.bigInt(1n, 1n << 90n), (above, under) => {
      const exact = fraction(above, under);
      const [low, high] = [down(exact), up(exact)];
      expect(atMost(ofFloat(low), exact) && atMost(exact, ofFloat(high))).toBe(true);
      expect(high === low || high - low <= low * 2 ** -52).toBe(true);
    }),
  );
  expect(up(ofFloat(0.1))).toBe(0.1);
  expect(up(fraction(1n, 10n))).toBe(0.1);
});

test("decimals are what a person wrote", () => {
  expect(ofDecimal("1e-3")).toEqual(fraction(1n, 1000n));
  expect(ofDecimal("1e+21")).toEqual(fraction(10n ** 21n, 1n));
  for (const odd of ["", ".", "1/2", "-1", "0x1", "1e9999", "NaN", "Infinity", "1 2"]) expect(ofDecimal(odd)).toBeNull();
  for (const odd of [
    "",
    "0",
    "0.0009",
    "10.1",
    "1/0",
    "-1",
    "nonsense",
    "0.1234567891",
    "4294967297/4294967296",
    NaN,
    Infinity,
    {} as number,
  ]) {
    expect(() => exactEta(odd)).toThrow(TacitError);
  }
  expect(exactEta("1/3")).toEqual(fraction(1n, 3n));
});

test("amounts are whole nano-epsilon, charges rounded up", () => {
  expect([0.1, 3.3333333333333335, 1e-9, 1e-12, 123456.789].map(unitsUp)).toEqual([1e8, 3333333334, 1, 1, 123456789000000]);
  expect([0, 1, 100_000_000, 10_000_000_000, 3_333_333_334].map(shown)).toEqual(["0", "0.000000001", "0.1", "10", "3.333333334"]);
  for (const odd of [0, -1, NaN, Infinity, 1e-10, 1e7, 0.1234567891]) {
    expect(() => checkedBudget({ epsilon: odd, per: "day" })).toThrow(TacitError);
  }
  expect(() => checkedBudget({ epsilon: 1, per: "week" as "day" })).toThrow(TacitError);
});

test("half precision is read and written as IEEE 754 says", () => {
  for (let code = 0; code < 1 << 16; code += 1) {
    const value = fromHalf(code);
    if (!Number.isNaN(value)) expect(toHalf(value)).toBe(code);
  }
  expect([65519, 65520, 2 ** -25, 1.00048828125, 1.00146484375].map(toHalf)).toEqual([0x7bff, 0x7c00, 0, 0x3c00, 0x3c02]);
});

test("principal components amount to the least-squares estimate, also where directions are missing", () => {
  const number = fc.double({ min: -2, max: 2, noNaN: true }).map((one) => Math.fround(one));
  fc.assert(
    fc.property(fc.array(number, { minLength: 15, maxLength: 15 }), fc.array(number, { minLength: 3, maxLength: 3 }), (numbers, at) => {
      // 1 + 2 features and 2 utilities; the plane is spanned by two directions, the third is zeros
      const basis = Array.from({ length: 5 }, (_, row) => [numbers[3 * row]!, numbers[3 * row + 1]!, 0]);
      const [p, q] = [at[0]!, at[1]!];
      const [a, b] = [0, 1].map((column) => basis.slice(0, 3).map((row) => row[column]!));
      const dot = (x: number[], y: number[]): number => x.reduce((sum, one, place) => sum + one * y[place]!, 0);
      const [aa, bb, ab] = [dot(a!, a!), dot(b!, b!), dot(a!, b!)];
      fc.pre(aa * bb - ab * ab > 1e-2);
      const known = [1, p, q];
      const determinant = aa * bb - ab * ab;
      const first = (bb * dot(a!, known) - ab * dot(b!, known)) / determinant;
      const second = (aa * dot(b!, known) - ab * dot(a!, known)) / determinant;
      const expected = basis.slice(3).map((row) => row[0]! * first + row[1]! * second);
      linearEstimates(mapOf(basis, 2), [p, q]).forEach((estimate, place) => expect(estimate).toBeCloseTo(expected[place]!, 6));
    }),
  );
});

test("a signal lies around the features, cut to 2^30 steps", () => {
  const features = Float64Array.of(0, 1, 0.25, 1 / 3);
  const { values, steps } = drawSignal(features, exactEta("0.001"), systemNoise);
  features.forEach((feature, place) => expect(Math.abs(values[place]! - feature)).toBeLessThan(0.06)); // 60 scales: never
  expect(new Set(steps).size).toBe(4);
});

test("a coin whose first word leaves it open draws a second one", () => {
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
