/** An offer in words: what the server asked for, and what the device made of it. All of it is public. */

import { element } from "./elements.js";
import { titleOf } from "./titles.js";
import { counted, factor, plain, roundedUp } from "./words.js";

/** @typedef {import("../../../../delegate/src/index.js").Choice} Choice */
/** @typedef {{ id: string, epsilon: number, m: number, d: number }} Policy as an offer writes it */
/** @typedef {{ policy: Policy, candidates: { item: string, public_score: number }[], expires: number }} WireOffer */

const MOST_SHOWN = 12;

/** @param {WireOffer} offered @param {Choice} choice */
export function policyWords({ policy }, choice) {
  const many = counted(policy.m, "candidate");
  if (!choice.consented)
    return [
      `The offer has ${many}. Without your consent the publicly best is shown, the same to everybody: nothing private was read.`,
    ];
  const { rule } = choice.policy; // as it was applied: a limit of the device may have put the public ranking in its place
  if (rule === "uniform")
    return [`The server explores: any of its ${many} was shown with the same chance, whatever your profile. Epsilon 0.`];
  if (rule === "public" && policy.id !== "public")
    return [
      `The offer asked for epsilon ${roundedUp(policy.epsilon)}, and your device did not follow it: that is over ` +
        "one of its limits or over what is left today, or the scorer could not be loaded. So the publicly best of " +
        `${many} was shown: nothing private was read, and nothing was charged.`,
    ];
  if (rule === "public")
    return [`The offer has ${many}, and the server chose to show the publicly best. Nothing private was read.`];
  if (rule === "rr" && policy.d === 1)
    return [
      `The offer has ${many} and `,
      element("b", {}, `epsilon ${roundedUp(policy.epsilon)}`),
      `: the one that suits you best is ${factor(policy.epsilon)} times as likely to be shown as any other. Chance decided.`,
    ];
  return [`The offer has ${many}, rule ${rule}, epsilon ${roundedUp(policy.epsilon)}. Chance decided, by what suits you.`];
}

/** @param {import("./titles.js").Catalogue} catalogue @param {WireOffer} offered @param {string} shown */
export function candidates(catalogue, offered, shown) {
  return element(
    "ol",
    { class: "candidates", "data-testid": "candidates" },
    ...offered.candidates
      .slice(0, MOST_SHOWN)
      .map(({ item, public_score }) =>
        element(
          "li",
          { class: item === shown ? "chosen" : null },
          `${titleOf(catalogue, item)} `,
          item === shown ? element("span", { class: "tag" }, "shown") : null,
          element("span", { class: "quiet" }, ` public score ${plain(public_score)}`),
        ),
      ),
    offered.candidates.length > MOST_SHOWN
      ? element("li", { class: "quiet" }, `and ${counted(offered.candidates.length - MOST_SHOWN, "other")}`)
      : null,
  );
}
