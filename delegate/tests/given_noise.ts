import type { Noise } from "../src/noise.js";

/** Noise that returns the bytes of a test case and throws when they are used up. */
export class GivenNoise implements Noise {
  readonly caveat = null;
  left: Uint8Array;

  constructor(hexadecimal: string) {
    this.left = bytesOf(hexadecimal);
  }

  draw(count: number): Uint8Array {
    if (count > this.left.length) throw new Error("more bytes were drawn than the case has");
    const given = this.left.slice(0, count);
    this.left = this.left.subarray(count);
    return given;
  }
}

/** Fast seeded bytes (xoshiro128**), for tests of laws. Its caveat says that it promises nothing, unless `caveat` is null. */
export class SeededNoise implements Noise {
  #state: Uint32Array;

  constructor(
    seed: number,
    readonly caveat: string | null = "seeded: for tests only",
  ) {
    this.#state = Uint32Array.from([seed, 0x9e3779b9 ^ seed, 0x243f6a88, 0xb7e15162]);
    for (let round = 0; round < 20; round += 1) this.#next();
  }

  draw(count: number): Uint8Array {
    const given = new Uint8Array(count);
    for (let place = 0; place < count; place += 4) {
      const word = this.#next();
      for (let byte = 0; byte < 4 && place + byte < count; byte += 1) given[place + byte] = word >>> (8 * byte);
    }
    return given;
  }

  #next(): number {
    const s = this.#state as unknown as [number, number, number, number];
    const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits));
    const result = Math.imul(rotate(Math.imul(s[1], 5), 7), 9) >>> 0;
    const shifted = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 11);
    return result;
  }
}

export const bytesOf = (hexadecimal: string): Uint8Array =>
  Uint8Array.from({ length: hexadecimal.length / 2 }, (_, place) => parseInt(hexadecimal.slice(2 * place, 2 * place + 2), 16));

export const hexadecimalOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Seeds are fixed unless TACIT_SEED=fresh. No test may depend on a lucky seed. */
const { process } = globalThis as unknown as { process: { env: Record<string, string | undefined> } };
const shift = process.env["TACIT_SEED"] === "fresh" ? crypto.getRandomValues(new Uint32Array(1))[0]! : 0;

export const seeded = (seed: number): number => (seed + shift) >>> 0;
