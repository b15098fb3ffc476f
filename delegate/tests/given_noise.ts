import type { Noise } from "../src/noise.js";

/** Noise that gives the bytes of a case, and no more. */
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

/** Fast bytes from a seed, for tests of laws: xoshiro128**. It says of itself that it promises nothing unless told to be quiet. */
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
    const turned = (value: number, by: number): number => (value << by) | (value >>> (32 - by));
    const result = Math.imul(turned(Math.imul(s[1], 5), 7), 9) >>> 0;
    const shifted = s[1] << 9;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = turned(s[3], 11);
    return result;
  }
}

export const bytesOf = (hexadecimal: string): Uint8Array =>
  Uint8Array.from({ length: hexadecimal.length / 2 }, (_, place) => parseInt(hexadecimal.slice(2 * place, 2 * place + 2), 16));

export const hexadecimalOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
