// Messages survive a round trip, and anything else throws a TacitError and no other error.
import fc from "fast-check";
import { expect, test } from "vitest";
import vectors from "../../vectors/private-selection.json";
import { fraction } from "../src/arithmetic.js";
import { Catalogue } from "../src/catalogue.js";
import { TacitError } from "../src/errors.js";
import { fromHalf, Reply, Request, Signal, type ModelKind } from "../src/messages/multi_selection.js";
import { offerFromJSON } from "../src/messages/private_selection.js";
import { replyFromJSON, replyToBytes, replyToJSON, requestFromJSON, requestToJSON, toHalf } from "./forms.js";

const steps = fc.array(fc.integer({ min: -(2 ** 30), max: 2 ** 30 }), { minLength: 1, maxLength: 60 });
const eta = fc
  .tuple(fc.integer({ min: 1, max: 1000 }), fc.integer({ min: 100, max: 1000 }))
  .map(([a, b]) => fraction(BigInt(a), BigInt(b)));
const request = fc
  .record({
    steps,
    bits: fc.integer({ min: 0, max: 30 }),
    eta,
    simulated: fc.boolean(),
    t: fc.integer({ min: 1, max: 9 }),
    more: fc.integer({ min: 0, max: 200 }),
  })
  .map(({ steps: own, bits, eta: scale, simulated, t, more }) => new Request(new Signal(own, bits, scale, simulated), t + more, t));
const reply = fc
  .record({
    kind: fc.constantFrom<ModelKind>("none", "linear-map", "linear-map-half", "principal-components", "network"),
    items: fc.uniqueArray(fc.bigInt(0n, (1n << 64n) - 1n), { minLength: 1, maxLength: 6 }),
    spare: fc.integer({ min: 0, max: 3 }),
    dimension: fc.integer({ min: 1, max: 5 }),
    components: fc.integer({ min: 1, max: 4 }),
    numbers: fc.infiniteStream(fc.integer({ min: -64, max: 64 }).map((eighths) => eighths / 8)),
  })
  .map(({ kind, items, spare, dimension, components, numbers }) => {
    const k = items.length + spare;
    const principal = kind === "principal-components";
    const columns = principal ? components : 1 + dimension;
    const rows = kind.startsWith("linear") ? k : principal ? 1 + dimension + k : 0;
    const table = Array.from({ length: rows }, () => Array.from({ length: columns }, () => numbers.next().value as number));
    for (let row = Math.max(0, rows - spare); row < rows; row += 1) table[row] = table[row - 1]!;
    return new Reply(kind, items, k, dimension, principal ? components : 0, table.flat());
  });

const onlyTacitErrors = (read: () => unknown): void => {
  try {
    read();
  } catch (problem) {
    expect(problem).toBeInstanceOf(TacitError);
  }
};

test("requests survive a round trip", () => {
  fc.assert(
    fc.property(request, (sent) => {
      const again = Request.fromBytes(sent.toBytes());
      expect(requestToJSON(again)).toEqual(requestToJSON(sent));
      expect(requestFromJSON(requestToJSON(sent)).toBytes()).toEqual(sent.toBytes());
      expect(Signal.fromBytes(sent.signal.toBytes()).steps).toEqual(sent.signal.steps);
    }),
  );
});

test("replies survive a round trip", () => {
  fc.assert(
    fc.property(reply, (sent) => {
      expect(replyToJSON(Reply.fromBytes(replyToBytes(sent)))).toEqual(replyToJSON(sent));
      expect(replyToBytes(replyFromJSON(replyToJSON(sent)))).toEqual(replyToBytes(sent));
    }),
  );
});

test("a message with one byte changed, added or lost is read or throws a TacitError", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        request.map((sent) => sent.toBytes()),
        reply.map(replyToBytes),
      ),
      fc.nat(),
      fc.nat(255),
      fc.constantFrom("change", "lose", "add"),
      (bytes, at, byte, how) => {
        const place = at % bytes.length;
        const changed =
          how === "lose" ? bytes.filter((_, own) => own !== place) : Uint8Array.from([...bytes, ...(how === "add" ? [byte] : [])]);
        if (how === "change") changed[place] = byte;
        for (const message of [Request, Signal, Reply]) onlyTacitErrors(() => message.fromBytes(changed));
        if (how !== "change") expect(() => Request.fromBytes(changed)).toThrow(TacitError);
      },
    ),
    { numRuns: 500 },
  );
});

test("arbitrary bytes are read or throw a TacitError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      onlyTacitErrors(() => Request.fromBytes(bytes));
      onlyTacitErrors(() => Reply.fromBytes(bytes));
    }),
    { numRuns: 500 },
  );
});

test("arbitrary JSON is not an offer, catalogue or reply, and throws a TacitError", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      for (const read of [offerFromJSON, (json: unknown) => Catalogue.fromJSON(json), replyFromJSON]) {
        expect(() => read(value)).toThrow(TacitError);
      }
    }),
  );
});

test("an offer with one member changed is read or throws a TacitError", () => {
  const plain = vectors.offers[0]!.json;
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.keys(plain), ...Object.keys(plain.policy).map((name) => `policy.${name}`)),
      fc.jsonValue(),
      (path, value) => {
        const changed = structuredClone(plain) as Record<string, any>;
        const [first, second] = path.split(".") as [string, string | undefined];
        if (second === undefined) changed[first] = value;
        else changed[first][second] = value;
        onlyTacitErrors(() => offerFromJSON(changed));
      },
    ),
    { numRuns: 500 },
  );
});

test("an empty signal has no steps and no noise", () => {
  expect(Signal.nothing(3, 0.1).guarantee).toEqual({ epsilon: 0, rounding: 0 });
  expect(() => new Signal([0, 1], 20, fraction(1n, 10n), false, true)).toThrow(TacitError);
  expect(() => new Signal([0, 0], 20, fraction(1n, 10n), true, true)).toThrow(TacitError);
});

test("half precision follows IEEE 754", () => {
  for (let code = 0; code < 1 << 16; code += 1) {
    const value = fromHalf(code);
    if (!Number.isNaN(value)) expect(toHalf(value)).toBe(code);
  }
  expect([65519, 65520, 2 ** -25, 1.00048828125, 1.00146484375].map(toHalf)).toEqual([0x7bff, 0x7c00, 0, 0x3c00, 0x3c02]);
});
