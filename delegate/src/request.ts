/** The request of multi-selection, from device to server: a signal, and the wanted size of the slate. 168 bytes for 38 features. */
import { invalidMessage } from "./errors.js";
import { packed, unpacked, type Signal } from "./signal.js";

export const MOST_K = 255;

/** A signal, how many items the slate shall have (`k`) and how many of them the device will show (`t`). */
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
    return packed(this.signal, this.k, this.t);
  }

  static fromBytes(content: Uint8Array): Request {
    const { signal, k, t } = unpacked(content);
    return new Request(signal, k, t);
  }
}
