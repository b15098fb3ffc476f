/**
 * The reply of multi-selection, from server to device: a slate of k items, and a local model to pick from it.
 *
 * On the wire, little-endian: version u16, model kind u8 (highest bit: the slate is shorter than k), k u8, dimension u16, components
 * u16, the items' numbers as k u64, then the model. A slate that is too short is filled up with its last item.
 */
import { invalidMessage } from "./errors.js";
import { fromHalf } from "./half.js";
import { MOST_K } from "./request.js";

const NO_REPLY = "this is no reply, or one of another version: 1 to k items, none twice, and as many finite numbers as its header says.";
export const VERSION = 0x5201; // "R" and 1
export const HEADER = 8;
export const SHORT = 0x80;
export const KINDS = ["none", "linear-map", "linear-map-half", "principal-components", "network"] as const;

/** How the device is to pick: `none` takes the slate's order, `network` needs the server's own model. */
export type ModelKind = (typeof KINDS)[number];

/** `items` are the numbers of distinct items, best first as the server sees it; at most `k`, and usually k of them. */
export class Reply {
  readonly items: readonly bigint[];
  readonly numbers: Float64Array; // the model as it is sent, row by row, filled up to k items

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
    const fits =
      spare >= 0 &&
      items.length >= 1 &&
      k <= MOST_K &&
      dimension >= 1 &&
      components > 0 === (kind === "principal-components") &&
      new Set(items).size === items.length &&
      numbers.length === rows * columns &&
      this.numbers.every(Number.isFinite) &&
      // a slate that is too short is filled up with its last item
      this.numbers.every((one, place) => place < (rows - spare) * columns || one === this.numbers[place - columns]);
    if (!fits) throw invalidMessage(NO_REPLY);
  }

  /** Whether there were fewer than k items to offer. */
  get short(): boolean {
    return this.items.length < this.k;
  }

  /** The rows of the local model that belong to items; none where there is no model in the reply. */
  rows(): Float64Array[] {
    const [rows, columns] = shapeOf(this.kind, this.k, this.dimension, this.components);
    const used = Math.max(0, rows - (this.k - this.items.length));
    return Array.from({ length: used }, (_, row) => this.numbers.subarray(row * columns, (row + 1) * columns));
  }

  static fromBytes(content: Uint8Array): Reply {
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    const marked = content.length < HEADER || view.getUint16(0, true) !== VERSION ? SHORT - 1 : view.getUint8(2);
    const kind = KINDS[marked & ~SHORT];
    if (kind === undefined) throw invalidMessage(NO_REPLY);
    const [k, dimension, components] = [view.getUint8(3), view.getUint16(4, true), view.getUint16(6, true)];
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const [start, width] = [HEADER + 8 * k, kind === "linear-map-half" ? 2 : 4];
    if (content.length !== start + width * rows * columns) throw invalidMessage(NO_REPLY);
    const items = Array.from({ length: k }, (_, place) => view.getBigUint64(HEADER + 8 * place, true));
    const numbers = Float64Array.from({ length: rows * columns }, (_, place) =>
      width === 2 ? fromHalf(view.getUint16(start + 2 * place, true)) : view.getFloat32(start + 4 * place, true),
    );
    return new Reply(kind, slateOf(items, (marked & SHORT) !== 0), k, dimension, components, numbers);
  }
}

/** Rows and columns of the numbers that are sent along. */
export function shapeOf(kind: ModelKind, k: number, dimension: number, components: number): [number, number] {
  if (kind === "principal-components") return [1 + dimension + k, components];
  return kind === "linear-map" || kind === "linear-map-half" ? [k, 1 + dimension] : [0, 0];
}

/** The items of a slate that was filled up with its last one, if it says so. */
export function slateOf(filled: readonly bigint[], short: boolean): bigint[] {
  const items = [...new Set(filled)];
  const last = items[items.length - 1];
  if (short !== items.length < filled.length || !filled.every((item, place) => item === (items[place] ?? last))) {
    throw invalidMessage(NO_REPLY);
  }
  return items;
}
