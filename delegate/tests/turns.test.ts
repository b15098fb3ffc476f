// Tabs that ask at once take turns, so that the time a draw takes has no say in which one is kept.
import "fake-indexeddb/auto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Delegate } from "../src/delegate.js";
import { systemNoise, type Noise } from "../src/noise.js";
import { FakeServer } from "./fake_server.js";

const NOW = Date.UTC(2026, 10, 17, 12);
const original = Object.getOwnPropertyDescriptor(globalThis, "navigator");
const provide = (navigator: object | undefined): void =>
  void Object.defineProperty(globalThis, "navigator", { configurable: true, value: navigator });

/** Exclusive locks by name, as a browser has them. */
class FakeLocks {
  readonly asked: string[] = [];
  held = 0;
  #last = new Map<string, Promise<unknown>>();

  request<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.asked.push(name);
    const mine = (this.#last.get(name) ?? Promise.resolve()).then(async () => {
      this.held += 1;
      return work().finally(() => (this.held -= 1));
    });
    this.#last.set(name, mine.catch(() => undefined));
    return mine;
  }
}

let locks = new FakeLocks();
let places = 0;
let place = "";

beforeEach(() => {
  [locks, place] = [new FakeLocks(), `turns ${(places += 1)}`];
});
afterEach(() => {
  if (original === undefined) Reflect.deleteProperty(globalThis, "navigator");
  else Object.defineProperty(globalThis, "navigator", original);
});

/** Two tabs, and how many bytes of noise each has drawn; `onDraw` is called at each draw. */
async function tabs(onDraw: () => void = () => undefined): Promise<{ delegate: Delegate; drawn: () => number }[]> {
  const open = async () => {
    let count = 0;
    const noise: Noise = { caveat: null, draw: (size) => (onDraw(), (count += size), systemNoise.draw(size)) };
    const budget = { epsilon: 20, per: "month" } as const;
    const options = { server: "http://server.test", place, budget, noise, clock: () => NOW, fetch: new FakeServer().fetch };
    return { delegate: await Delegate.open(options), drawn: () => count };
  };
  return [await open(), await open()];
}

test("of two tabs that ask at once one draws, and the other finds what it kept", async () => {
  provide({ locks });
  const both = await tabs(() => expect(locks.held).toBe(1));
  const asked = await Promise.all(both.map(({ delegate }) => delegate.ask(0.1)));
  expect(asked.map(({ from }) => from).sort()).toEqual(["fresh", "memo"]);
  expect(new Set(asked.map(({ signal }) => String(signal.toBytes()))).size).toBe(1);
  expect(both.map(({ drawn }) => drawn() > 0).sort()).toEqual([false, true]);
  expect((await both[0]!.delegate.statement()).charges).toBe(1);
  expect(locks.held).toBe(0);
});

test("a turn is of one place, subject and signal: other signals do not wait for it", async () => {
  provide({ locks });
  const [tab] = await tabs();
  await Promise.all([tab!.delegate.ask(0.1), tab!.delegate.ask(0.2)]);
  expect(new Set(locks.asked).size).toBe(2);
  for (const name of locks.asked) expect(name).toMatch(new RegExp(`^tacit ${place} me month 1 2026-11 [0-9a-f]{32} 1/(5|10)$`));
});

test("a turn that fails is over, and a memo needs none", async () => {
  provide({ locks });
  let broken = true;
  const [tab] = await tabs(() => {
    if (broken) throw new Error("no noise");
  });
  await expect(tab!.delegate.ask(0.1)).rejects.toThrow();
  broken = false;
  expect((await tab!.delegate.ask(0.1)).from).toBe("fresh");
  expect([(await tab!.delegate.ask(0.1)).from, locks.asked.length]).toEqual(["memo", 2]);
});

test.each([undefined, {}])("without locks both draw, which is why there are turns, and the first that is kept is sent", async (navigator) => {
  provide(navigator);
  const both = await tabs();
  const asked = await Promise.all(both.map(({ delegate }) => delegate.ask(0.1)));
  expect(new Set(asked.map(({ signal }) => String(signal.toBytes()))).size).toBe(1);
  expect(both.every(({ drawn }) => drawn() > 0)).toBe(true);
});
