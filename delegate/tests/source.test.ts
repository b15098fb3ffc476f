// Checks of the source text and the package.
import { expect, test } from "vitest";
import lock from "../package-lock.json";
import manifest from "../package.json";

declare global {
  interface ImportMeta {
    glob(pattern: string, options: object): unknown; // of the bundler that runs these tests
  }
}

const sources = import.meta.glob("../src/**/*.ts", { query: "?raw", import: "default", eager: true }) as Record<string, string>;
const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");

test("random bytes come from WebCrypto, in one module", () => {
  expect(Object.keys(sources).length).toBeGreaterThan(12);
  for (const [name, text] of Object.entries(sources)) {
    expect(withoutComments(text), name).not.toMatch(/Math\s*\.\s*random|randomUUID/);
    if (!name.endsWith("/noise.ts")) expect(withoutComments(text), name).not.toContain("getRandomValues");
  }
});

test("no module writes to the console or to storage outside the ledger", () => {
  for (const [name, text] of Object.entries(sources)) {
    expect(withoutComments(text), name).not.toMatch(/console\.|localStorage|sessionStorage|document\.|sendBeacon|postMessage/);
    if (!name.endsWith("/src/multi_selection.ts")) expect(withoutComments(text), name).not.toMatch(/navigator/i);
    if (!name.endsWith("/ledger.ts")) expect(withoutComments(text), name).not.toContain("indexedDB");
    if (!/\/(client|device)\.ts$/.test(name)) expect(withoutComments(text), name).not.toMatch(/\bfetch\b/);
  }
});

test("the package has no run-time dependency, pins every version, and its lock names no registry", () => {
  expect(manifest).not.toHaveProperty("dependencies");
  for (const version of Object.values(manifest.devDependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(JSON.stringify(lock)).not.toContain('"resolved"');
});
