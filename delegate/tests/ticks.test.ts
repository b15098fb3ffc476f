// What a server could time: sizes that are followed, and the tenths of a second at which outcomes show.
import "fake-indexeddb/auto";
import { expect, test } from "vitest";
import { Delegate } from "../src/delegate.js";
import { offerFromJSON } from "../src/offer.js";
import type { Policy } from "../src/policy.js";
import { supported } from "../src/private_selection.js";
import { nextTick } from "../src/ticks.js";
import { FakeServer, offerOf } from "./fake_server.js";

const NOW = Date.UTC(2026, 10, 17, 12);
const EARLY = 5; // milliseconds: timers of some platforms fire a little before their time

const policy = (rule: Policy["rule"], m: number, slots: number): Policy => ({
  ...{ rule, m, slots, epsilon: 1, d: 1, width: null, floors: null },
  bounding: rule === "pf" || rule === "gumbel" ? "scaled" : "none",
});

test.each([
  ["gumbel", 200, 1, true],
  ["gumbel", 201, 1, false],
  ["pf", 20, 11, false],
  ["rr", 10_000, 2, true],
  ["rr", 10_000, 3, false],
] as const)("%s of %i candidates in %i slots is followed: %s", (rule, m, slots, followed) => {
  expect(supported(policy(rule, m, slots))).toBe(followed);
});

test("a tick is a full tenth of a second after the call, however long the work took", async () => {
  for (const work of [0, 30, 110]) {
    const started = performance.now();
    await new Promise((resolve) => setTimeout(resolve, work));
    await nextTick(started);
    expect(performance.now() - started).toBeGreaterThan(100 * Math.ceil((work + 1) / 100) - EARLY);
  }
});

test("a signal leaves, and a choice is returned, at a tick: also where nothing private was read", async () => {
  const server = new FakeServer();
  const options = { server: "http://server.test", place: "ticks", budget: { epsilon: 20, per: "month" }, clock: () => NOW } as const;
  const delegate = await Delegate.open({ ...options, fetch: server.fetch });
  const times = [];
  for (const work of [() => delegate.recommend({ eta: 0.1 }), () => delegate.choose(offerFromJSON(offerOf({}, NOW)))]) {
    const started = performance.now();
    await work();
    times.push(performance.now() - started);
  }
  expect(Math.min(...times)).toBeGreaterThan(100 - EARLY);
});
