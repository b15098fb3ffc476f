/** Privacy randomness: bytes of the platform's cryptographic generator, never seeded, never logged, each used once. */
import { TacitError } from "./errors.js";

/** A source of independent, uniform random bytes. */
export interface Noise {
  /** null for noise that protects; otherwise the reason why what is drawn from it promises nothing. */
  readonly caveat: string | null;
  /** The next `count` bytes. No byte is ever given twice. */
  draw(count: number): Uint8Array;
}

const BUFFER = 4096; // one call for many draws: a call costs more than the bytes

/** WebCrypto's generator. */
class SystemNoise implements Noise {
  readonly caveat = null;
  #buffer = new Uint8Array(0);

  draw(count: number): Uint8Array {
    if (this.#buffer.length < count) {
      try {
        // what is left of the old buffer is dropped: a byte is either used or forgotten
        this.#buffer = crypto.getRandomValues(new Uint8Array(Math.max(BUFFER, count)));
      } catch {
        throw new TacitError("system-noise-unavailable", "the platform gave no random bytes; nothing was released.");
      }
    }
    const given = this.#buffer.slice(0, count);
    this.#buffer.fill(0, 0, count); // what was used is not to be found in memory
    this.#buffer = this.#buffer.subarray(count);
    return given;
  }
}

export const systemNoise: Noise = new SystemNoise();

/** A uniform whole number of `count` bits: the leading bits of the fewest bytes that hold them, read as a big-endian number. */
export function leadingBits(noise: Noise, count: number): bigint {
  const size = Math.ceil(count / 8);
  let value = 0n;
  for (const byte of noise.draw(size)) value = (value << 8n) | BigInt(byte);
  return value >> BigInt(8 * size - count);
}
