/**
 * Discrete Laplace: P(n) = tanh(1/2s) e^(-|n|/s) on the whole numbers, drawn exactly in whole numbers alone.
 *
 * C. Canonne, G. Kamath and T. Steinke, The discrete Gaussian for differential privacy, 2020, Algorithms 1 and 2. The number of
 * draws depends on what is drawn, never on what it is added to.
 */
import type { Fraction } from "./fraction.js";
import { leadingBits, type Noise } from "./noise.js";
import { below } from "./uniform.js";

/** One draw of the law with the given scale, in steps of the grid. */
export function discreteLaplace(scale: Fraction, noise: Noise): bigint {
  const { numerator, denominator } = scale;
  for (;;) {
    // P(remainder) is proportional to e^(-remainder / numerator); with the rounds, P(x) is to e^(-x / numerator) on all x >= 0
    const remainder = below(numerator, noise);
    if (!coin(remainder, numerator, noise)) continue;
    let rounds = 0n;
    while (coin(1n, 1n, noise)) rounds += 1n;
    const magnitude = (remainder + numerator * rounds) / denominator;
    const negative = leadingBits(noise, 1) === 1n;
    if (!negative) return magnitude;
    if (magnitude > 0n) return -magnitude; // "-0" would make 0 twice as likely: it is drawn again
  }
}

/** Heads with probability e^-(above/under), from 0 to 1: the alternating series of the exponential, as coins (Algorithm 1). */
function coin(above: bigint, under: bigint, noise: Noise): boolean {
  for (let round = 1n; ; round += 1n) {
    if (below(under * round, noise) >= above) return round % 2n === 1n;
  }
}
