/** A click, as a bit that chance may have flipped. */
import { WEIGHT_BITS, weightOf } from "./exp.js";
import type { Noise } from "./noise.js";
import { below } from "./uniform.js";

/** The bit, or with probability 1/(1 + e^epsilon) the other one (docs/proofs/randomised-response.md). Charge epsilon first. */
export function randomisedBit(clicked: boolean, epsilon: number, noise: Noise): number {
  const weight = weightOf(epsilon);
  return Number(clicked === below(weight + (1n << BigInt(WEIGHT_BITS)), noise) < weight);
}
