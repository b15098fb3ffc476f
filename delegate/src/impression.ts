/** What leaves a device in private selection, as JSON: a request for an offer, the items that were shown; and what is answered. */
import { codeOf, isTransient, memberOf, type Answer } from "./client.js";
import * as fields from "./fields.js";

const context = fields.text();

/** A public context, and her consent. The same size with and without it. */
export const offerRequest = (said: string, consent: boolean) => ({
  version: 1,
  context: context(said, "context"),
  consent: Number(consent),
});

/** These items of the offer with this token were shown, one in each slot. No score, rank, probability or time is in it. */
export const impression = (token: string, items: readonly string[]) => ({ version: 1, token, items });

const OUTCOMES = ["ok", "duplicate", "conflict", "unknown", "expired"] as const;

/** A final answer to an impression. `refused`: the server took it for no impression at all. */
export type Outcome = (typeof OUTCOMES)[number] | "refused";

/** What became of a report. Final is an outcome, or a refusal in the server's own words; after everything else it is sent again. */
export function outcomeOf(answer: Answer): Outcome | "pending" {
  const said = memberOf(answer.body, "outcome");
  if (answer.status === 200) return OUTCOMES.find((one) => one === said) ?? "pending";
  return isTransient(answer.status) || codeOf(answer) === null ? "pending" : "refused";
}
