// Does the sampler draw from the stated law? False alarms: one in a billion for each test, and nothing is retried.
import { describe, expect, test } from "vitest";
import { discreteLaplace } from "../src/discrete_laplace.js";
import { fraction, type Fraction } from "../src/fraction.js";
import { leadingBits, systemNoise, type Noise } from "../src/noise.js";
import { below } from "../src/uniform.js";
import { SeededNoise } from "./given_noise.js";
import { laplacePmf, pValue } from "./laws.js";
import { seeded } from "./seed.js";

const DRAWS = 100_000;
const ALARM = 1e-9;
const CELLS = 24; // on each side

type Sampler = (scale: Fraction, noise: Noise) => bigint;

/** Counts in cells of a third of the scale, or of single numbers, and the law of these cells for a scale. */
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

/** The twin that forgets to draw "-0" again: 0 comes twice as often. */
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

/** The twin without its tail: what lies beyond one scale is cut off. */
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

  test("that test rejects a scale that is ten percent off", () => {
    expect(pValue(counts, lawOfCells(scale, 1.1))).toBeLessThan(ALARM);
    expect(pValue(counts, lawOfCells(scale, 1 / 1.1))).toBeLessThan(ALARM);
  });
});

test("that test catches twins that draw 0 twice as often, or no tail", () => {
  const scale = fraction(3n, 1n);
  for (const twin of [withoutRedraw, withoutTail]) {
    expect(pValue(counted(twin, scale, new SeededNoise(seeded(12))), lawOfCells(scale))).toBeLessThan(ALARM);
  }
});

test("the platform's own noise gives the same law", () => {
  const scale = fraction(1n << 20n, 20n);
  expect(pValue(counted(discreteLaplace, scale, systemNoise), lawOfCells(scale))).toBeGreaterThan(ALARM);
});
