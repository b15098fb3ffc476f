/**
 * Scores of one profile, scaled to (score - lowest) / (highest - lowest), in whole steps of a grid; all ones where all are equal.
 *
 * Lowest and highest are private, yet whatever they are the result lies in [0, 1] for every candidate: that is the box, and its full
 * width is the sensitivity. No private number is refused, however odd: a refusal could be seen.
 */
export const STEPS = 2 ** 20;
const LARGEST = Number.MAX_VALUE;

export function scaled(scores: readonly number[]): number[] {
  // halves: the difference of two finite scores may overflow
  const halves = scores.map((one) => 0.5 * Math.min(Math.max(one, -LARGEST), LARGEST));
  const known = halves.filter((one) => !Number.isNaN(one));
  const low = Math.min(...known);
  const width = Math.max(...known) - low;
  if (!(width > 0)) return halves.map(() => STEPS); // also where none is a number
  return halves.map((one) => (Number.isNaN(one) ? 0 : Math.floor(((one - low) / width) * STEPS))); // what is no number is the lowest
}
