// The order of steps: what is private is looked at only where something is to be drawn, and refused before anything is charged.
import "fake-indexeddb/auto";
import { beforeEach, expect, test } from "vitest";
import { ask, type Asking } from "../src/asking.js";
import { Database } from "../src/database.js";
import { TacitError } from "../src/errors.js";
import { exactEta } from "../src/eta.js";
import { checkedFeatures } from "../src/features.js";
import { Ledger } from "../src/ledger.js";
import { systemNoise } from "../src/noise.js";

const ETA = exactEta(0.1);
let places = 0;
let steps: string[] = [];
let by: Asking;

beforeEach(async () => {
  steps = [];
  const ledger = new Ledger(await Database.open(`asking ${(places += 1)}`), () => Date.UTC(2026, 10, 17));
  const budget = { epsilon: 15, per: "month" } as const;
  await ledger.agree("me", { budget, protects: "features", caveat: null });
  const noted = new Proxy(ledger, {
    get(target, name) {
      const found = Reflect.get(target, name) as unknown;
      if (typeof found !== "function" || name === "clock") return found;
      return (...given: unknown[]) => {
        steps.push(String(name));
        return (found as (...given: unknown[]) => unknown).apply(target, given);
      };
    },
  });
  const features = async (): Promise<Float64Array> => {
    steps.push("features");
    return Float64Array.of(1, 0, 0, 1);
  };
  const noise = {
    caveat: null,
    draw(count: number) {
      if (steps[steps.length - 1] !== "noise") steps.push("noise");
      return systemNoise.draw(count);
    },
  };
  by = { ledger: noted, subject: "me", budget, refresh: "month", perPeriod: 1, noise, version: "v", dimension: 4, features };
});

test("look up the memo, charge, look at the features, draw, keep: in this order", async () => {
  await ask(ETA, by);
  expect(steps).toEqual(["stored", "charge", "features", "noise", "keep"]);
});

test("a memo is given without a look at the features, and without noise", async () => {
  await ask(ETA, by);
  steps = [];
  expect((await ask(ETA, by)).from).toBe("memo");
  expect(steps).toEqual(["stored"]);
});

test("where nothing is left the features are not looked at", async () => {
  await ask(ETA, by);
  steps = [];
  expect((await ask(exactEta(0.15), by)).from).toBe("nothing");
  expect(steps).toEqual(["stored", "charge", "newest"]);
});

test("features outside the domain are refused, and nothing is charged", async () => {
  for (const odd of [Float64Array.of(2, 0, 0, 1), Float64Array.of(NaN, 0, 0, 1), Float64Array.of(0.5, 0, 0, 1), Float64Array.of(1, 0)]) {
    const problem = await ask(ETA, { ...by, features: async () => checkedFeatures(odd, 4) }).catch((found: unknown) => found);
    expect(problem).toBeInstanceOf(TacitError);
    expect((problem as TacitError).code).toBe("invalid-features");
  }
  expect((await by.ledger.statement("me")).charges).toBe(0);
});
