/**
 * The messages of private selection, as JSON. The server sends an offer: candidates with public scores, a policy to choose by, and a token
 * to report under. The device sends a request for an offer and, later, the items it showed.
 *
 * Nothing in these messages is private. A device trusts no number in an offer: it validates the offer, computes the cost of the policy
 * itself and applies its own limits.
 */
import { invalidMessage } from "../errors.js";
import * as codec from "./codec.js";

export const MOST_EPSILON = 40; // beyond it a sampler deviates only once in 10^17 draws: use a rule that openly promises nothing
const MOST_CANDIDATES = 10_000;
const MOST_SLOTS = 100;
const FLOORS_WHOLE = 2 ** 32; // an envelope's floors are multiples of 2^-32

export type Rule = "public" | "uniform" | "greedy" | "rr" | "gumbel" | "pf" | "laplace" | "envelope";
export type Bounding = "none" | "scaled" | "clipped";

/** How to choose: `m` candidates, the best first, of which `slots` are shown, one after the other, for `epsilon` in total. */
export interface Policy {
  readonly rule: Rule;
  readonly m: number;
  readonly epsilon: number;
  readonly d: number; // rr: how many of the best are more likely
  readonly slots: number;
  readonly bounding: Bounding;
  readonly width: number | null; // clipped scores: the full width of their boxes
  readonly floors: readonly number[] | null; // envelope: one for each candidate, in units of 2^-32
}

const readPolicy = codec.record({
  version: codec.VERSION_1,
  id: codec.oneOf<Rule>("public", "uniform", "greedy", "rr", "gumbel", "pf", "laplace", "envelope"),
  epsilon: codec.real(MOST_EPSILON),
  m: codec.whole(1, MOST_CANDIDATES),
  d: codec.whole(1, MOST_CANDIDATES),
  slots: codec.whole(1, MOST_SLOTS),
  bounding: codec.oneOf<Bounding>("none", "scaled", "clipped"),
  width: codec.orNull(codec.real()),
  floors: codec.orNull(codec.list(codec.whole(1, FLOORS_WHOLE))),
});

/** Reads a policy. Throws if its fields contradict each other. */
export const policyFromJSON: codec.Reader<Policy> = (value, path) => {
  const { id: rule, version: _, ...fields } = readPolicy(value, path);
  const { m, epsilon, d, slots, bounding, width, floors } = fields;
  const free = rule === "public" || rule === "uniform" || rule === "greedy";
  const noisy = rule === "gumbel" || rule === "pf" || rule === "laplace"; // these add noise to scores, so scores must be bounded
  const total = floors?.reduce((sum, floor) => sum + floor, 0) ?? 0; // exact: below 2^46
  const floored = total <= FLOORS_WHOLE && total * Math.exp(epsilon) >= FLOORS_WHOLE && floors?.length === m && slots === 1;
  const consistent =
    free === (epsilon === 0) &&
    epsilon >= 0 &&
    slots <= m &&
    d <= m &&
    (d === 1 || (rule === "rr" && slots === 1)) &&
    noisy === (bounding !== "none") &&
    (width === null ? bounding !== "clipped" : bounding === "clipped" && width > 0) &&
    (floors === null ? rule !== "envelope" : rule === "envelope" && floored);
  if (!consistent) throw invalidMessage("the fields of a policy contradict each other.");
  return Object.freeze({ rule, ...fields });
};

/** The epsilon of one selection, computed from the policy alone. Infinity if the policy promises nothing. */
export function costOf({ rule, m, d, epsilon }: Policy): number {
  if (rule === "greedy") return m > 1 ? Infinity : 0;
  return rule === "public" || rule === "uniform" || m === 1 || (rule === "rr" && d === m) ? 0 : epsilon;
}

/** The policy applied when a limit forbids the offered one: the public order. */
export const withoutCost = ({ m, slots }: Policy): Policy =>
  Object.freeze({ rule: "public", m, epsilon: 0, d: 1, slots, bounding: "none", width: null, floors: null });

const MOST_SECONDS = 2_900_000 * 86_400;
const MOST_MICROS = 1e15; // also bounds public scores
const MOST_ITEM = 128; // characters: every item that can be offered can be billed

/** An item that may be shown, its owner's bid for a click in micro-units, and its score without private data. */
export interface Candidate {
  readonly item: string;
  readonly bid: number; // 1,000,000 if no money is involved
  readonly public_score: number;
}

/** Terms for shuffled reports: the batch, the price of every candidate in it, and the public key of its tokens. */
export interface BatchTerms {
  readonly id: string;
  readonly prices: readonly number[];
  readonly key: string;
}

export interface Offer {
  readonly token: string; // 32 hexadecimal digits
  readonly expires: number; // seconds since 1970
  readonly policy: Policy;
  readonly candidates: readonly Candidate[]; // highest public score first
  readonly batch: BatchTerms | null;
}

const micros = codec.whole(0, MOST_MICROS);

const readOffer = codec.record({
  version: codec.VERSION_1,
  token: codec.hexadecimal(16, 16),
  expires: codec.whole(0, MOST_SECONDS),
  policy: policyFromJSON,
  candidates: codec.list(codec.record<Candidate>({ item: codec.printable(MOST_ITEM), bid: micros, public_score: codec.real(MOST_MICROS) })),
  batch: codec.orNull(codec.record<BatchTerms>({ id: codec.text(1, 100), prices: codec.list(micros), key: codec.hexadecimal(0, 100) })),
});

const VALIDATED = new WeakSet<object>();

/** Reads an offer. Throws if its fields contradict each other. */
export function offerFromJSON(value: unknown): Offer {
  const { version: _, ...offer } = readOffer(value);
  const { candidates, policy, batch } = offer;
  const consistent =
    candidates.length === policy.m &&
    new Set(candidates.map(({ item }) => item)).size === policy.m &&
    candidates.every(({ public_score }, index) => index === 0 || public_score <= candidates[index - 1]!.public_score) &&
    (batch === null || (batch.prices.length === policy.m && policy.slots === 1));
  if (!consistent) throw invalidMessage("the fields of an offer contradict each other.");
  VALIDATED.add(offer);
  return Object.freeze(offer);
}

/** Whether `offerFromJSON` returned this object. Any other object was not validated. */
export const isOffer = (value: unknown): value is Offer => VALIDATED.has(value as object);

const readContext = codec.text();

/** A request for an offer: a public context and the user's consent. It has the same size with and without consent. */
export const offerRequest = (context: string, consent: boolean) => ({
  version: 1,
  context: readContext(context, "context"),
  consent: Number(consent),
});

/** An impression: these items were shown for this token, one in each slot. It contains no score, rank, probability or time. */
export const impression = (token: string, items: readonly string[]) => ({ version: 1, token, items });

export const OUTCOMES = ["ok", "duplicate", "conflict", "unknown", "expired"] as const;

/** The server's final answer to an impression. `refused`: it did not accept the message as an impression. */
export type Outcome = (typeof OUTCOMES)[number] | "refused";
