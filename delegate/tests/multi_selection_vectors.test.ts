// The shared cases of vectors/multi-selection.json, which the device in Python reproduces too.
import { expect, test } from "vitest";
import vectors from "../../vectors/multi-selection.json";
import { TacitError } from "../src/errors.js";
import { exactEta } from "../src/eta.js";
import { checkedFeatures, featuresOf } from "../src/features.js";
import { replyFromJSON, replyToBytes, replyToJSON, requestFromJSON, requestToJSON, signalFromJSON, signalToJSON } from "./forms.js";
import { pick } from "../src/multi_selection.js";
import type { Period } from "../src/periods.js";
import { readingsOf } from "../src/readings.js";
import { Reply } from "../src/reply.js";
import { Request } from "../src/request.js";
import { Signal } from "../src/signal.js";
import { slotOf } from "../src/slots.js";
import { bytesOf, hexadecimalOf } from "./given_noise.js";

test("there is a test for every family", () => {
  const run = ["features", "requests", "signals", "replies", "refused_requests", "refused_replies", "picks", "slots", "etas", "readings"];
  const notCases = ["about", "genres"];
  expect(Object.keys(vectors).sort()).toEqual([...run, ...notCases].sort());
});

test.each(vectors.features)("features: $name", ({ ratings, features }) => {
  const genres = ratings.map((rating) => rating.genres.map((genre) => vectors.genres.indexOf(genre)));
  const space = { names: vectors.genres, likedFrom: 4, genres };
  const found = featuresOf(space, new Map(ratings.map((rating, place) => [place, rating.value])));
  expect(Array.from(checkedFeatures(found, 2 * vectors.genres.length))).toEqual(features);
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
  const found = pick(Reply.fromBytes(bytesOf(reply)), Float64Array.from(features), t);
  expect(found.picked.map(String)).toEqual(picked);
  estimates?.forEach((estimate, place) => expect(found.estimates[place]).toBeCloseTo(estimate, 6));
});

test.each(vectors.readings)("readings: $name", ({ eta, ratings, others, epsilons }) => {
  const genres = [...ratings.map((rating) => rating.genres), ...others].map((own: string[]) => own.map((genre) => vectors.genres.indexOf(genre)));
  const given = new Map(ratings.map((rating, place) => [place, rating.value]));
  const found = readingsOf(exactEta(eta), { names: vectors.genres, likedFrom: 4, genres }, given, true);
  expect({ ...found }).toEqual({
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
  for (const found of [exactEta(written), exactEta(Number(written))]) {
    expect([Number(found.numerator), Number(found.denominator)]).toEqual(exact);
  }
});
