/** Privacy randomness: bytes from the platform's cryptographic generator. They are never seeded, never logged and used only once. */
import { TacitError } from "./errors.js";

/** A source of independent, uniform random bytes. */
export interface Noise {
  /** null if this source protects. Otherwise the reason why releases drawn from it promise nothing. */
  readonly caveat: string | null;
  /** Returns the next `count` bytes. No byte is ever returned twice. */
  draw(count: number): Uint8Array;
}

const BUFFER_SIZE = 4096; // a call to WebCrypto costs more than the bytes, so one call serves many draws

class SystemNoise implements Noise {
  readonly caveat = null;
  #buffer = new Uint8Array(0);

  draw(count: number): Uint8Array {
    if (this.#buffer.length < count) {
      try {
        // the rest of the old buffer is dropped, never reused
        this.#buffer = crypto.getRandomValues(new Uint8Array(Math.max(BUFFER_SIZE, count)));
      } catch {
        throw new TacitError("system-noise-unavailable", "the platform returned no random bytes; nothing was released.");
      }
    }
    const bytes = this.#buffer.slice(0, count);
    this.#buffer.fill(0, 0, count); // used bytes must not stay in memory
    this.#buffer = this.#buffer.subarray(count);
    return bytes;
  }
}

/** WebCrypto's generator. */
export const systemNoise: Noise = new SystemNoise();

/** Returns a uniform integer of `count` bits: the leading bits of the fewest bytes that hold them, read as a big-endian number. */
export function leadingBits(noise: Noise, count: number): bigint {
  const size = Math.ceil(count / 8);
  let value = 0n;
  for (const byte of noise.draw(size)) value = (value << 8n) | BigInt(byte);
  return value >> BigInt(8 * size - count);
}
