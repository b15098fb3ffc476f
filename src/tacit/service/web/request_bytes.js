/**
 * A request of multi-selection, read back from the very bytes that were sent: what the page shows is what the server got, and not
 * what the page believes it sent. Little-endian: version u16, flags u8, log2 of the grid's step i8, eta as two u32, dimension u16,
 * k u8, t u8, then the steps as i32.
 */

import { raised } from "./words.js";

/** @typedef {import("./hex_dump.js").Field} Field */
/** @typedef {{ fields: Field[], values: number[], eta: number, k: number, dimension: number, empty: boolean, simulated: boolean }} Sent */

const HEADER = 16;
const [SIMULATED, EMPTY] = [1, 2];

/**
 * @param {Uint8Array} sent
 * @param {readonly string[]} names of the features in one block; there are two, liked and disliked
 * @returns {Sent}
 */
export function readRequest(sent, names) {
  const view = new DataView(sent.buffer, sent.byteOffset, sent.byteLength);
  const flags = view.getUint8(2);
  const exponent = view.getInt8(3);
  const [numerator, denominator] = [view.getUint32(4, true), view.getUint32(8, true)];
  const [dimension, k, t] = [view.getUint16(12, true), view.getUint8(14), view.getUint8(15)];
  const step = 2 ** exponent;
  const simulated = Boolean(flags & SIMULATED);
  const empty = Boolean(flags & EMPTY);
  const values = Array.from({ length: dimension }, (_, place) => view.getInt32(HEADER + 4 * place, true) * step);

  /** @param {string} name @param {number} from @param {number} to @param {string} means @returns {Field} */
  const header = (name, from, to, means) => ({ name, content: sent.subarray(from, to), means, part: "header" });
  /** @type {Field[]} */
  const fields = [
    header("version", 0, 2, `of the message: ${String.fromCharCode(view.getUint8(1))}${view.getUint8(0)}`),
    header("flags", 2, 3, empty ? "tells nothing" : simulated ? "simulated noise" : "none"),
    header("grid", 3, 4, `steps of 2${raised(exponent)}`),
    header("eta", 4, 12, `${numerator}/${denominator}`),
    header("dimension", 12, 14, `${dimension} numbers follow`),
    header("k", 14, 15, `wants ${k} films`),
    header("t", 15, 16, `will show ${t}`),
  ];
  values.forEach((value, place) => {
    const from = HEADER + 4 * place;
    const liked = place < names.length;
    const part = liked ? "liked" : "disliked";
    fields.push({
      name: `${part} ${names[place % names.length] ?? place}`,
      content: sent.subarray(from, from + 4),
      means: value.toFixed(3).replace("-", "−"),
      part,
    });
  });
  return { fields, values, eta: numerator / denominator, k, dimension, empty, simulated };
}
