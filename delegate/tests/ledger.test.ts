// The ledger: charges are checked and written at once and never overspend, with several writers, crashes and clocks that go back.
import "fake-indexeddb/auto";
import fc from "fast-check";
import { beforeEach, expect, test, vi } from "vitest";
import { TacitError } from "../src/errors.js";
import { Database, Ledger } from "../src/ledger.js";
import { checkBudget, DAY, formatUnits, unitsUp, type Budget } from "../src/limits.js";

const NOVEMBER = Date.UTC(2026, 10, 17, 12);
const cost = (epsilon: number) => ({ amount: unitsUp(epsilon), unprotected: 0 });

let places = 0;
let place = "";
let now = NOVEMBER;

beforeEach(() => {
  place = `ledger ${(places += 1)}`;
  now = NOVEMBER;
});

async function opened(budget: Budget, subject = "me"): Promise<Ledger> {
  const ledger = new Ledger(await Database.open(place), () => now);
  await ledger.agree(subject, { budget, protects: "one profile", caveat: null });
  return ledger;
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "nothing was refused",
    (problem: TacitError) => problem.code,
  );

test("a charge that exceeds what is left is refused and charges nothing", async () => {
  const ledger = await opened({ epsilon: 1, per: "lifetime" });
  await ledger.charge("me", "a", cost(0.7));
  expect(await codeOf(ledger.charge("me", "b", cost(0.4)))).toBe("budget-exhausted");
  await ledger.charge("me", "c", cost(0.3)); // exactly what is left: 0.7 + 0.3 is 1 in integers
  expect(await ledger.statement("me")).toMatchObject({ spent: "1", left: "0", charges: 2, renews: null });
});

test("the same id is charged once, and another cost for it is a conflict", async () => {
  const ledger = await opened({ epsilon: 1, per: "lifetime" });
  expect(await ledger.charge("me", "a", cost(0.6))).toEqual({ fresh: true, stored: null });
  expect(await ledger.charge("me", "a", cost(0.6))).toEqual({ fresh: false, stored: null });
  expect(await codeOf(ledger.charge("me", "a", cost(0.5)))).toBe("conflict");
  expect((await ledger.statement("me")).spent).toBe("0.6");
});

test("the first content kept for a charge stays, and nothing is kept without a charge", async () => {
  const ledger = await opened({ epsilon: 1, per: "lifetime" });
  expect(await codeOf(ledger.keep("me", "a", Uint8Array.of(1)))).toBe("conflict");
  await ledger.charge("me", "a", cost(0.6));
  expect(await ledger.keep("me", "a", Uint8Array.of(1))).toEqual(Uint8Array.of(1));
  expect(await ledger.keep("me", "a", Uint8Array.of(2))).toEqual(Uint8Array.of(1));
  expect((await ledger.charge("me", "a", cost(0.6))).stored).toEqual(Uint8Array.of(1));
  expect(await ledger.stored("me", "a")).toEqual(Uint8Array.of(1));
});

test("the charge is undone if `ready` throws", async () => {
  const ledger = await opened({ epsilon: 1, per: "lifetime" });
  const refuse = (): void => {
    throw new TacitError("invalid-features", "outside");
  };
  expect(await codeOf(ledger.charge("me", "a", cost(0.6), refuse))).toBe("invalid-features");
  expect((await ledger.statement("me")).charges).toBe(0);
  expect((await ledger.charge("me", "a", cost(0.6))).fresh).toBe(true);
});

test("calendar windows start at midnight and on the first of a month, in UTC", async () => {
  for (const [per, renewal] of [
    ["day", Date.UTC(2026, 10, 18)],
    ["month", Date.UTC(2026, 11, 1)],
  ] as const) {
    place = `windows ${per}`;
    now = NOVEMBER;
    const ledger = await opened({ epsilon: 1, per });
    await ledger.charge("me", "a", cost(1));
    expect((await ledger.statement("me")).renews).toEqual(new Date(renewal));
    now = renewal - 1;
    expect(await codeOf(ledger.charge("me", "b", cost(0.1)))).toBe("budget-exhausted");
    now = renewal;
    expect((await ledger.statement("me")).left).toBe("1");
    await ledger.charge("me", "b", cost(1));
    expect(await ledger.statement("me")).toMatchObject({ spent: "1", charges: 1 });
  }
});

test("a sliding window holds any 24 hours or 31 days, to the millisecond, whatever the calendar says", async () => {
  for (const [per, length] of [
    ["day", DAY],
    ["month", 31 * DAY],
  ] as const) {
    place = `sliding ${per}`;
    now = Date.UTC(2026, 10, 30, 23, 59); // a minute before another day and another month
    const ledger = await opened({ epsilon: 1, per, sliding: true });
    const first = now;
    await ledger.charge("me", "a", cost(0.6));
    now = Date.UTC(2026, 11, 1);
    expect(await codeOf(ledger.charge("me", "b", cost(0.5)))).toBe("budget-exhausted");
    await ledger.charge("me", "c", cost(0.4));
    expect(await ledger.statement("me")).toMatchObject({ spent: "1", left: "0", charges: 2, renews: null });
    now = first + length - 1;
    expect(await codeOf(ledger.charge("me", "d", cost(0.1)))).toBe("budget-exhausted");
    now = first + length; // the first charge is now outside the window
    expect(await ledger.statement("me")).toMatchObject({ spent: "0.4", left: "0.6", charges: 1 });
    await ledger.charge("me", "d", cost(0.6));
    expect(await codeOf(ledger.charge("me", "e", cost(0.1)))).toBe("budget-exhausted");
  }
  for (const odd of [{ per: "lifetime", sliding: true } as const, { per: "day", sliding: 1 as unknown as boolean } as const])
    expect(() => checkBudget({ epsilon: 1, ...odd })).toThrow(TacitError);
  expect(checkBudget({ epsilon: 1, per: "day", sliding: false })).toEqual({ epsilon: 1, per: "day" }); // the form in older databases
});

test("a clock that goes back reopens no window, because the ledger's time never goes back", async () => {
  const ledger = await opened({ epsilon: 1, per: "day" });
  await ledger.charge("me", "a", cost(1));
  now += DAY;
  await ledger.charge("me", "b", cost(1));
  now -= DAY; // yesterday's window is full, and so is today's
  expect(await codeOf(ledger.charge("me", "c", cost(0.1)))).toBe("budget-exhausted");
  now -= 40 * DAY; // a window long ago is empty but closed
  expect(await codeOf(ledger.charge("me", "c", cost(0.1)))).toBe("budget-exhausted");
  expect((await ledger.statement("me")).left).toBe("0");
  const { entries } = await ledger.statement("me");
  expect(entries.map(({ at }) => at.getTime())).toEqual([NOVEMBER + DAY]);
});

test("the ledger's time is shared by all subjects", async () => {
  const ledger = await opened({ epsilon: 1, per: "day" });
  await ledger.agree("other", { budget: { epsilon: 1, per: "day" }, protects: "one profile", caveat: null });
  now += DAY;
  await ledger.charge("other", "a", cost(0.1));
  now -= DAY;
  await ledger.charge("me", "a", cost(1));
  expect((await ledger.statement("me")).entries[0]!.at.getTime()).toBe(NOVEMBER + DAY);
});

test("an impossible date throws before anything is charged", async () => {
  const ledger = await opened({ epsilon: 1, per: "day" });
  for (const odd of [NaN, -1, Infinity, 1e18]) {
    now = odd;
    expect(await codeOf(ledger.charge("me", "a", cost(0.1)))).toBe("ledger-unavailable");
  }
});

test("terms are agreed once, and a unique prefix allows one subject", async () => {
  const ledger = await opened({ epsilon: 1, per: "day" });
  const other = { budget: { epsilon: 2, per: "day" } as const, protects: "one profile", caveat: null };
  expect(await codeOf(ledger.agree("me", other))).toBe("conflict");
  await ledger.agree("me month 1", other, "me ");
  expect(await codeOf(ledger.agree("me day 1", other, "me "))).toBe("conflict");
  await ledger.agree("me month 1", other, "me ");
  expect(await codeOf(ledger.charge("nobody", "a", cost(0.1)))).toBe("unknown-subject");
});

test("a closed database throws ledger-unavailable", async () => {
  const ledger = await opened({ epsilon: 1, per: "day" });
  ledger.database.close();
  expect(await codeOf(ledger.charge("me", "a", cost(0.1)))).toBe("ledger-unavailable");
});

interface Row {
  at: number;
  amount: number;
  id: string;
  total: number;
}

const rowsOf = (ledger: Ledger): Promise<Row[]> =>
  ledger.database.transact("readonly", (stores) => {
    const request = stores("charges").getAll() as IDBRequest<Row[]>;
    return new Promise((resolve) => (request.onsuccess = () => resolve(request.result)));
  });

/** The most spent in one window: in a calendar window, or in any sliding window that ends with a charge. */
function mostSpent(rows: readonly Row[], per: Budget["per"], sliding = false): number {
  if (sliding) {
    const length = per === "day" ? DAY : 31 * DAY;
    const within = (end: number): Row[] => rows.filter(({ at }) => at > end - length && at <= end);
    return Math.max(0, ...rows.map(({ at }) => within(at).reduce((sum, { amount }) => sum + amount, 0)));
  }
  const windows = new Map<string, number>();
  for (const { at, amount } of rows) {
    const window = per === "lifetime" ? "" : new Date(at).toISOString().slice(0, per === "day" ? 10 : 7);
    windows.set(window, (windows.get(window) ?? 0) + amount);
  }
  return Math.max(0, ...windows.values());
}

test("several connections never overspend together, however their charges interleave", async () => {
  const charges = fc.array(
    fc.record({ tab: fc.nat(2), id: fc.nat(30), units: fc.integer({ min: 1, max: 400 }), later: fc.integer({ min: -30, max: 30 }) }),
    { minLength: 5, maxLength: 40 },
  );
  await fc.assert(
    fc.asyncProperty(charges, fc.constantFrom("day", "month", "lifetime", "any day", "any month"), async (requests, window) => {
      const sliding = window.startsWith("any ");
      const per = window.replace("any ", "") as Budget["per"];
      place = `race ${(places += 1)}`;
      now = NOVEMBER;
      const ledgers = await Promise.all([0, 1, 2].map(() => opened({ epsilon: 1e-6, per, ...(sliding && { sliding }) })));
      await Promise.all(
        requests.map(async ({ tab, id, units, later }) => {
          await new Promise((resolve) => setTimeout(resolve, 0));
          now += later * 3_600_000; // the clock jumps forward and back
          await ledgers[tab]!.charge("me", String(id), { amount: units, unprotected: 0 }).catch((problem: TacitError) => {
            expect(["budget-exhausted", "conflict"]).toContain(problem.code);
          });
        }),
      );
      const rows = await rowsOf(ledgers[0]!);
      expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
      expect(mostSpent(rows, per, sliding)).toBeLessThanOrEqual(1000);
      rows.forEach(({ at, amount, total }, row) => {
        const before = rows[row - 1] ?? { at: 0, total: 0 };
        expect(at).toBeGreaterThanOrEqual(before.at);
        expect(total).toBe(before.total + amount);
      });
      ledgers.forEach((ledger) => ledger.database.close());
    }),
    { numRuns: 100 },
  );
});

test("a twin that checks and writes in two transactions overspends, and this test sees it", async () => {
  const ledgers = await Promise.all([0, 1, 2].map(() => opened({ epsilon: 1e-6, per: "day" })));
  await Promise.all(
    ledgers.map(async (ledger, number) => {
      const { left } = await ledger.statement("me");
      if (Number(left) < 6e-7) return;
      await ledger.database.transact("readwrite", async (stores) => {
        stores("charges").add({
          number,
          subject: "me",
          id: String(number),
          at: now,
          amount: 600,
          unprotected: 0,
          total: 600,
          content: null,
        });
      });
    }),
  );
  expect(mostSpent(await rowsOf(ledgers[0]!), "day")).toBeGreaterThan(1000);
});

test("a transaction is strict and complete before its result is returned", async () => {
  const database = await Database.open("database");
  const begin = vi.spyOn(database.db, "transaction");
  await database.transact("readwrite", async (stores) => stores("terms").put({ subject: "me", terms: "{}" }));
  expect(begin.mock.calls[0]?.slice(1)).toEqual(["readwrite", { durability: "strict" }]);
  // a completed transaction gives no store; a pending one would
  const over = begin.mock.results[0]?.value as IDBTransaction;
  expect(() => over.objectStore("terms").get("me")).toThrow();
});

test("amounts are integers of nano-epsilon, and charges are rounded up", () => {
  expect([0.1, 3.3333333333333335, 1e-9, 1e-12, 123456.789].map(unitsUp)).toEqual([1e8, 3333333334, 1, 1, 123456789000000]);
  expect([0, 1, 100_000_000, 10_000_000_000, 3_333_333_334].map(formatUnits)).toEqual(["0", "0.000000001", "0.1", "10", "3.333333334"]);
  for (const odd of [0, -1, NaN, Infinity, 1e-10, 1e7, 0.1234567891]) {
    expect(() => checkBudget({ epsilon: odd, per: "day" })).toThrow(TacitError);
  }
  expect(() => checkBudget({ epsilon: 1, per: "week" as "day" })).toThrow(TacitError);
});
