// Multi-selection on the device: shared vectors, the law of a signal, the order of steps, tabs that take turns, readings.
import "fake-indexeddb/auto";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import vectors from "../../vectors/multi-selection.json";
import { fraction, nearestEven, type Fraction } from "../src/arithmetic.js";
import { linearEstimates } from "../src/catalogue.js";
import { Delegate } from "../src/device.js";
import { TacitError } from "../src/errors.js";
import { Database, Ledger } from "../src/ledger.js";
import { slotOf, unitsUp, type Period } from "../src/limits.js";
import { discreteLaplace } from "../src/mechanisms.js";
import { exactEta, GRID_BITS, MOST_STEPS, Reply, Request, Signal } from "../src/messages/multi_selection.js";
import { ask, drawSignal, linearMapOf, pick, readingsOf, type SignalContext } from "../src/multi_selection.js";
import { systemNoise, type Noise } from "../src/noise.js";
import { checkFeatures, featuresOf, versionOf } from "../src/profile.js";
import { FakeServer } from "./fake_server.js";
import { replyFromJSON, replyToBytes, replyToJSON, requestFromJSON, requestToJSON, signalFromJSON, signalToJSON } from "./forms.js";
import { bytesOf, GivenNoise, hexadecimalOf, SeededNoise, seeded } from "./given_noise.js";
import { pValue } from "./laws.js";
import draws from "./signal_draws.json";

describe("vectors/multi-selection.json, shared with the device in Python", () => {
  test("there is a test for every family", () => {
    const run = ["features", "requests", "signals", "replies", "refused_requests", "refused_replies", "picks", "slots", "etas", "readings"];
    const notCases = ["about", "genres"];
    expect(Object.keys(vectors).sort()).toEqual([...run, ...notCases].sort());
  });

  test.each(vectors.features)("features: $name", ({ ratings, features }) => {
    const genres = ratings.map((rating) => rating.genres.map((genre) => vectors.genres.indexOf(genre)));
    const space = { names: vectors.genres, likedFrom: 4, genres };
    const computed = featuresOf(space, new Map(ratings.map((rating, place) => [place, rating.value])));
    expect(Array.from(checkFeatures(computed, 2 * vectors.genres.length))).toEqual(features);
  });

  test.each(vectors.requests)("requests: $name", ({ json, bytes, guarantee }) => {
    expect(hexadecimalOf(requestFromJSON(json).toBytes())).toBe(bytes);
    const again = Request.fromBytes(bytesOf(bytes));
    expect(requestToJSON(again)).toEqual(json);
    expect(again.signal.guarantee).toEqual(guarantee);
  });

  test.each(vectors.signals)("signals: $name", ({ json, bytes }) => {
    expect(hexadecimalOf(signalFromJSON(json).toBytes())).toBe(bytes);
    expect(signalToJSON(Signal.fromBytes(bytesOf(bytes)))).toEqual(json);
  });

  test.each(vectors.replies)("replies: $name", ({ json, bytes }) => {
    expect(hexadecimalOf(replyToBytes(replyFromJSON(json)))).toBe(bytes);
    expect(replyToJSON(Reply.fromBytes(bytesOf(bytes)))).toEqual(json);
  });

  test.each(vectors.refused_requests)("refused requests: $name", ({ bytes }) => {
    expect(() => Request.fromBytes(bytesOf(bytes))).toThrow(TacitError);
  });

  test.each(vectors.refused_replies)("refused replies: $name", ({ bytes }) => {
    expect(() => Reply.fromBytes(bytesOf(bytes))).toThrow(TacitError);
  });

  test.each(vectors.picks)("picks: $name", ({ reply, features, t, estimates, picked }) => {
    const result = pick(Reply.fromBytes(bytesOf(reply)), Float64Array.from(features), t);
    expect(result.picked.map(String)).toEqual(picked);
    estimates?.forEach((estimate, place) => expect(result.estimates[place]).toBeCloseTo(estimate, 6));
  });

  test.each(vectors.readings)("readings: $name", ({ eta, ratings, others, epsilons }) => {
    const genres = [...ratings.map((rating) => rating.genres), ...others].map((own: string[]) => own.map((genre) => vectors.genres.indexOf(genre)));
    const given = new Map(ratings.map((rating, place) => [place, rating.value]));
    const readings = readingsOf(exactEta(eta), { names: vectors.genres, likedFrom: 4, genres }, given, true);
    expect({ ...readings }).toEqual({
      perUnit: epsilons.per_unit,
      oneRatingAdded: epsilons.added,
      oneRatingRemoved: epsilons.removed,
      oneRatingMoved: epsilons.moved,
      anywhere: epsilons.anywhere,
    });
  });

  test.each(vectors.slots)("slots: $slot", ({ at, refresh, per_period, slot }) => {
    expect(at % 1000).toBe(0); // a browser's clock has milliseconds
    expect(slotOf(at / 1000, refresh as Period, per_period)).toBe(slot);
  });

  test.each(vectors.etas)("etas: $written", ({ written, exact }) => {
    for (const { numerator, denominator } of [exactEta(written), exactEta(Number(written))]) {
      expect([Number(numerator), Number(denominator)]).toEqual(exact);
    }
  });
});

describe("the law of a signal", () => {
  const ALARM = 1e-9; // false alarms: one in a billion for each test, and nothing is retried
  const STEP = 2 ** GRID_BITS;

  test.each(draws.cases)("given bytes: $name", ({ features, eta, noise, steps }) => {
    const given = new GivenNoise(noise);
    expect(Array.from(drawSignal(Float64Array.from(features), exactEta(eta), given).steps)).toEqual(steps);
    expect(given.left).toHaveLength(0);
  });

  type Draw = (features: Float64Array, eta: Fraction, noise: Noise) => ArrayLike<number>;

  const right: Draw = (features, eta, noise) => drawSignal(features, eta, noise).steps;

  /** A reference signal with replaceable parts. Its defaults are correct. */
  const twin =
    ({
      scale = (eta: Fraction): Fraction => fraction(eta.numerator << BigInt(GRID_BITS), eta.denominator),
      onGrid = nearestEven,
      together = false, // one value of noise for all coordinates
    }): Draw =>
    (features, eta, noise) => {
      const first = together ? discreteLaplace(scale(eta), noise) : 0n;
      return Array.from(features, (feature) => Number(BigInt(onGrid(feature * STEP)) + (together ? first : discreteLaplace(scale(eta), noise))));
    };

  const TWINS: Record<string, Draw> = {
    "without the numerator of eta": twin({ scale: (eta) => fraction(1n << BigInt(GRID_BITS), eta.denominator) }),
    "of half the scale": twin({ scale: (eta) => fraction(eta.numerator << BigInt(GRID_BITS - 1), eta.denominator) }),
  };

  const FEATURES = Float64Array.of(0, 1 / 3, 0.5, 1, 2 / 7, 0.25); // some on the grid, some not
  const SIGNALS = 20_000;
  const CELLS = 12; // on each side, each of a third of the scale

  /** The noise of many signals, one row for each signal: the steps minus the features' nearest steps. */
  function noiseOf(draw: Draw, eta: string, seed: number): number[][] {
    const noise = new SeededNoise(seeded(seed), null);
    const origin = Array.from(FEATURES, (feature) => Math.round(feature * STEP)); // no feature lies halfway between two steps
    return Array.from({ length: SIGNALS }, () => Array.from(draw(FEATURES, exactEta(eta), noise), (step, place) => step - origin[place]!));
  }

  /** The p-value of the law. The scale is far above a step, so these draws cannot distinguish discrete from continuous Laplace. */
  function lawPValue(rows: readonly number[][], eta: number): number {
    const counts = new Array<number>(2 * CELLS).fill(0);
    for (const noise of rows.flat()) counts[Math.min(2 * CELLS - 1, Math.max(0, Math.floor((noise + 0.5) / (STEP * eta) / (1 / 3)) + CELLS))]! += 1;
    const half = Array.from({ length: CELLS }, (_, cell) => 0.5 * (Math.exp(-cell / 3) - (cell === CELLS - 1 ? 0 : Math.exp(-(cell + 1) / 3))));
    return pValue(counts, [...half].reverse().concat(half));
  }

  /**
   * The smallest p-value of independence: signs, and sizes above or below the median, agree in half of the pairs of neighbouring
   * coordinates and of neighbouring signals. Each pair in a row is a fair coin of its own.
   */
  function independencePValue(rows: readonly number[][], eta: number): number {
    const median = Math.LN2 * STEP * eta; // of the absolute noise
    const across = rows.flatMap((row) => row.slice(1).map((noise, before) => [row[before]!, noise] as const));
    const along = rows.slice(1).flatMap((row, before) => row.map((noise, coordinate) => [rows[before]![coordinate]!, noise] as const));
    const sides = [(noise: number) => noise < 0, (noise: number) => Math.abs(noise) < median];
    const pValues = [across, along].flatMap((pairs) =>
      sides.map((side) => {
        const alike = pairs.filter(([first, second]) => side(first) === side(second)).length;
        return pValue([alike, pairs.length - alike], [0.5, 0.5]);
      }),
    );
    return Math.min(...pValues);
  }

  describe.each([
    ["3/10", 0.3],
    ["2", 2],
  ] as const)("eta %s", (written, eta) => {
    const rows = noiseOf(right, written, 31);

    test("noise has the stated law, in every coordinate", () => {
      expect(lawPValue(rows, eta)).toBeGreaterThan(ALARM);
      for (const place of FEATURES.keys()) expect(lawPValue(rows.map((row) => [row[place]!]), eta)).toBeGreaterThan(ALARM);
    });

    test("the test rejects a scale that is ten percent off", () => {
      for (const factor of [1.1, 1 / 1.1]) expect(lawPValue(rows, eta * factor)).toBeLessThan(ALARM);
    });

    test("noise is independent between coordinates and between signals", () => {
      expect(independencePValue(rows, eta)).toBeGreaterThan(ALARM);
    });

    test.each(Object.entries(TWINS))("a twin is caught: %s", (_, broken) => {
      expect(lawPValue(noiseOf(broken, written, 32), eta)).toBeLessThan(ALARM);
    });

    test("a twin is caught: one value of noise for all coordinates", () => {
      expect(independencePValue(noiseOf(twin({ together: true }), written, 33), eta)).toBeLessThan(ALARM);
    });
  });

  test("given bytes catch a twin that rounds differently, and the correct twin equals the delegate", () => {
    const stepsOf = (draw: Draw): number[][] =>
      draws.cases
        .filter(({ name }) => !name.includes("beyond"))
        .map(({ features, eta, noise }) => Array.from(draw(Float64Array.from(features), exactEta(eta), new GivenNoise(noise))));
    const wanted = draws.cases.filter(({ name }) => !name.includes("beyond")).map(({ steps }) => steps);
    expect(stepsOf(twin({}))).toEqual(wanted);
    for (const onGrid of [Math.round, Math.floor, Math.ceil, (step: number) => Math.ceil(step) + 3]) {
      expect(stepsOf(twin({ onGrid }))).not.toEqual(wanted);
    }
  });

  test("a signal lies around the features", () => {
    const features = Float64Array.of(0, 1, 0.25, 1 / 3);
    const { values, steps } = drawSignal(features, exactEta("0.001"), systemNoise);
    features.forEach((feature, place) => expect(Math.abs(values[place]! - feature)).toBeLessThan(0.06)); // 60 scales, which never happens
    expect(new Set(steps).size).toBe(4);
  });
});

describe("steps are cut to what a message holds", () => {
  const ETA = exactEta(10); // the largest: 2^30 steps are 102.4 of its scales
  const UNDER = "000000"; // 0 of 10 * 2^20: three bytes hold it

  /** The bytes of a draw of this many scales: a remainder of 0 that is kept, heads each time, then tails, then the sign. */
  const farAway = (scales: number, negative: boolean): string =>
    UNDER + UNDER + "0040".repeat(scales) + "80" + (negative ? "80" : "00");

  test.each([
    { scales: 102, negative: false, steps: 102 * 10 * 2 ** 20 + 2 ** 19 },
    { scales: 102, negative: true, steps: -102 * 10 * 2 ** 20 + 2 ** 19 },
    { scales: 103, negative: false, steps: MOST_STEPS },
    { scales: 103, negative: true, steps: -MOST_STEPS },
    { scales: 500, negative: false, steps: MOST_STEPS },
    { scales: 500, negative: true, steps: -MOST_STEPS },
  ])("noise of $scales scales, negative $negative", ({ scales, negative, steps }) => {
    const noise = new GivenNoise(farAway(scales, negative));
    const signal = drawSignal(Float64Array.of(0.5), ETA, noise);
    expect(Array.from(signal.steps)).toEqual([steps]);
    expect(noise.left).toHaveLength(0);
    expect(Signal.fromBytes(signal.toBytes())).toEqual(signal);
  });
});

describe("asking", () => {
  const ETA = exactEta(0.1);
  let places = 0;
  let steps: string[] = [];
  let context: SignalContext;

  beforeEach(async () => {
    steps = [];
    const ledger = new Ledger(await Database.open(`asking ${(places += 1)}`), () => Date.UTC(2026, 10, 17));
    const budget = { epsilon: 15, per: "month" } as const;
    await ledger.agree("me", { budget, protects: "features", caveat: null });
    const noted = new Proxy(ledger, {
      get(target, name) {
        const member = Reflect.get(target, name) as unknown;
        if (typeof member !== "function" || name === "clock") return member;
        return (...given: unknown[]) => {
          steps.push(String(name));
          return (member as (...given: unknown[]) => unknown).apply(target, given);
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
    context = { ledger: noted, subject: "me", budget, refresh: "month", perPeriod: 1, noise, version: "v", dimension: 4, features };
  });

  test("the steps are: look up the memo, charge, read the features, draw, keep", async () => {
    await ask(ETA, context);
    expect(steps).toEqual(["stored", "charge", "features", "noise", "keep"]);
  });

  test("a memo is returned without reading features or drawing noise", async () => {
    await ask(ETA, context);
    steps = [];
    expect((await ask(ETA, context)).from).toBe("memo");
    expect(steps).toEqual(["stored"]);
  });

  test("with the budget spent, features are not read", async () => {
    await ask(ETA, context);
    steps = [];
    expect((await ask(exactEta(0.15), context)).from).toBe("nothing");
    expect(steps).toEqual(["stored", "charge", "newest"]);
  });

  test("features outside the domain throw, and nothing is charged", async () => {
    for (const odd of [Float64Array.of(2, 0, 0, 1), Float64Array.of(NaN, 0, 0, 1), Float64Array.of(0.5, 0, 0, 1), Float64Array.of(1, 0)]) {
      const problem = await ask(ETA, { ...context, features: async () => checkFeatures(odd, 4) }).catch((thrown: unknown) => thrown);
      expect(problem).toBeInstanceOf(TacitError);
      expect((problem as TacitError).code).toBe("invalid-features");
    }
    expect((await context.ledger.statement("me")).charges).toBe(0);
  });
});

describe("tabs that ask at once", () => {
  const NOW = Date.UTC(2026, 10, 17, 12);
  const original = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  const provide = (navigator: object | undefined): void =>
    void Object.defineProperty(globalThis, "navigator", { configurable: true, value: navigator });

  /** Exclusive locks by name, like a browser's. */
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

  /** Two tabs, and the number of noise bytes that each has drawn. Calls `onDraw` at each draw. */
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

  test("one of two tabs draws, and the other returns what the first kept", async () => {
    provide({ locks });
    const both = await tabs(() => expect(locks.held).toBe(1));
    const asked = await Promise.all(both.map(({ delegate }) => delegate.ask(0.1)));
    expect(asked.map(({ from }) => from).sort()).toEqual(["fresh", "memo"]);
    expect(new Set(asked.map(({ signal }) => String(signal.toBytes()))).size).toBe(1);
    expect(both.map(({ drawn }) => drawn() > 0).sort()).toEqual([false, true]);
    expect((await both[0]!.delegate.statement()).charges).toBe(1);
    expect(locks.held).toBe(0);
  });

  test("a lock is for one database, subject and signal: other signals do not wait for it", async () => {
    provide({ locks });
    const [tab] = await tabs();
    await Promise.all([tab!.delegate.ask(0.1), tab!.delegate.ask(0.2)]);
    expect(new Set(locks.asked).size).toBe(2);
    for (const name of locks.asked) expect(name).toMatch(new RegExp(`^tacit ${place} me month 1 2026-11 [0-9a-f]{32} 1/(5|10)$`));
  });

  test("a failed draw releases its lock, and a memo needs none", async () => {
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

  test.each([undefined, {}])("without Web Locks both tabs draw, and both send the signal kept first", async (navigator) => {
    provide(navigator);
    const both = await tabs();
    const asked = await Promise.all(both.map(({ delegate }) => delegate.ask(0.1)));
    expect(new Set(asked.map(({ signal }) => String(signal.toBytes()))).size).toBe(1);
    expect(both.every(({ drawn }) => drawn() > 0)).toBe(true);
  });
});

const SPACE = { names: ["a", "b", "c", "d"], likedFrom: 4, genres: [[0, 1], [0], [2], [1, 2, 3], []] };

test("the digest of a feature space equals the one in the memo keys of Python's device", async () => {
  expect(await versionOf(SPACE)).toBe("a5633f623ebe16c5f8d8553c54ecae67");
  expect(await versionOf({ ...SPACE, likedFrom: 3.5 })).toBe("c6cad563e10a5ddd50a520a624b7146a");
});

test.each([
  ["0.1", [10.0, 15.000076293958955, 12.000076293956226, 27.000076293969872, 40.00007629394531], 10.000076293954407, 10_000_000_000],
  ["0.3", [3.3333333333333335, 5.000025431319652, 4.000025431318742, 9.000025431323293, 13.33335876464844], 3.3333587646514697, 3_333_333_334],
  ["1/7", [7.0, 10.500053405771268, 8.40005340576936, 18.900053405778912, 28.00005340576172], 7.000053405768085, 7_000_000_000],
  ["2", [0.5, 0.7500038146979477, 0.6000038146978113, 1.3500038146984936, 2.0000038146972656], 0.5000038146977204, 500_000_000],
] as const)("readings and price of a signal with eta = %s equal those of Python's device", (eta, all, added, price) => {
  const readings = readingsOf(
    exactEta(eta),
    SPACE,
    new Map([
      [0, 5],
      [2, 2],
      [3, 4],
    ]),
    true,
  );
  expect(Object.values(readings)).toEqual(all);
  const empty = readingsOf(exactEta(eta), SPACE, new Map(), true);
  expect([empty.oneRatingAdded, empty.oneRatingRemoved, empty.oneRatingMoved]).toEqual([added, null, null]);
  expect(unitsUp(readings.perUnit)).toBe(price);
  expect(readingsOf(exactEta(eta), SPACE, new Map(), false).anywhere).toBe(Infinity);
  expect(() => JSON.stringify(readings)).toThrow(TacitError);
});

test("principal components give the least-squares estimate, also if directions are missing", () => {
  const number = fc.double({ min: -2, max: 2, noNaN: true }).map(Math.fround);
  fc.assert(
    fc.property(fc.array(number, { minLength: 15, maxLength: 15 }), fc.array(number, { minLength: 3, maxLength: 3 }), (numbers, at) => {
      // 1 + 2 features and 2 utilities; two directions span the plane, the third is all zeros
      const basis = Array.from({ length: 5 }, (_, row) => [numbers[3 * row]!, numbers[3 * row + 1]!, 0]);
      const [p, q] = [at[0]!, at[1]!];
      const [a, b] = [0, 1].map((column) => basis.slice(0, 3).map((row) => row[column]!));
      const dot = (x: number[], y: number[]): number => x.reduce((sum, value, index) => sum + value * y[index]!, 0);
      const [aa, bb, ab] = [dot(a!, a!), dot(b!, b!), dot(a!, b!)];
      fc.pre(aa * bb - ab * ab > 1e-2);
      const known = [1, p, q];
      const determinant = aa * bb - ab * ab;
      const first = (bb * dot(a!, known) - ab * dot(b!, known)) / determinant;
      const second = (aa * dot(b!, known) - ab * dot(a!, known)) / determinant;
      const expected = basis.slice(3).map((row) => row[0]! * first + row[1]! * second);
      linearEstimates(linearMapOf(basis, 2), [p, q]).forEach((estimate, place) => expect(estimate).toBeCloseTo(expected[place]!, 6));
    }),
  );
});
