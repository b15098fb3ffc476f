/** Multi-selection at the device: the draw of a signal, and the pick from a reply. Proof: docs/proofs/multi-selection.md. */
import type { Catalogue } from "./catalogue.js";
import { discreteLaplace } from "./discrete_laplace.js";
import { invalidMessage } from "./errors.js";
import { fraction, type Fraction } from "./fraction.js";
import { nearestEven } from "./half.js";
import { linearEstimates, mapOf } from "./local_models.js";
import type { Noise } from "./noise.js";
import { ranked } from "./order.js";
import type { Reply } from "./reply.js";
import { GRID_BITS, MOST_STEPS, Signal } from "./signal.js";

/** The signal of features from 0 to 1: each on the grid, plus noise of scale eta, exactly. What is beyond 2^30 steps is cut to it. */
export function drawSignal(features: Float64Array, eta: Fraction, noise: Noise): Signal {
  const scale = fraction(eta.numerator << BigInt(GRID_BITS), eta.denominator);
  const most = BigInt(MOST_STEPS);
  const steps = Array.from(features, (feature) => {
    const noisy = BigInt(nearestEven(feature * 2 ** GRID_BITS)) + discreteLaplace(scale, noise); // 2^20 times a float is exact
    return Number(noisy > most ? most : noisy < -most ? -most : noisy);
  });
  return new Signal(steps, GRID_BITS, eta, noise.caveat !== null);
}

/** The places of a slate's items in the catalogue; refuses what this device does not know. */
export function placesOf(reply: Reply, catalogue: Catalogue): number[] {
  return reply.items.map((number) => {
    const place = catalogue.placeOfNumber(number);
    if (place === undefined) throw invalidMessage("the slate has an item that is not among this device's: load the server's items.");
    return place;
  });
}

/** How the slate's items are valued at true features. Whatever can be refused is refused here, before any feature is seen. */
export function estimator(reply: Reply, dimension: number): (features: Float64Array) => number[] {
  if (reply.dimension !== dimension) {
    throw invalidMessage(`the reply's local model is for ${reply.dimension} features; this device has ${dimension}.`);
  }
  if (reply.kind === "network") throw invalidMessage("the reply leaves the scoring to the device, which has no such model.");
  if (reply.kind === "none") return () => reply.items.map((_, place) => -place);
  const rows = reply.rows();
  const matrix = reply.kind === "principal-components" ? mapOf(rows, reply.items.length) : rows;
  if (!matrix.every((row) => (row as number[]).every(Number.isFinite))) {
    throw invalidMessage("the reply's principal components give no finite estimates.");
  }
  return (features) => linearEstimates(matrix, features);
}

/** The numbers of the `t` best items of a slate at these features, best first. Nothing leaves the device. */
export function pick(reply: Reply, features: Float64Array, t = 1): { picked: bigint[]; estimates: number[] } {
  const estimates = estimator(reply, features.length)(features);
  return {
    picked: ranked(estimates)
      .slice(0, t)
      .map((place) => reply.items[place] as bigint),
    estimates,
  };
}
