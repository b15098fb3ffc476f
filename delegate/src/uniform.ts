/** Uniform whole numbers by rejection: every value exactly equally likely. */
import { bits } from "./fraction.js";
import { leadingBits, type Noise } from "./noise.js";

/** One uniform whole number in [0, bound). */
export function below(bound: bigint, noise: Noise): bigint {
  const size = bits(bound - 1n);
  for (;;) {
    const value = size === 0 ? 0n : leadingBits(noise, size);
    if (value < bound) return value;
  }
}

/** The same for a bound that is a plain number. */
export const placeBelow = (bound: number, noise: Noise): number => Number(below(BigInt(bound), noise));
