/**
 * A policy: how a device is to choose among the candidates of an offer. A function of public data only. Whatever an offer says, the
 * device works out for itself what a policy costs, and applies its own limits.
 */
import { invalidMessage } from "./errors.js";
import * as fields from "./fields.js";

export const MOST_EPSILON = 40; // beyond it a sampler lies but once in 10^17: say openly that nothing is promised
export const MOST_CANDIDATES = 10_000;
const MOST_SLOTS = 100;
const FLOORS_WHOLE = 2 ** 32; // the floors of an envelope are whole numbers of 2^-32

export type Rule = "public" | "uniform" | "greedy" | "rr" | "gumbel" | "pf" | "laplace" | "envelope";
export type Bounding = "none" | "scaled" | "clipped";

/** `m` candidates are offered, the best first; `slots` of them are shown, one after the other, for `epsilon` in all. */
export interface Policy {
  readonly rule: Rule;
  readonly m: number;
  readonly epsilon: number;
  readonly d: number; // of rr: how many of the best are more likely
  readonly slots: number;
  readonly bounding: Bounding;
  readonly width: number | null; // of the boxes of clipped scores, the full width
  readonly floors: readonly number[] | null; // of an envelope, one for each candidate, in 2^-32
}

const read = fields.record({
  version: fields.VERSION_1,
  id: fields.oneOf<Rule>("public", "uniform", "greedy", "rr", "gumbel", "pf", "laplace", "envelope"),
  epsilon: fields.real(MOST_EPSILON),
  m: fields.whole(1, MOST_CANDIDATES),
  d: fields.whole(1, MOST_CANDIDATES),
  slots: fields.whole(1, MOST_SLOTS),
  bounding: fields.oneOf<Bounding>("none", "scaled", "clipped"),
  width: fields.orNull(fields.real()),
  floors: fields.orNull(fields.list(fields.whole(1, FLOORS_WHOLE))),
});

/** The policy of an offer; refused where its parts do not go together. */
export const policyFromJSON: fields.Reader<Policy> = (value, path) => {
  const { id: rule, version: _, ...parts } = read(value, path);
  const { m, epsilon, d, slots, bounding, width, floors } = parts;
  const free = rule === "public" || rule === "uniform" || rule === "greedy";
  const noisy = rule === "gumbel" || rule === "pf" || rule === "laplace"; // they add noise to scores, which must be bounded
  const total = floors?.reduce((sum, floor) => sum + floor, 0) ?? 0; // exact: below 2^46
  const floored = total <= FLOORS_WHOLE && total * Math.exp(epsilon) >= FLOORS_WHOLE && floors?.length === m && slots === 1;
  const together =
    free === (epsilon === 0) &&
    epsilon >= 0 &&
    slots <= m &&
    d <= m &&
    (d === 1 || (rule === "rr" && slots === 1)) &&
    noisy === (bounding !== "none") &&
    (width === null ? bounding !== "clipped" : bounding === "clipped" && width > 0) &&
    (floors === null ? rule !== "envelope" : rule === "envelope" && floored);
  if (!together) throw invalidMessage("the parts of a policy do not go together.");
  return Object.freeze({ rule, ...parts });
};

/** The epsilon of one selection, from the policy alone: infinite where nothing is promised. */
export function costOf({ rule, m, d, epsilon }: Policy): number {
  if (rule === "greedy") return m > 1 ? Infinity : 0;
  return rule === "public" || rule === "uniform" || m === 1 || (rule === "rr" && d === m) ? 0 : epsilon;
}

/** What is done instead where a limit forbids a policy: the public ranking. */
export const withoutCost = ({ m, slots }: Policy): Policy =>
  Object.freeze({ rule: "public", m, epsilon: 0, d: 1, slots, bounding: "none", width: null, floors: null });
