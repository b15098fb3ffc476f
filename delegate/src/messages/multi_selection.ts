/**
 * The messages of multi-selection: the signal (noisy features on a grid), the request that carries it, and the server's reply. All
 * numbers on the wire are little-endian.
 *
 * Signal and request: version u16, flags u8, log2 of the grid's step i8, eta as two u32, dimension u16, k u8, t u8, then the steps as
 * i32: 16 + 4d bytes for any d features, 168 for 38 features. A stored signal has the same bytes with k = t = 0.
 *
 * Reply: version u16, model kind u8 (highest bit: the slate is shorter than k), k u8, dimension u16, components u16, the items' numbers
 * as k u64, then the model. The server pads a short slate with its last item.
 */
import { fraction, ofDecimal, up, type Fraction } from "../arithmetic.js";
import { invalidMessage, invalidParameter } from "../errors.js";

const NOT_A_SIGNAL =
  "not a valid signal or request, or one of another version: expected steps within 2^30 of 0 and eta from 0.001 to 10 in lowest terms.";
export const SIGNAL_VERSION = 0x5301; // "S" and 1
const SIGNAL_HEADER = 16;
const SIMULATED = 1;
const EMPTY = 2;
export const MOST_GRID_BITS = 30;
export const MOST_STEPS = 2 ** 30;
export const MOST_DIMENSION = 2 ** 16 - 1;
export const GRID_BITS = 20; // steps of about a millionth, far below any noise that protects

/** A user's features plus noise of scale `eta`, in steps of 2^-`gridBits`. An `empty` signal says nothing about the user. */
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
    const valid =
      listed.length >= 1 &&
      listed.length <= MOST_DIMENSION &&
      listed.every((step) => Number.isInteger(step) && Math.abs(step) <= MOST_STEPS) &&
      Number.isInteger(gridBits) &&
      gridBits >= 0 &&
      gridBits <= MOST_GRID_BITS &&
      inRange(eta) &&
      (!empty || !(simulated || listed.some(Boolean))); // an empty signal has only zero steps and no noise
    if (!valid) throw invalidMessage(NOT_A_SIGNAL);
    this.steps = Int32Array.from(listed);
  }

  /** An empty signal, for a device whose budget is spent. */
  static nothing(dimension: number, eta: Fraction | number | string, gridBits = GRID_BITS): Signal {
    return new Signal(new Int32Array(dimension), gridBits, typeof eta === "object" ? eta : exactEta(eta), false, true);
  }

  get dimension(): number {
    return this.steps.length;
  }

  /** The noisy features. Values outside the domain of features are normal. */
  get values(): Float64Array {
    return Float64Array.from(this.steps, (step) => step * 2 ** -this.gridBits);
  }

  /** The sender's guarantee: epsilon per unit of (L1 distance + rounding). null if the noise was simulated. */
  get guarantee(): { epsilon: number; rounding: number } | null {
    if (this.simulated) return null;
    if (this.empty) return { epsilon: 0, rounding: 0 };
    return guaranteeOf(this.eta, this.dimension, this.gridBits);
  }

  /** The bytes that a device stores. */
  toBytes(): Uint8Array {
    return pack(this, 0, 0);
  }

  static fromBytes(content: Uint8Array): Signal {
    const { signal, k, t } = unpack(content);
    if (k !== 0 || t !== 0) throw invalidMessage(NOT_A_SIGNAL);
    return signal;
  }
}

export const MOST_K = 255;

/** A signal, the wanted size of the slate (`k`), and how many of its items the device will show (`t`). */
export class Request {
  constructor(
    readonly signal: Signal,
    readonly k = 5,
    readonly t = 1,
  ) {
    if (!Number.isInteger(k) || !Number.isInteger(t) || t < 1 || k < t || k > MOST_K) {
      throw invalidMessage(`a request needs 1 <= t <= k <= ${MOST_K}.`);
    }
  }

  toBytes(): Uint8Array {
    return pack(this.signal, this.k, this.t);
  }

  static fromBytes(content: Uint8Array): Request {
    const { signal, k, t } = unpack(content);
    return new Request(signal, k, t);
  }
}

/** A signal's guarantee: 1/eta, and the most that rounding to the grid adds to a distance, one step per coordinate. Both rounded up. */
export function guaranteeOf(eta: Fraction, dimension: number, gridBits = GRID_BITS): { epsilon: number; rounding: number } {
  return {
    epsilon: up({ numerator: eta.denominator, denominator: eta.numerator }),
    rounding: up(fraction(BigInt(dimension), 1n << BigInt(gridBits))),
  };
}

/** Encodes a signal in a request for `t` of `k` items, or as a device stores it, with k = t = 0. */
function pack(signal: Signal, k: number, t: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(SIGNAL_HEADER + 4 * signal.dimension));
  view.setUint16(0, SIGNAL_VERSION, true);
  view.setUint8(2, (signal.simulated ? SIMULATED : 0) | (signal.empty ? EMPTY : 0));
  view.setInt8(3, -signal.gridBits);
  view.setUint32(4, Number(signal.eta.numerator), true);
  view.setUint32(8, Number(signal.eta.denominator), true);
  view.setUint16(12, signal.dimension, true);
  view.setUint8(14, k);
  view.setUint8(15, t);
  signal.steps.forEach((step, index) => view.setInt32(SIGNAL_HEADER + 4 * index, step, true));
  return new Uint8Array(view.buffer);
}

function unpack(content: Uint8Array): { signal: Signal; k: number; t: number } {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const dimension = content.length < SIGNAL_HEADER ? -1 : view.getUint16(12, true);
  const flags = dimension < 0 ? 0 : view.getUint8(2);
  if (content.length !== SIGNAL_HEADER + 4 * dimension || view.getUint16(0, true) !== SIGNAL_VERSION || flags > (SIMULATED | EMPTY)) {
    throw invalidMessage(NOT_A_SIGNAL);
  }
  const steps = Int32Array.from({ length: dimension }, (_, index) => view.getInt32(SIGNAL_HEADER + 4 * index, true));
  const eta = inLowestTerms(view.getUint32(4, true), view.getUint32(8, true));
  const signal = new Signal(steps, 0 - view.getInt8(3), eta, (flags & SIMULATED) !== 0, (flags & EMPTY) !== 0);
  return { signal, k: view.getUint8(14), t: view.getUint8(15) };
}

/** Reads a fraction and refuses one that is not in lowest terms, so that a signal has only one encoding. */
export function inLowestTerms(numerator: number, denominator: number): Fraction {
  const reduced = fraction(BigInt(numerator), BigInt(denominator || 1));
  if (reduced.denominator !== BigInt(denominator)) throw invalidMessage(NOT_A_SIGNAL);
  return reduced;
}

export const MOST_U32 = (1n << 32n) - 1n;

/**
 * Reads eta, the scale of a signal's noise in the units of features, exactly. A number stands for its shortest decimal, so 0.1 is 1/10.
 * A text may be "0.1" or "1/10".
 */
export function exactEta(eta: number | string): Fraction {
  const written = typeof eta === "number" || typeof eta === "string" ? String(eta) : "";
  const [, above, under] = /^\s*(\d{1,40})\/(\d{1,40})\s*$/.exec(written) ?? [];
  const exact =
    above === undefined || under === undefined ? ofDecimal(written) : BigInt(under) === 0n ? null : fraction(BigInt(above), BigInt(under));
  if (exact === null || !inRange(exact)) {
    throw invalidParameter("eta must be a number from 0.001 to 10 with at most nine decimals, or a fraction of two numbers below 2^32.");
  }
  return exact;
}

/** Whether eta lies between 1/1000 and 10 and fits into 64 bits. */
const inRange = ({ numerator, denominator }: Fraction): boolean =>
  1000n * numerator >= denominator && numerator <= 10n * denominator && numerator <= MOST_U32 && denominator <= MOST_U32;

const NOT_A_REPLY =
  "not a valid reply, or one of another version: expected 1 to k distinct items and as many finite numbers as the header says.";
export const REPLY_VERSION = 0x5201; // "R" and 1
export const REPLY_HEADER = 8;
export const SHORT = 0x80;
export const KINDS = ["none", "linear-map", "linear-map-half", "principal-components", "network"] as const;

/** How the device picks from the slate: `none` keeps the slate's order, `network` needs the server's own model. */
export type ModelKind = (typeof KINDS)[number];

/** A slate and its local model. `items` are the numbers of distinct items, the server's best first: usually k of them, never more. */
export class Reply {
  readonly items: readonly bigint[];
  readonly numbers: Float64Array; // the model as sent, row by row, padded to k items

  constructor(
    readonly kind: ModelKind,
    items: readonly bigint[],
    readonly k: number,
    readonly dimension: number,
    readonly components: number,
    numbers: ArrayLike<number>,
  ) {
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const spare = k - items.length;
    this.items = [...items];
    this.numbers = Float64Array.from(numbers);
    const valid =
      spare >= 0 &&
      items.length >= 1 &&
      k <= MOST_K &&
      dimension >= 1 &&
      components > 0 === (kind === "principal-components") &&
      new Set(items).size === items.length &&
      numbers.length === rows * columns &&
      this.numbers.every(Number.isFinite) &&
      // the padding of a short slate repeats the row of its last item
      this.numbers.every((number, index) => index < (rows - spare) * columns || number === this.numbers[index - columns]);
    if (!valid) throw invalidMessage(NOT_A_REPLY);
  }

  /** Whether the server had fewer than k items to offer. */
  get short(): boolean {
    return this.items.length < this.k;
  }

  /** The rows of the local model without padding; empty if the reply has no model. */
  rows(): Float64Array[] {
    const [rows, columns] = shapeOf(this.kind, this.k, this.dimension, this.components);
    const used = Math.max(0, rows - (this.k - this.items.length));
    return Array.from({ length: used }, (_, row) => this.numbers.subarray(row * columns, (row + 1) * columns));
  }

  static fromBytes(content: Uint8Array): Reply {
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    const code = content.length < REPLY_HEADER || view.getUint16(0, true) !== REPLY_VERSION ? SHORT - 1 : view.getUint8(2);
    const kind = KINDS[code & ~SHORT];
    if (kind === undefined) throw invalidMessage(NOT_A_REPLY);
    const [k, dimension, components] = [view.getUint8(3), view.getUint16(4, true), view.getUint16(6, true)];
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const [start, width] = [REPLY_HEADER + 8 * k, kind === "linear-map-half" ? 2 : 4];
    if (content.length !== start + width * rows * columns) throw invalidMessage(NOT_A_REPLY);
    const items = Array.from({ length: k }, (_, index) => view.getBigUint64(REPLY_HEADER + 8 * index, true));
    const numbers = Float64Array.from({ length: rows * columns }, (_, index) =>
      width === 2 ? fromHalf(view.getUint16(start + 2 * index, true)) : view.getFloat32(start + 4 * index, true),
    );
    return new Reply(kind, withoutPadding(items, (code & SHORT) !== 0), k, dimension, components, numbers);
  }
}

/** Rows and columns of the model's numbers. */
function shapeOf(kind: ModelKind, k: number, dimension: number, components: number): [number, number] {
  if (kind === "principal-components") return [1 + dimension + k, components];
  return kind === "linear-map" || kind === "linear-map-half" ? [k, 1 + dimension] : [0, 0];
}

/** The distinct items of a slate. Refuses padding in a full slate, and a short slate that is padded with anything but its last item. */
export function withoutPadding(padded: readonly bigint[], short: boolean): bigint[] {
  const items = [...new Set(padded)];
  const last = items[items.length - 1];
  if (short !== items.length < padded.length || !padded.every((item, index) => item === (items[index] ?? last))) {
    throw invalidMessage(NOT_A_REPLY);
  }
  return items;
}

/** Decodes a half-precision number (IEEE 754 binary16), which not all browsers can. */
export function fromHalf(code: number): number {
  const sign = code & 0x8000 ? -1 : 1;
  const exponent = (code >> 10) & 31;
  const mantissa = code & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24);
}
