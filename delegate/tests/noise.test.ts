// System noise: no byte is used twice or stays in memory.
import { expect, test } from "vitest";
import { systemNoise } from "../src/noise.js";

test("no byte is returned twice", () => {
  const original = crypto.getRandomValues.bind(crypto);
  let next = 0;
  const given = new Set<number>();
  Object.defineProperty(crypto, "getRandomValues", {
    configurable: true,
    value: (bytes: Uint8Array) => {
      const words = new Uint32Array(bytes.buffer);
      words.forEach((_, place) => (words[place] = next += 1)); // every four bytes are a distinct number
      return bytes;
    },
  });
  try {
    systemNoise.draw(4096); // uses up an older buffer
    for (let draw = 0; draw < 5000; draw += 1) {
      const bytes = systemNoise.draw(4);
      const word = new DataView(bytes.buffer).getUint32(0, true);
      expect(given.has(word)).toBe(false);
      given.add(word);
    }
  } finally {
    Object.defineProperty(crypto, "getRandomValues", { configurable: true, value: original });
    systemNoise.draw(4096);
  }
});

test("used bytes are zeroed in memory, unused ones are not", () => {
  const original = crypto.getRandomValues.bind(crypto);
  const buffers: Uint8Array[] = [];
  Object.defineProperty(crypto, "getRandomValues", {
    configurable: true,
    value: (bytes: Uint8Array) => {
      buffers.push(bytes);
      return bytes.fill(0xab);
    },
  });
  try {
    systemNoise.draw(5000); // more than any older buffer holds, so it gets its own buffer and uses it up
    expect([buffers.length, buffers[0]!.length]).toEqual([1, 5000]);
    expect(buffers[0]!.every((byte) => byte === 0)).toBe(true);
    expect(Array.from(systemNoise.draw(3))).toEqual([0xab, 0xab, 0xab]); // a copy, not a view of the buffer
    systemNoise.draw(7);
    const [used, left] = [buffers[1]!.subarray(0, 10), buffers[1]!.subarray(10)];
    expect(used.every((byte) => byte === 0)).toBe(true);
    expect(left.every((byte) => byte === 0xab)).toBe(true);
  } finally {
    Object.defineProperty(crypto, "getRandomValues", { configurable: true, value: original });
    systemNoise.draw(5000);
  }
});
