// What can be seen in the source itself.
import { expect, test } from "vitest";
import lock from "../package-lock.json";
import manifest from "../package.json";
import { systemNoise } from "../src/noise.js";

declare global {
  interface ImportMeta {
    glob(pattern: string, options: object): unknown; // of the bundler that runs these tests
  }
}

const sources = import.meta.glob("../src/*.ts", { query: "?raw", import: "default", eager: true }) as Record<string, string>;
const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");

test("chance comes from WebCrypto, in one place", () => {
  expect(Object.keys(sources).length).toBeGreaterThan(30);
  for (const [name, text] of Object.entries(sources)) {
    expect(withoutComments(text), name).not.toMatch(/Math\s*\.\s*random|randomUUID/);
    if (!name.endsWith("/noise.ts")) expect(withoutComments(text), name).not.toContain("getRandomValues");
  }
});

test("nothing private has a way to the console or to storage that is not the ledger's", () => {
  for (const [name, text] of Object.entries(sources)) {
    expect(withoutComments(text), name).not.toMatch(/console\.|localStorage|sessionStorage|document\.|sendBeacon|postMessage/);
    if (!name.endsWith("/turns.ts")) expect(withoutComments(text), name).not.toMatch(/navigator/i);
    if (!name.endsWith("/database.ts")) expect(withoutComments(text), name).not.toContain("indexedDB");
    if (!/\/(client|delegate|options)\.ts$/.test(name)) expect(withoutComments(text), name).not.toMatch(/\bfetch\b/);
  }
});

test("there is no run-time dependency, every version is pinned, and the lock names no registry", () => {
  expect(manifest).not.toHaveProperty("dependencies");
  for (const version of Object.values(manifest.devDependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(JSON.stringify(lock)).not.toContain('"resolved"');
});

test("no byte of noise is given twice, and what is given is not kept", () => {
  const original = crypto.getRandomValues.bind(crypto);
  let next = 0;
  const given = new Set<number>();
  Object.defineProperty(crypto, "getRandomValues", {
    configurable: true,
    value: (bytes: Uint8Array) => {
      const words = new Uint32Array(bytes.buffer);
      words.forEach((_, place) => (words[place] = next += 1)); // every four bytes are a number of their own
      return bytes;
    },
  });
  try {
    systemNoise.draw(4096); // whatever is left of an older buffer
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

test("noise that was used is not found in memory: its bytes are zeros, those to come are not", () => {
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
    systemNoise.draw(5000); // more than is left of any older buffer: a buffer of its own, used up
    expect([buffers.length, buffers[0]!.length]).toEqual([1, 5000]);
    expect(buffers[0]!.every((byte) => byte === 0)).toBe(true);
    expect(Array.from(systemNoise.draw(3))).toEqual([0xab, 0xab, 0xab]); // what is given is a copy
    systemNoise.draw(7);
    const [used, left] = [buffers[1]!.subarray(0, 10), buffers[1]!.subarray(10)];
    expect(used.every((byte) => byte === 0)).toBe(true);
    expect(left.every((byte) => byte === 0xab)).toBe(true);
  } finally {
    Object.defineProperty(crypto, "getRandomValues", { configurable: true, value: original });
    systemNoise.draw(5000);
  }
});
