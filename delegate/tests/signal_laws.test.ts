// Is a signal what the proof says: every feature on the grid, plus noise of its own of scale eta? Given bytes give known steps; many
// draws have the stated law; coordinates are independent. Each of these catches twins that break it.
import { describe, expect, test } from "vitest";
import { discreteLaplace } from "../src/discrete_laplace.js";
import { exactEta } from "../src/eta.js";
import { fraction, type Fraction } from "../src/fraction.js";
import { nearestEven } from "../src/half.js";
import { drawSignal } from "../src/multi_selection.js";
import type { Noise } from "../src/noise.js";
import { GRID_BITS } from "../src/signal.js";
import { GivenNoise, SeededNoise } from "./given_noise.js";
import { pValue } from "./laws.js";
import { seeded } from "./seed.js";
import draws from "./signal_draws.json";

const ALARM = 1e-9; // false alarms: one in a billion for each test, and nothing is retried
const STEP = 2 ** GRID_BITS;

test.each(draws.cases)("given bytes: $name", ({ features, eta, noise, steps }) => {
  const given = new GivenNoise(noise);
  expect(Array.from(drawSignal(Float64Array.from(features), exactEta(eta), given).steps)).toEqual(steps);
  expect(given.left).toHaveLength(0);
});

type Draw = (features: Float64Array, eta: Fraction, noise: Noise) => ArrayLike<number>;

const right: Draw = (features, eta, noise) => drawSignal(features, eta, noise).steps;

/** A signal whose parts can be replaced. As it stands here it is the right one. */
const twin =
  ({
    scale = (eta: Fraction): Fraction => fraction(eta.numerator << BigInt(GRID_BITS), eta.denominator),
    onGrid = nearestEven,
    together = false, // one value of noise for all coordinates
  }): Draw =>
  (features, eta, noise) => {
    const first = together ? discreteLaplace(scale(eta), noise) : 0n;
    return Array.from(features, (one) => Number(BigInt(onGrid(one * STEP)) + (together ? first : discreteLaplace(scale(eta), noise))));
  };

const TWINS: Record<string, Draw> = {
  "without the numerator of eta": twin({ scale: (eta) => fraction(1n << BigInt(GRID_BITS), eta.denominator) }),
  "of half the scale": twin({ scale: (eta) => fraction(eta.numerator << BigInt(GRID_BITS - 1), eta.denominator) }),
};

const FEATURES = Float64Array.of(0, 1 / 3, 0.5, 1, 2 / 7, 0.25); // what was rounded, and what need not be
const SIGNALS = 20_000;
const CELLS = 12; // on each side, each of a third of the scale

/** The noise of many signals: what was added to the nearest steps, one row for each signal. */
function noiseOf(draw: Draw, eta: string, seed: number): number[][] {
  const noise = new SeededNoise(seeded(seed), null);
  const origin = Array.from(FEATURES, (one) => Math.round(one * STEP)); // none of them lies between two steps
  return Array.from({ length: SIGNALS }, () => Array.from(draw(FEATURES, exactEta(eta), noise), (step, place) => step - origin[place]!));
}

/** Of noise in units of eta: far above a step, discrete and continuous Laplace cannot be told apart by so many draws. */
function lawIsKept(rows: readonly number[][], eta: number): number {
  const counts = new Array<number>(2 * CELLS).fill(0);
  for (const one of rows.flat()) counts[Math.min(2 * CELLS - 1, Math.max(0, Math.floor((one + 0.5) / (STEP * eta) / (1 / 3)) + CELLS))]! += 1;
  const half = Array.from({ length: CELLS }, (_, cell) => 0.5 * (Math.exp(-cell / 3) - (cell === CELLS - 1 ? 0 : Math.exp(-(cell + 1) / 3))));
  return pValue(counts, [...half].reverse().concat(half));
}

/**
 * Signs, and sizes above and below their median, of neighbouring coordinates and of neighbouring signals: alike in half of the pairs.
 * Whether neighbours in a row are alike is a fair coin for each pair, independent of all others in the row.
 */
function independenceIsKept(rows: readonly number[][], eta: number): number {
  const median = Math.LN2 * STEP * eta; // of the size
  const across = rows.flatMap((row) => row.slice(1).map((one, place) => [row[place]!, one] as const));
  const along = rows.slice(1).flatMap((row, before) => row.map((one, place) => [rows[before]![place]!, one] as const));
  const sides = [(one: number) => one < 0, (one: number) => Math.abs(one) < median];
  const found = [across, along].flatMap((pairs) =>
    sides.map((side) => {
      const alike = pairs.filter(([first, second]) => side(first) === side(second)).length;
      return pValue([alike, pairs.length - alike], [0.5, 0.5]);
    }),
  );
  return Math.min(...found);
}

describe.each([
  ["3/10", 0.3],
  ["2", 2],
] as const)("eta %s", (written, eta) => {
  const rows = noiseOf(right, written, 31);

  test("noise has the stated law, in every coordinate", () => {
    expect(lawIsKept(rows, eta)).toBeGreaterThan(ALARM);
    for (const place of FEATURES.keys()) expect(lawIsKept(rows.map((row) => [row[place]!]), eta)).toBeGreaterThan(ALARM);
  });

  test("that test rejects a scale that is ten percent off", () => {
    for (const factor of [1.1, 1 / 1.1]) expect(lawIsKept(rows, eta * factor)).toBeLessThan(ALARM);
  });

  test("coordinates and signals have noise of their own", () => {
    expect(independenceIsKept(rows, eta)).toBeGreaterThan(ALARM);
  });

  test.each(Object.entries(TWINS))("a twin is caught: %s", (_, broken) => {
    expect(lawIsKept(noiseOf(broken, written, 32), eta)).toBeLessThan(ALARM);
  });

  test("a twin is caught: one value of noise for all coordinates", () => {
    expect(independenceIsKept(noiseOf(twin({ together: true }), written, 33), eta)).toBeLessThan(ALARM);
  });
});

test("given bytes catch a twin that rounds otherwise, and the whole twin gives what the delegate gives", () => {
  const found = (draw: Draw): number[][] =>
    draws.cases
      .filter(({ name }) => !name.includes("beyond"))
      .map(({ features, eta, noise }) => Array.from(draw(Float64Array.from(features), exactEta(eta), new GivenNoise(noise))));
  const wanted = draws.cases.filter(({ name }) => !name.includes("beyond")).map(({ steps }) => steps);
  expect(found(twin({}))).toEqual(wanted);
  for (const onGrid of [Math.round, Math.floor, Math.ceil, (one: number) => Math.ceil(one) + 3]) expect(found(twin({ onGrid }))).not.toEqual(wanted);
});
