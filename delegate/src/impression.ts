/** What leaves a device in private selection, as JSON: a request for an offer, the items that were shown. */
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
