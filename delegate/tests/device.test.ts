// The delegate against an in-memory server: one signal for each slot, and revocations that reach every tab.
import "fake-indexeddb/auto";
import { beforeEach, describe, expect, test } from "vitest";
import type { Exchange } from "../src/client.js";
import { Delegate, nextTick, type DelegateOptions } from "../src/device.js";
import { TacitError } from "../src/errors.js";
import { Request } from "../src/messages/multi_selection.js";
import { offerFromJSON } from "../src/messages/private_selection.js";
import { systemNoise, type Noise } from "../src/noise.js";
import { CATALOGUE, FakeServer, offerOf } from "./fake_server.js";
import { SeededNoise } from "./given_noise.js";

const NOVEMBER = Date.UTC(2026, 10, 17, 12);
const DECEMBER = Date.UTC(2026, 11, 1);
const ORIGIN = "http://server.test";

let places = 0;
let [place, now] = ["", NOVEMBER];
let server = new FakeServer();

beforeEach(() => {
  [place, now, server] = [`delegate ${(places += 1)}`, NOVEMBER, new FakeServer()];
});

const opened = (more: Partial<DelegateOptions> = {}): Promise<Delegate> =>
  Delegate.open({ server: ORIGIN, place, budget: { epsilon: 20, per: "month" }, fetch: server.fetch, clock: () => now, ...more });

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "nothing was refused",
    (problem: TacitError) => problem.code,
  );

/** Noise that fails after this many draws. */
const failingAfter = (draws: number): Noise => ({
  caveat: null,
  draw: (count) => {
    if ((draws -= 1) < 0) throw new TacitError("system-noise-unavailable", "no more");
    return systemNoise.draw(count);
  },
});

describe("signals", () => {
  test("the first signal is fresh; later ones in the slot have the same bytes, also for another profile and after a restart", async () => {
    const delegate = await opened();
    delegate.rate(1, 5);
    const first = await delegate.ask(0.1);
    expect(first.from).toBe("fresh");
    delegate.rate(5, 1);
    const second = await delegate.ask("1/10");
    expect(second.from).toBe("memo");
    expect(second.signal.toBytes()).toEqual(first.signal.toBytes());
    delegate.close();
    const again = await opened();
    expect((await again.ask(0.1)).signal.toBytes()).toEqual(first.signal.toBytes());
    expect(await again.statement()).toMatchObject({ spent: "10", left: "10", charges: 1, renews: new Date(DECEMBER) });
  });

  test("two delegates that ask at once draw one signal and pay once", async () => {
    const [first, second] = await Promise.all([opened(), opened()]);
    first.rate(1, 5);
    second.rate(5, 5);
    const asked = await Promise.all([first.ask(0.1), second.ask(0.1), first.ask(0.1), second.ask(0.1)]);
    expect(new Set(asked.map(({ signal }) => String(signal.toBytes()))).size).toBe(1);
    expect(asked.filter(({ from }) => from === "fresh")).toHaveLength(1);
    expect((await first.statement()).charges).toBe(1);
  });

  test("after a crash between charge and memo, the signal is drawn again for the same charge", async () => {
    const delegate = await opened({ noise: failingAfter(3) });
    delegate.rate(1, 5);
    expect(await codeOf(delegate.ask(0.1))).toBe("system-noise-unavailable");
    expect((await delegate.statement()).spent).toBe("10");
    delegate.close();
    const again = await opened();
    again.rate(1, 5);
    expect((await again.ask(0.1)).from).toBe("fresh");
    expect(await again.statement()).toMatchObject({ spent: "10", charges: 1 });
  });

  test("the same holds if the crash came after the last of the budget was charged", async () => {
    const crashed = await opened({ noise: failingAfter(0), budget: { epsilon: 10, per: "month" } });
    expect(await codeOf(crashed.ask(0.1))).toBe("system-noise-unavailable");
    crashed.close();
    const again = await opened({ budget: { epsilon: 10, per: "month" } });
    expect((await again.ask(0.1)).from).toBe("fresh");
    expect((await again.statement()).left).toBe("0");
  });

  test("with the budget spent, ask returns an older signal with this eta, or else an empty one", async () => {
    const options = { budget: { epsilon: 20, per: "month" }, refresh: "day" } as const;
    const delegate = await opened(options);
    const first = await delegate.ask(0.1);
    now += 86_400_000;
    await delegate.ask(0.1);
    now += 86_400_000;
    const older = await delegate.ask(0.1);
    expect(older.from).toBe("older");
    expect(older.signal.toBytes()).not.toEqual(first.signal.toBytes()); // the newest older signal
    const nothing = await delegate.ask(0.2);
    expect(nothing.from).toBe("nothing");
    expect(nothing.signal.empty).toBe(true);
    now = DECEMBER;
    expect((await delegate.ask(0.2)).from).toBe("fresh"); // a new window
  });

  test("signals with two etas are two signals, and both are charged", async () => {
    const delegate = await opened();
    await delegate.ask(0.1);
    await delegate.ask(0.2);
    expect((await delegate.statement()).spent).toBe("15");
    expect((await delegate.statement()).entries.map(({ epsilon }) => epsilon)).toEqual(["10", "5"]);
  });

  test("an eta that never fits throws before anything is charged", async () => {
    const delegate = await opened();
    expect(await codeOf(delegate.ask(0.01))).toBe("invalid-parameter");
    expect((await delegate.statement()).charges).toBe(0);
  });

  test("other genres make another signal with its own charge", async () => {
    const delegate = await opened();
    await delegate.ask(0.1);
    delegate.close();
    server.catalogue = { ...CATALOGUE, genres: [[0], [0, 1], [2], [1]] };
    const again = await opened();
    expect((await again.ask(0.1)).from).toBe("fresh");
    expect((await again.statement()).charges).toBe(2);
  });

  test("a clock that goes back finds the memo of its slot and opens no window", async () => {
    const delegate = await opened();
    const first = await delegate.ask(0.1);
    now = DECEMBER;
    await delegate.ask(0.1);
    now = NOVEMBER;
    expect((await delegate.ask(0.1)).signal.toBytes()).toEqual(first.signal.toBytes());
    now = Date.UTC(2026, 9, 1); // October has no memo; its charge falls into December's window
    expect((await delegate.ask(0.1)).from).toBe("fresh");
    now = Date.UTC(2026, 8, 1);
    expect((await delegate.ask(0.1)).from).toBe("older");
  });

  test("seeded noise marks its signals as simulated and costs no epsilon", async () => {
    const delegate = await opened({ noise: new SeededNoise(1) });
    const { signal } = await delegate.ask(0.1);
    expect([signal.simulated, signal.guarantee]).toEqual([true, null]);
    expect(delegate.readings(0.1).perUnit).toBe(Infinity);
    expect(await delegate.statement()).toMatchObject({ spent: "0", charges: 1 });
    delegate.close();
    expect(await codeOf(opened())).toBe("conflict"); // simulated and protected signals never share a database
  });
});

describe("opening", () => {
  test("terms cannot change after the first opening", async () => {
    (await opened()).close();
    for (const other of [
      { budget: { epsilon: 30, per: "month" } },
      { refresh: "day" },
      { perPeriod: 2 },
      { limits: { budget: { epsilon: 9, per: "day" } } },
    ] as const) {
      expect(await codeOf(opened(other))).toBe("conflict");
    }
    (await opened()).close();
  });

  test("invalid options throw before the database is touched", async () => {
    for (const odd of [
      { refresh: "lifetime" },
      { refresh: "week" as "day" },
      { perPeriod: 0 },
      { budget: { epsilon: 0, per: "month" } },
      { limits: { epsilon: 41 } },
      { server: "nonsense" },
    ] as const) {
      expect(await codeOf(opened(odd))).toBe("invalid-parameter");
    }
    expect((await indexedDB.databases()).map(({ name }) => name)).not.toContain(place);
  });

  test("an invalid catalogue throws", async () => {
    for (const odd of [
      {},
      { ...CATALOGUE, more: 1 },
      { ...CATALOGUE, genres: [[0]] },
      { ...CATALOGUE, ids: [1, 1, 2, 3] },
      { ...CATALOGUE, genres: [[0, 0], [1], [2], [0]] },
      { ...CATALOGUE, genres: [[3], [1], [2], [0]] },
    ]) {
      server.catalogue = odd;
      expect(await codeOf(opened())).toBe("invalid-message");
    }
  });
});

describe("recommendations", () => {
  test("the request has 16 + 4d bytes, and the device picks at the true features", async () => {
    const exchanges: Exchange[] = [];
    const delegate = await opened({ onExchange: (exchange) => exchanges.push(exchange) });
    delegate.rate(5, 5);
    const result = await delegate.recommend({ k: 4, t: 2, eta: 0.1 });
    expect(result.slate).toEqual([1, 2, 5, 9]);
    expect(result.picked).toEqual([5, 9]);
    expect(result.estimates[2]).toBeCloseTo(2.3, 5);
    const { signal, k, t } = Request.fromBytes(result.sent);
    expect([signal.toBytes(), k, t]).toEqual([result.asked.signal.toBytes(), 4, 2]);
    expect(result.sent).toHaveLength(16 + 4 * 6);
    expect(exchanges.map(({ method, path, status }) => [method, path, status])).toEqual([
      ["GET", "/v1/catalogue", 200],
      ["POST", "/v1/multi-selection", 200],
    ]);
    expect(exchanges[1]).toMatchObject({ sent: result.sent, received: result.received, contentType: "application/vnd.tacit" });
  });

  test("only the message leaves: no cookie, no referrer, no cache, no redirect", async () => {
    const delegate = await opened();
    await delegate.recommend({ eta: 0.1 });
    server.offers = [offerOf({}, now)];
    await delegate.shown((await delegate.choose((await delegate.offer())!))!);
    const [offers, impressions] = ["/v1/private-selection/offers", "/v1/private-selection/impressions"];
    expect(server.seen.map(({ path }) => path.replace(/part=\d/, "part"))).toEqual([
      ...["/v1/catalogue", "/v1/multi-selection"],
      ...["/v1/private-selection/scorer?part", "/v1/private-selection/scorer?part", offers, impressions],
    ]);
    for (const { init, method, body } of server.seen) {
      const { headers, signal, body: _, ...said } = init;
      expect(said).toEqual({ method, credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store", redirect: "error" });
      expect(Object.keys(headers!).sort()).toEqual(method === "GET" ? ["Accept"] : ["Accept", "Content-Type"]);
      expect(signal).toBeInstanceOf(AbortSignal); // requests time out
      expect(body === null).toBe(method === "GET");
    }
    expect(server.seen[1]!.body).toHaveLength(16 + 4 * 6);
  });

  test("invalid k and t throw before any noise is drawn", async () => {
    const delegate = await opened();
    for (const odd of [{ k: 0 }, { k: 256 }, { k: 2, t: 3 }, { k: 1.5 }])
      expect(await codeOf(delegate.recommend({ ...odd, eta: 0.1 }))).toBe("invalid-message");
    expect((await delegate.statement()).charges).toBe(0);
  });

  test("an error has the server's code, and the next call sends the same bytes again", async () => {
    const delegate = await opened();
    server.failing = "network";
    expect(await codeOf(delegate.recommend({ eta: 0.1 }))).toBe("unreachable");
    server.failing = 429;
    expect(await codeOf(delegate.recommend({ eta: 0.1 }))).toBe("too-many-requests");
    server.failing = null;
    await delegate.recommend({ eta: 0.1 });
    const sent = server.seen.filter(({ path }) => path === "/v1/multi-selection").map(({ body }) => String(body));
    expect(new Set(sent).size).toBe(1);
    expect(sent).toHaveLength(3);
  });

  test("a reply for another k throws", async () => {
    const delegate = await opened();
    for (const k of [2, 4]) {
      server.answeredK = k;
      expect(await codeOf(delegate.recommend({ k: 3, eta: 0.1 }))).toBe("invalid-message");
    }
    server.answeredK = 3;
    expect((await delegate.recommend({ k: 3, eta: 0.1 })).slate).toHaveLength(3);
  });

  test("a slate shorter than k has no repeats, and one with an unknown item throws", async () => {
    const delegate = await opened();
    server.slate = [9, 1];
    expect((await delegate.recommend({ k: 5, t: 5, eta: 0.1 })).slate).toEqual([9, 1]);
    delegate.close();
    server.catalogue = { ...CATALOGUE, ids: [1, 2, 5, 8] };
    expect(await codeOf((await opened()).recommend({ eta: 0.1 }))).toBe("invalid-message");
  });
});

describe("the profile", () => {
  test("lives in memory only and cannot be serialised", async () => {
    const delegate = await opened();
    delegate.rate(1, 5);
    delegate.rate(2, 3);
    expect([...delegate.ratings()]).toEqual([
      [1, 5],
      [2, 3],
    ]);
    expect(Array.from(delegate.features())).toEqual([1, 0, 0, 0.5, 0.5, 0]);
    delegate.forget(2);
    expect(delegate.ratings().size).toBe(1);
    expect(() => JSON.stringify(delegate)).toThrow(TacitError);
    expect(Object.keys(structuredClone(delegate))).toEqual(["catalogue"]); // only public data can be cloned
    delegate.close();
    expect(delegate.ratings().size).toBe(0);
    const again = await opened();
    expect(again.ratings().size).toBe(0);
  });

  test("errors show neither item nor rating", async () => {
    const delegate = await opened();
    for (const [item, value] of [
      [12345, 5],
      [1, 98765432],
      [1, NaN],
      [1, "54321" as unknown as number],
    ] as const) {
      try {
        delegate.rate(item, value);
        expect.unreachable();
      } catch (problem) {
        expect(problem).toBeInstanceOf(TacitError);
        expect(String(problem)).not.toMatch(/12345|98765432|54321|NaN/);
      }
    }
  });
});

describe("the catalogue", () => {
  test("is searched by parts of titles, ignoring case and accents", async () => {
    const { catalogue } = await opened();
    expect(catalogue.find("heat", 5)).toEqual([1, 9]);
    expect(catalogue.find("HEAT", 1)).toEqual([1]);
    expect(catalogue.find("leon", 5)).toEqual([5]);
    expect(catalogue.find("the", 5)).toEqual([2]);
    expect([catalogue.find("", 5), catalogue.find("zzz", 5)]).toEqual([[], []]);
    expect([catalogue.title(5), catalogue.title(77)]).toEqual(["Léon (1994)", "77"]);
    expect(catalogue.dimension).toBe(6);
  });

  test("ids may be texts; the number on the wire is then the index", async () => {
    server.catalogue = { ...CATALOGUE, ids: ["a", "b", "c", "d"], titles: null };
    server.slate = [1, 2];
    const delegate = await opened();
    delegate.rate("c", 5);
    expect((await delegate.recommend({ k: 2, eta: 0.1 })).slate).toEqual(["b", "c"]);
    expect(delegate.catalogue.find("b", 3)).toEqual(["b"]);
  });
});

describe("revocations", () => {
  const NOW = Date.UTC(2026, 10, 17, 12);

  /** Bytes that make all noise of a signal 0 (a remainder of 0, tails, a sign) and make rr take the privately best. */
  const none = (): Noise => {
    let sign = true;
    return { caveat: null, draw: (count) => (count === 1 ? Uint8Array.of((sign = !sign) ? 0 : 0x80) : new Uint8Array(count)) };
  };

  let places = 0;
  let [first, other] = [] as unknown as [Delegate, Delegate];
  let server = new FakeServer();

  /** Two tabs on one database, with the same ratings and with consent. */
  beforeEach(async () => {
    server = new FakeServer();
    const place = `revocations ${(places += 1)}`;
    const options = { server: "http://server.test", place, budget: { epsilon: 20, per: "month" }, clock: () => NOW, noise: none() } as const;
    [first, other] = [await Delegate.open({ ...options, fetch: server.fetch }), await Delegate.open({ ...options, fetch: server.fetch })];
    for (const tab of [first, other]) {
      tab.rate(5, 5);
      await tab.offer(); // loads the scorer
    }
    await first.consent();
  });

  const stepsOf = async (tab: Delegate): Promise<number[]> => Array.from((await tab.ask("1/10")).signal.steps);
  const chosenBy = async (tab: Delegate): Promise<string | undefined> => (await tab.choose(offerFromJSON(offerOf({}, NOW))))?.items[0];

  test("without a revocation, signals and choices follow the ratings", async () => {
    expect((await stepsOf(other))[2]).toBe(2 ** 20);
    expect(await chosenBy(other)).toBe("5");
  });

  test("another tab's signal is that of an empty profile", async () => {
    await first.revoke();
    expect(await stepsOf(other)).toEqual([0, 0, 0, 0, 0, 0]);
    expect([first.ratings().size, other.ratings().size]).toEqual([0, 0]);
  });

  test("also if the revocation comes while the other tab asks: the moment of the charge counts", async () => {
    const [, steps] = await Promise.all([first.revoke(), stepsOf(other)]);
    const spent = await other.statement();
    expect(spent.charges).toBe(1);
    expect(steps).toEqual([0, 0, 0, 0, 0, 0]); // the revocation was written first
  });

  test("also if it comes between the tab's check and its charge: the charge's transaction checks again", async () => {
    let revoked: Promise<void> | null = null;
    const place = `between ${places}`;
    const options = { server: "http://server.test", place, budget: { epsilon: 20, per: "month" }, fetch: server.fetch, noise: none() } as const;
    const elsewhere = await Delegate.open({ ...options, clock: () => NOW });
    let asking = false;
    const clock = (): number => {
      if (asking) revoked ??= elsewhere.revoke(); // the slot reads the clock after the first check
      return NOW;
    };
    const tab = await Delegate.open({ ...options, clock });
    tab.rate(5, 5);
    asking = true;
    expect(await stepsOf(tab)).toEqual([0, 0, 0, 0, 0, 0]);
    await revoked;
    expect(tab.ratings().size).toBe(0);
  });

  test("also for a charge of the other tab that crashed before it drew", async () => {
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

  test("the pick with a stored signal does not use revoked ratings", async () => {
    await stepsOf(other);
    await first.revoke();
    const { picked, asked } = await other.recommend({ k: 4, t: 1, eta: "1/10" });
    expect([asked.from, picked]).toEqual(["memo", [9]]); // with an empty profile the last item has the largest estimate; the user liked item 5
  });

  test("granting consent again does not restore old ratings", async () => {
    await first.revoke();
    await first.consent();
    expect(await chosenBy(other)).toBe("9");
    expect(other.ratings().size).toBe(0);
  });

  test.each(["consented", "offer"] as const)("`%s` also wipes the profile", async (call) => {
    await first.revoke();
    await other[call]();
    expect(other.ratings().size).toBe(0);
  });

  test("later ratings stay, in the tab that revoked and in the other", async () => {
    await first.revoke();
    expect(await other.consented()).toBe(false);
    for (const tab of [first, other]) {
      tab.rate(1, 5);
      await tab.consented();
      expect([...tab.ratings()]).toEqual([[1, 5]]);
    }
    expect((await stepsOf(other))[0]).toBe(2 ** 20);
  });

  test("a profile that was wiped and rated again is newer than a revocation this tab has not seen", async () => {
    await first.revoke();
    other.wipe();
    other.rate(1, 5);
    expect((await stepsOf(other))[0]).toBe(2 ** 20);
  });

  test("a second revocation wipes the ratings since the first", async () => {
    await first.revoke();
    await other.consented();
    other.rate(1, 5);
    await other.consented();
    await first.revoke();
    expect(await stepsOf(other)).toEqual([0, 0, 0, 0, 0, 0]);
  });
});

describe("ticks", () => {
  const NOW = Date.UTC(2026, 10, 17, 12);
  const EARLY = 5; // milliseconds: timers of some platforms fire a little early

  test("a tick is a full tenth of a second after the call, however long the work takes", async () => {
    for (const work of [0, 30, 110]) {
      const started = performance.now();
      await new Promise((resolve) => setTimeout(resolve, work));
      await nextTick(started);
      expect(performance.now() - started).toBeGreaterThan(100 * Math.ceil((work + 1) / 100) - EARLY);
    }
  });

  test("signals leave and choices return at a tick, even if nothing private was read", async () => {
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
});
