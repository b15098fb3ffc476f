// A revocation reaches every tab: whatever was rated before it, anywhere, is read by nobody afterwards.
import "fake-indexeddb/auto";
import { beforeEach, expect, test } from "vitest";
import { Delegate } from "../src/delegate.js";
import type { Noise } from "../src/noise.js";
import { offerFromJSON } from "../src/offer.js";
import { FakeServer, offerOf } from "./fake_server.js";

const NOW = Date.UTC(2026, 10, 17, 12);

/** Bytes of which every draw of a signal is 0 (a remainder of 0, tails, a sign) and rr takes the privately best. */
const none = (): Noise => {
  let sign = true;
  return { caveat: null, draw: (count) => (count === 1 ? Uint8Array.of((sign = !sign) ? 0 : 0x80) : new Uint8Array(count)) };
};

let places = 0;
let [one, other] = [] as unknown as [Delegate, Delegate];
let server = new FakeServer();

/** Two tabs that are open on one database; both were told the same, and she consented. */
beforeEach(async () => {
  server = new FakeServer();
  const place = `revocations ${(places += 1)}`;
  const options = { server: "http://server.test", place, budget: { epsilon: 20, per: "month" }, clock: () => NOW, noise: none() } as const;
  [one, other] = [await Delegate.open({ ...options, fetch: server.fetch }), await Delegate.open({ ...options, fetch: server.fetch })];
  for (const tab of [one, other]) {
    tab.rate(5, 5);
    await tab.offer(); // with it the scorer comes
  }
  await one.consent();
});

const stepsOf = async (tab: Delegate): Promise<number[]> => Array.from((await tab.ask("1/10")).signal.steps);
const chosenBy = async (tab: Delegate): Promise<string | undefined> => (await tab.choose(offerFromJSON(offerOf({}, NOW))))?.items[0];

test("without one, a signal is of what was rated and a choice goes by it", async () => {
  expect((await stepsOf(other))[2]).toBe(2 ** 20);
  expect(await chosenBy(other)).toBe("5");
});

test("a signal of another tab is that of an empty profile", async () => {
  await one.revoke();
  expect(await stepsOf(other)).toEqual([0, 0, 0, 0, 0, 0]);
  expect([one.ratings().size, other.ratings().size]).toEqual([0, 0]);
});

test("also where the revocation comes while the other tab is asking: what counts is the moment of the charge", async () => {
  const [, steps] = await Promise.all([one.revoke(), stepsOf(other)]);
  const spent = await other.statement();
  expect(spent.charges).toBe(1);
  expect(steps).toEqual([0, 0, 0, 0, 0, 0]); // the revocation was written first
});

test("also where it comes after the tab has looked and before it charges: it looks again in the transaction of the charge", async () => {
  let revoked: Promise<void> | null = null;
  const place = `between ${places}`;
  const options = { server: "http://server.test", place, budget: { epsilon: 20, per: "month" }, fetch: server.fetch, noise: none() } as const;
  const elsewhere = await Delegate.open({ ...options, clock: () => NOW });
  let asking = false;
  const clock = (): number => {
    if (asking) revoked ??= elsewhere.revoke(); // the clock is read for the slot, when the profile was found to stand
    return NOW;
  };
  const tab = await Delegate.open({ ...options, clock });
  tab.rate(5, 5);
  asking = true;
  expect(await stepsOf(tab)).toEqual([0, 0, 0, 0, 0, 0]);
  await revoked;
  expect(tab.ratings().size).toBe(0);
});

test("nor does a charge of the other tab that had crashed before it drew", async () => {
  let broken = true;
  const whole = none();
  const noise: Noise = {
    caveat: null,
    draw: (count) => {
      if (broken) throw new Error("crash");
      return whole.draw(count);
    },
  };
  const options = { server: "http://server.test", place: `crashed ${places}`, budget: { epsilon: 20, per: "month" }, clock: () => NOW } as const;
  const tab = await Delegate.open({ ...options, fetch: server.fetch, noise });
  const second = await Delegate.open({ ...options, fetch: server.fetch, noise });
  tab.rate(5, 5);
  await expect(tab.ask("1/10")).rejects.toThrow();
  await second.revoke();
  broken = false;
  expect(await stepsOf(tab)).toEqual([0, 0, 0, 0, 0, 0]);
  expect((await tab.statement()).charges).toBe(1);
});

test("the pick from a memo does not go by what was revoked", async () => {
  await stepsOf(other);
  await one.revoke();
  const { picked, asked } = await other.recommend({ k: 4, t: 1, eta: "1/10" });
  expect([asked.from, picked]).toEqual(["memo", [9]]); // of an empty profile the last has the largest estimate; item 5 is what she liked
});

test("consent that is given again does not bring old ratings back", async () => {
  await one.revoke();
  await one.consent();
  expect(await chosenBy(other)).toBe("9");
  expect(other.ratings().size).toBe(0);
});

test.each(["consented", "offer"] as const)("`%s` notices it too", async (call) => {
  await one.revoke();
  await other[call]();
  expect(other.ratings().size).toBe(0);
});

test("what is rated after it stays, in the tab that revoked and in one that noticed", async () => {
  await one.revoke();
  expect(await other.consented()).toBe(false);
  for (const tab of [one, other]) {
    tab.rate(1, 5);
    await tab.consented();
    expect([...tab.ratings()]).toEqual([[1, 5]]);
  }
  expect((await stepsOf(other))[0]).toBe(2 ** 20);
});

test("what was wiped here and rated anew is newer than a revocation that nobody noticed here", async () => {
  await one.revoke();
  other.wipe();
  other.rate(1, 5);
  expect((await stepsOf(other))[0]).toBe(2 ** 20);
});

test("a second revocation wipes what was rated since the first", async () => {
  await one.revoke();
  await other.consented();
  other.rate(1, 5);
  await other.consented();
  await one.revoke();
  expect(await stepsOf(other)).toEqual([0, 0, 0, 0, 0, 0]);
});
