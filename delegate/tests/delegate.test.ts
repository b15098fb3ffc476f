// Multi-selection by a delegate, against a server in memory: one signal for each slot, whatever happens meanwhile.
import "fake-indexeddb/auto";
import { beforeEach, describe, expect, test } from "vitest";
import type { Exchange } from "../src/client.js";
import { Delegate } from "../src/delegate.js";
import { TacitError } from "../src/errors.js";
import { systemNoise, type Noise } from "../src/noise.js";
import type { DelegateOptions } from "../src/options.js";
import { Request } from "../src/request.js";
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

/** Noise that breaks down after so many draws. */
const failingAfter = (draws: number): Noise => ({
  caveat: null,
  draw: (count) => {
    if ((draws -= 1) < 0) throw new TacitError("system-noise-unavailable", "no more");
    return systemNoise.draw(count);
  },
});

describe("signals", () => {
  test("the first is fresh, then it is the same bytes in this slot, also for another profile and after a restart", async () => {
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

  test("two open delegates that ask at once draw one signal and pay once", async () => {
    const [first, second] = await Promise.all([opened(), opened()]);
    first.rate(1, 5);
    second.rate(5, 5);
    const asked = await Promise.all([first.ask(0.1), second.ask(0.1), first.ask(0.1), second.ask(0.1)]);
    expect(new Set(asked.map(({ signal }) => String(signal.toBytes()))).size).toBe(1);
    expect(asked.filter(({ from }) => from === "fresh")).toHaveLength(1);
    expect((await first.statement()).charges).toBe(1);
  });

  test("a crash between charge and memo loses nothing but the draw: it is drawn again for the same charge", async () => {
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

  test("a crash after the last of the budget was charged is mended too", async () => {
    const crashed = await opened({ noise: failingAfter(0), budget: { epsilon: 10, per: "month" } });
    expect(await codeOf(crashed.ask(0.1))).toBe("system-noise-unavailable");
    crashed.close();
    const again = await opened({ budget: { epsilon: 10, per: "month" } });
    expect((await again.ask(0.1)).from).toBe("fresh");
    expect((await again.statement()).left).toBe("0");
  });

  test("where the budget is spent, it is an older signal with this eta, else one that tells nothing", async () => {
    const options = { budget: { epsilon: 20, per: "month" }, refresh: "day" } as const;
    const delegate = await opened(options);
    const first = await delegate.ask(0.1);
    now += 86_400_000;
    await delegate.ask(0.1);
    now += 86_400_000;
    const older = await delegate.ask(0.1);
    expect(older.from).toBe("older");
    expect(older.signal.toBytes()).not.toEqual(first.signal.toBytes()); // the newest of them
    const nothing = await delegate.ask(0.2);
    expect(nothing.from).toBe("nothing");
    expect(nothing.signal.empty).toBe(true);
    now = DECEMBER;
    expect((await delegate.ask(0.2)).from).toBe("fresh"); // the window was renewed
  });

  test("signals with two etas are two signals, and both are charged", async () => {
    const delegate = await opened();
    await delegate.ask(0.1);
    await delegate.ask(0.2);
    expect((await delegate.statement()).spent).toBe("15");
    expect((await delegate.statement()).entries.map(({ epsilon }) => epsilon)).toEqual(["10", "5"]);
  });

  test("an eta that never fits is refused before anything is charged", async () => {
    const delegate = await opened();
    expect(await codeOf(delegate.ask(0.01))).toBe("invalid-parameter");
    expect((await delegate.statement()).charges).toBe(0);
  });

  test("other genres make another signal, with a charge of its own", async () => {
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

  test("seeded noise makes signals that say so, and costs no epsilon", async () => {
    const delegate = await opened({ noise: new SeededNoise(1) });
    const { signal } = await delegate.ask(0.1);
    expect([signal.simulated, signal.guarantee]).toEqual([true, null]);
    expect(delegate.readings(0.1).perUnit).toBe(Infinity);
    expect(await delegate.statement()).toMatchObject({ spent: "0", charges: 1 });
    delegate.close();
    expect(await codeOf(opened())).toBe("conflict"); // what was drawn so is never mixed with what protects
  });
});

describe("opening", () => {
  test("what was agreed stays agreed", async () => {
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

  test("odd options are refused before the database is touched", async () => {
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

  test("a catalogue that is none is refused", async () => {
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
  test("the request leaves as 16 + 4d bytes, and the pick is made here, at the true features", async () => {
    const exchanges: Exchange[] = [];
    const delegate = await opened({ onExchange: (exchange) => exchanges.push(exchange) });
    delegate.rate(5, 5);
    const found = await delegate.recommend({ k: 4, t: 2, eta: 0.1 });
    expect(found.slate).toEqual([1, 2, 5, 9]);
    expect(found.picked).toEqual([5, 9]);
    expect(found.estimates[2]).toBeCloseTo(2.3, 5);
    const { signal, k, t } = Request.fromBytes(found.sent);
    expect([signal.toBytes(), k, t]).toEqual([found.asked.signal.toBytes(), 4, 2]);
    expect(found.sent).toHaveLength(16 + 4 * 6);
    expect(exchanges.map(({ method, path, status }) => [method, path, status])).toEqual([
      ["GET", "/v1/catalogue", 200],
      ["POST", "/v1/multi-selection", 200],
    ]);
    expect(exchanges[1]).toMatchObject({ sent: found.sent, received: found.received, contentType: "application/vnd.tacit" });
  });

  test("nothing but the message leaves: no cookie, no referrer, no cache, no redirect", async () => {
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
      expect(signal).toBeInstanceOf(AbortSignal); // whoever does not answer is not waited for
      expect(body === null).toBe(method === "GET");
    }
    expect(server.seen[1]!.body).toHaveLength(16 + 4 * 6);
  });

  test("odd k and t are refused before any noise", async () => {
    const delegate = await opened();
    for (const odd of [{ k: 0 }, { k: 256 }, { k: 2, t: 3 }, { k: 1.5 }])
      expect(await codeOf(delegate.recommend({ ...odd, eta: 0.1 }))).toBe("invalid-message");
    expect((await delegate.statement()).charges).toBe(0);
  });

  test("a server that does not answer, or refuses, is told by its code, and the same bytes are sent again", async () => {
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

  test("a reply for another k is refused, whatever it has", async () => {
    const delegate = await opened();
    for (const k of [2, 4]) {
      server.answeredK = k;
      expect(await codeOf(delegate.recommend({ k: 3, eta: 0.1 }))).toBe("invalid-message");
    }
    server.answeredK = 3;
    expect((await delegate.recommend({ k: 3, eta: 0.1 })).slate).toHaveLength(3);
  });

  test("a slate shorter than k has no repeats, one with a stranger is refused", async () => {
    const delegate = await opened();
    server.slate = [9, 1];
    expect((await delegate.recommend({ k: 5, t: 5, eta: 0.1 })).slate).toEqual([9, 1]);
    delegate.close();
    server.catalogue = { ...CATALOGUE, ids: [1, 2, 5, 8] };
    expect(await codeOf((await opened()).recommend({ eta: 0.1 }))).toBe("invalid-message");
  });
});

describe("the profile", () => {
  test("lives in memory only, and has no way out", async () => {
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
    expect(Object.keys(structuredClone(delegate))).toEqual(["catalogue"]); // what can be copied is public
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
  test("is searched by parts of titles, without case and accents", async () => {
    const { catalogue } = await opened();
    expect(catalogue.find("heat", 5)).toEqual([1, 9]);
    expect(catalogue.find("HEAT", 1)).toEqual([1]);
    expect(catalogue.find("leon", 5)).toEqual([5]);
    expect(catalogue.find("the", 5)).toEqual([2]);
    expect([catalogue.find("", 5), catalogue.find("zzz", 5)]).toEqual([[], []]);
    expect([catalogue.title(5), catalogue.title(77)]).toEqual(["Léon (1994)", "77"]);
    expect(catalogue.dimension).toBe(6);
  });

  test("ids may be texts: the number on the wire is then the place", async () => {
    server.catalogue = { ...CATALOGUE, ids: ["a", "b", "c", "d"], titles: null };
    server.slate = [1, 2];
    const delegate = await opened();
    delegate.rate("c", 5);
    expect((await delegate.recommend({ k: 2, eta: 0.1 })).slate).toEqual(["b", "c"]);
    expect(delegate.catalogue.find("b", 3)).toEqual(["b"]);
  });
});
