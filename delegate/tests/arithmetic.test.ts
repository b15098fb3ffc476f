// Exact arithmetic: fractions, directed rounding, exponentials. The expected numbers come from Python's device.
import fc from "fast-check";
import { expect, test } from "vitest";
import { down, expBounds, fraction, ofDecimal, ofFloat, up, weightOf, type Fraction } from "../src/arithmetic.js";
import { TacitError } from "../src/errors.js";
import { exactEta } from "../src/messages/multi_selection.js";

const atMost = (first: Fraction, second: Fraction): boolean => first.numerator * second.denominator <= second.numerator * first.denominator;

test.each([
  [1e-9, "4294967300"],
  [0.001, "4299264411"],
  [0.1, "4746672949"],
  [2.718281828, "65087060692"],
  [10, "94602950235157"],
  [39.9999, "1010870930877619944263275407"],
  [40, "1010972023025234199425327336"],
])("the weight at epsilon %d equals Python's", (epsilon, weight) => {
  expect(String(weightOf(epsilon))).toBe(weight);
});

test("enclosures of the exponential are correct and narrow", () => {
  fc.assert(
    fc.property(fc.bigInt(-4000n, 4000n), fc.bigInt(1n, 400n), fc.integer({ min: 8, max: 300 }), (above, under, bits) => {
      const exponent = fraction(above, under);
      const [low, high] = expBounds(exponent, bits);
      const [finerLow, finerHigh] = expBounds(exponent, bits + 80);
      expect(low << 80n <= finerLow && finerHigh <= high << 80n).toBe(true); // the finer enclosure lies within
      if (above <= 0n) expect(high - low <= 2n).toBe(true);
      const near = Math.exp(Number(above) / Number(under)) * 2 ** 8;
      const [first, last] = expBounds(exponent, 8);
      if (near < 2 ** 50) expect(Number(first) <= near * (1 + 1e-12) && near * (1 - 1e-12) <= Number(last)).toBe(true);
    }),
  );
});

test("up and down round to the nearest float on the right side", () => {
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

test("decimals and fractions are read exactly as written", () => {
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
