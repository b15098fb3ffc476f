// Noise beyond any that is ever seen: a signal's steps stay within what a message holds, on both sides.
import { expect, test } from "vitest";
import { exactEta } from "../src/eta.js";
import { drawSignal } from "../src/multi_selection.js";
import { MOST_STEPS, Signal } from "../src/signal.js";
import { GivenNoise } from "./given_noise.js";

const ETA = exactEta(10); // the largest: 2^30 steps are 102.4 of its scales
const UNDER = "000000"; // 0 of 10 * 2^20: three bytes hold it

/** The bytes of a draw of so many scales: a remainder of 0 that is kept, heads each time, then tails, then the sign. */
const farAway = (scales: number, negative: boolean): string =>
  UNDER + UNDER + "0040".repeat(scales) + "80" + (negative ? "80" : "00");

test.each([
  { scales: 102, negative: false, steps: 102 * 10 * 2 ** 20 + 2 ** 19 },
  { scales: 102, negative: true, steps: -102 * 10 * 2 ** 20 + 2 ** 19 },
  { scales: 103, negative: false, steps: MOST_STEPS },
  { scales: 103, negative: true, steps: -MOST_STEPS },
  { scales: 500, negative: false, steps: MOST_STEPS },
  { scales: 500, negative: true, steps: -MOST_STEPS },
])("noise of $scales scales, negative $negative", ({ scales, negative, steps }) => {
  const noise = new GivenNoise(farAway(scales, negative));
  const signal = drawSignal(Float64Array.of(0.5), ETA, noise);
  expect(Array.from(signal.steps)).toEqual([steps]);
  expect(noise.left).toHaveLength(0);
  expect(Signal.fromBytes(signal.toBytes())).toEqual(signal);
});
