/** tacit-delegate: the differentially private device in the browser. */
export type { Fraction } from "./arithmetic.js";
export { Catalogue, type ItemId } from "./catalogue.js";
export type { Exchange } from "./client.js";
export { Delegate, type DelegateOptions, type Recommendation } from "./device.js";
export { TacitError } from "./errors.js";
export type { Choice, Statement } from "./ledger.js";
export { slotOf, type Budget, type Limits, type Period } from "./limits.js";
export { randomisedBit } from "./mechanisms.js";
export { exactEta, Reply, Request, Signal, type ModelKind } from "./messages/multi_selection.js";
export { costOf, offerFromJSON, policyFromJSON } from "./messages/private_selection.js";
export type { BatchTerms, Bounding, Candidate, Offer, Outcome, Policy, Rule } from "./messages/private_selection.js";
export { pick, type Asked, type Readings } from "./multi_selection.js";
export { systemNoise, type Noise } from "./noise.js";
export { select } from "./private_selection.js";
export { featuresOf, type FeatureSpace } from "./profile.js";
