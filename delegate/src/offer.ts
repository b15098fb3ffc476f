/** An offer: candidates with public scores, in the server's order, the policy to choose by, and a token to report under. */
import { invalidMessage } from "./errors.js";
import * as fields from "./fields.js";
import { policyFromJSON, type Policy } from "./policy.js";

const MOST_SECONDS = 2_900_000 * 86_400;
const MOST = 1e15; // micro-units, and public scores
const MOST_ITEM = 128; // characters: what can be offered can be billed

/** An item that may be shown, what its owner bids for a click in micro-units, and the score it has without private data. */
export interface Candidate {
  readonly item: string;
  readonly bid: number; // 1,000,000 where there is no money
  readonly public_score: number;
}

/** For reports that are shuffled: the batch, the price of every candidate in it, and the public key of its tokens. */
export interface BatchTerms {
  readonly id: string;
  readonly prices: readonly number[];
  readonly key: string;
}

/** Nothing in it is private. A device believes no number of it: it validates, and counts the cost itself. */
export interface Offer {
  readonly token: string; // 32 hexadecimal digits
  readonly expires: number; // seconds since 1970
  readonly policy: Policy;
  readonly candidates: readonly Candidate[]; // the publicly best first
  readonly batch: BatchTerms | null;
}

const micros = fields.whole(0, MOST);

const read = fields.record({
  version: fields.VERSION_1,
  token: fields.hexadecimal(16, 16),
  expires: fields.whole(0, MOST_SECONDS),
  policy: policyFromJSON,
  candidates: fields.list(fields.record<Candidate>({ item: fields.printable(MOST_ITEM), bid: micros, public_score: fields.real(MOST) })),
  batch: fields.orNull(
    fields.record<BatchTerms>({ id: fields.text(1, 100), prices: fields.list(micros), key: fields.hexadecimal(0, 100) }),
  ),
});

const CHECKED = new WeakSet<object>();

export function offerFromJSON(value: unknown): Offer {
  const { version: _, ...offer } = read(value);
  const { candidates, policy, batch } = offer;
  const fits =
    candidates.length === policy.m &&
    new Set(candidates.map((one) => one.item)).size === policy.m &&
    candidates.every((one, place) => place === 0 || one.public_score <= candidates[place - 1]!.public_score) &&
    (batch === null || (batch.prices.length === policy.m && policy.slots === 1));
  if (!fits) throw invalidMessage("the parts of an offer do not go together.");
  CHECKED.add(offer);
  return Object.freeze(offer);
}

/** Whether this is an offer that was read here: any other object was not checked. */
export const isOffer = (value: unknown): value is Offer => CHECKED.has(value as object);
