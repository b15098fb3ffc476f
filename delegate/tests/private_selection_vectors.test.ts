// The shared cases of vectors/private-selection.json, which the device in Python reproduces too.
import { expect, test } from "vitest";
import vectors from "../../vectors/private-selection.json";
import { rateOf } from "../src/calibration.js";
import { randomisedBit } from "../src/clicks.js";
import { TacitError } from "../src/errors.js";
import { weightOf } from "../src/exp.js";
import { offerToJSON } from "./forms.js";
import { impression, offerRequest } from "../src/impression.js";
import { offerFromJSON, type Candidate } from "../src/offer.js";
import { costOf, policyFromJSON, type Policy } from "../src/policy.js";
import { select, supported } from "../src/private_selection.js";
import { privateScores } from "../src/scoring.js";
import { GivenNoise } from "./given_noise.js";
import { lawOf } from "./laws.js";

const NOT_RUN: Record<string, string> = {
  about: "is no case",
  groups: "the digest of a shuffled report: this device has no blind tokens, and answers no offer of a batch",
};
const MESSAGES: Record<string, (json: any) => unknown> = {
  OfferRequest: ({ context, consent }) => offerRequest(context, consent === 1),
  Impression: ({ token, items }) => impression(token, items),
};
const MESSAGES_NOT_SENT: Record<string, string> = {
  ShuffledReport: "this device answers no offer of a batch",
  Engagement: "this device draws the bit of a click and leaves the sending to the application",
};
const LAWS_NOT_FOLLOWED = ["pf clipped", "gumbel clipped"]; // clipped scores are answered publicly

const plain = (rule: string, m: number, more: object = {}): Policy =>
  policyFromJSON({ version: 1, id: rule, epsilon: 0, m, d: 1, slots: 1, bounding: "none", width: null, floors: null, ...more });

test("there is a test for every family that this device knows, and a reason for every other", () => {
  const run = ["offers", "refused_offers", "messages", "costs", "draws", "uniform", "clicks", "laws", "private_scores"];
  expect(Object.keys(vectors).sort()).toEqual([...run, ...Object.keys(NOT_RUN)].sort());
  expect(vectors.messages.filter(({ kind }) => !(kind in MESSAGES)).map(({ kind }) => kind)).toEqual(Object.keys(MESSAGES_NOT_SENT));
});

test.each(vectors.offers)("offers: $name", ({ json }) => {
  expect(offerToJSON(offerFromJSON(json))).toEqual(json);
});

test.each(vectors.refused_offers)("refused offers: $name", ({ json }) => {
  expect(() => offerFromJSON(json)).toThrow(TacitError);
});

test.each(vectors.messages.filter(({ kind }) => kind in MESSAGES))("messages: $name", ({ kind, json }) => {
  expect(MESSAGES[kind]!(json)).toEqual(json);
});

test.each(vectors.costs)("costs: $name", ({ policy, epsilon }) => {
  expect(costOf(policyFromJSON(policy))).toBe(epsilon === "inf" ? Infinity : epsilon);
});

test.each(vectors.draws)("draws: $name, $bytes", ({ scores, d, epsilon, weight, bytes, place }) => {
  const noise = new GivenNoise(bytes);
  const policy = plain("rr", scores.length, { epsilon, d });
  expect(
    select(
      policy,
      scores,
      scores.map(() => 0),
      noise,
    ),
  ).toEqual([place]);
  expect(noise.left).toHaveLength(0);
  if (d < scores.length) expect(String(weightOf(epsilon))).toBe(weight);
});

test.each(vectors.uniform)("uniform: $name", ({ m, slots, bytes, places }) => {
  const noise = new GivenNoise(bytes);
  expect(select(plain("uniform", m, { slots }), null, new Array(m).fill(0), noise)).toEqual(places);
  expect(noise.left).toHaveLength(0);
});

test.each(vectors.clicks)("clicks: $name, $bytes", ({ epsilon, clicked, bytes, bit }) => {
  const noise = new GivenNoise(bytes);
  expect(randomisedBit(clicked, epsilon, noise)).toBe(bit);
  expect(noise.left).toHaveLength(0);
});

test.each(vectors.laws)("laws: $name", ({ name, policy: json, scores, rate, law }) => {
  const policy = policyFromJSON(json);
  if (LAWS_NOT_FOLLOWED.some((one) => name.startsWith(one))) {
    expect(supported(policy)).toBe(false);
    return;
  }
  lawOf(policy, scores).forEach((probability, place) => expect(Math.abs(probability - law[place]!)).toBeLessThan(1e-5));
  if (rate !== null) {
    const { numerator, denominator } = rateOf(policy.rule as "pf" | "gumbel", policy.m, policy.epsilon);
    expect((Number(numerator) / Number(denominator)) * 2 ** 20).toBeCloseTo(rate, 8);
  }
});

test.each(vectors.private_scores)("private scores: $name", ({ candidates, quality, scores }) => {
  expect(privateScores(candidates as Candidate[], () => quality as (number | null)[])).toEqual(scores);
});
