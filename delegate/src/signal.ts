/**
 * The signal of multi-selection: what a device released about its user, noisy features on a grid.
 *
 * On the wire, little-endian: version u16, flags u8, log2 of the grid's step i8, eta as two u32, dimension u16, k u8, t u8, then the
 * steps as i32: 16 + 4d bytes, whatever the features. In a device's memo the same bytes stand with k = t = 0.
 */
import { invalidMessage } from "./errors.js";
import { exactEta, inRange } from "./eta.js";
import { fraction, up, type Fraction } from "./fraction.js";

const NO_SIGNAL = "this is no signal or request, or one of another version: steps within 2^30 of 0, eta from 0.001 to 10 in lowest terms.";
export const VERSION = 0x5301; // "S" and 1
const HEADER = 16;
const SIMULATED = 1;
const EMPTY = 2;
export const MOST_GRID_BITS = 30;
export const MOST_STEPS = 2 ** 30;
export const MOST_DIMENSION = 2 ** 16 - 1;
export const GRID_BITS = 20; // steps of about a millionth: far below any noise that protects

/** A user's features plus noise of scale `eta`, in steps of 2^-`gridBits`; or, if `empty`, nothing about the user. */
export class Signal {
  readonly steps: Int32Array;

  constructor(
    steps: ArrayLike<number>,
    readonly gridBits: number,
    readonly eta: Fraction,
    readonly simulated = false,
    readonly empty = false,
  ) {
    const listed = Array.from(steps);
    const fitting =
      listed.length >= 1 &&
      listed.length <= MOST_DIMENSION &&
      listed.every((step) => Number.isInteger(step) && Math.abs(step) <= MOST_STEPS) &&
      Number.isInteger(gridBits) &&
      gridBits >= 0 &&
      gridBits <= MOST_GRID_BITS &&
      inRange(eta) &&
      (!empty || !(simulated || listed.some(Boolean))); // what tells nothing has 0 steps everywhere and no noise
    if (!fitting) throw invalidMessage(NO_SIGNAL);
    this.steps = Int32Array.from(listed);
  }

  /** Tells nothing about the user: for a device whose budget is spent. */
  static nothing(dimension: number, eta: Fraction | number | string, gridBits = GRID_BITS): Signal {
    return new Signal(new Int32Array(dimension), gridBits, typeof eta === "object" ? eta : exactEta(eta), false, true);
  }

  get dimension(): number {
    return this.steps.length;
  }

  /** The noisy features. They may lie outside the domain of features: that is normal. */
  get values(): Float64Array {
    return Float64Array.from(this.steps, (step) => step * 2 ** -this.gridBits);
  }

  /** What the sender was promised: epsilon per unit of (L1 distance + rounding); null where noise was simulated. */
  get guarantee(): { epsilon: number; rounding: number } | null {
    if (this.simulated) return null;
    if (this.empty) return { epsilon: 0, rounding: 0 };
    return promised(this.eta, this.dimension, this.gridBits);
  }

  /** The message as a device keeps it. */
  toBytes(): Uint8Array {
    return packed(this, 0, 0);
  }

  static fromBytes(content: Uint8Array): Signal {
    const { signal, k, t } = unpacked(content);
    if (k !== 0 || t !== 0) throw invalidMessage(NO_SIGNAL);
    return signal;
  }
}

/** 1/eta and the most that rounding to the grid adds to a distance, a step for each coordinate; both rounded up. */
export function promised(eta: Fraction, dimension: number, gridBits = GRID_BITS): { epsilon: number; rounding: number } {
  return {
    epsilon: up({ numerator: eta.denominator, denominator: eta.numerator }),
    rounding: up(fraction(BigInt(dimension), 1n << BigInt(gridBits))),
  };
}

/** A signal as it stands on the wire, in a request for `t` of `k` items; in a memo both are 0. */
export function packed(signal: Signal, k: number, t: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(HEADER + 4 * signal.dimension));
  view.setUint16(0, VERSION, true);
  view.setUint8(2, (signal.simulated ? SIMULATED : 0) | (signal.empty ? EMPTY : 0));
  view.setInt8(3, -signal.gridBits);
  view.setUint32(4, Number(signal.eta.numerator), true);
  view.setUint32(8, Number(signal.eta.denominator), true);
  view.setUint16(12, signal.dimension, true);
  view.setUint8(14, k);
  view.setUint8(15, t);
  signal.steps.forEach((step, place) => view.setInt32(HEADER + 4 * place, step, true));
  return new Uint8Array(view.buffer);
}

/** What `packed` wrote. */
export function unpacked(content: Uint8Array): { signal: Signal; k: number; t: number } {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const dimension = content.length < HEADER ? -1 : view.getUint16(12, true);
  const flags = dimension < 0 ? 0 : view.getUint8(2);
  if (content.length !== HEADER + 4 * dimension || view.getUint16(0, true) !== VERSION || flags > (SIMULATED | EMPTY)) {
    throw invalidMessage(NO_SIGNAL);
  }
  const steps = Int32Array.from({ length: dimension }, (_, place) => view.getInt32(HEADER + 4 * place, true));
  const eta = lowest(view.getUint32(4, true), view.getUint32(8, true));
  const signal = new Signal(steps, 0 - view.getInt8(3), eta, (flags & SIMULATED) !== 0, (flags & EMPTY) !== 0);
  return { signal, k: view.getUint8(14), t: view.getUint8(15) };
}

/** In lowest terms only: then one signal is one sequence of bytes. */
export function lowest(above: number, under: number): Fraction {
  const found = fraction(BigInt(above), BigInt(under || 1));
  if (found.denominator !== BigInt(under)) throw invalidMessage(NO_SIGNAL);
  return found;
}
