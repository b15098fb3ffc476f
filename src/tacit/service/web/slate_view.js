/** A release to choose, what its epsilon protects, and a slate that was made from it, with its measures. */

import { byId, element, fill } from "./elements.js";
import { epsilonOf } from "./server.js";
import { counted, factor, percent, roundedUp, worth } from "./words.js";

/** @typedef {import("./slates.js").ReleaseInfo} ReleaseInfo */
/** @typedef {import("./slates.js").Answer} Answer */

/** @param {ReleaseInfo} one @param {boolean} checked @param {() => void} chosen */
export function option(one, checked, chosen) {
  return element(
    "label",
    {},
    element("input", { type: "radio", name: "release", value: one.name, checked, onchange: chosen }),
    element(
      "span",
      {},
      element("b", {}, `epsilon ${roundedUp(epsilonOf(one.guarantee))}`),
      " ",
      element("code", {}, one.name),
      element("span", { class: "quiet" }, ` ${counted(one.items, "film")}`),
    ),
  );
}

/**
 * What the epsilon of a release protects.
 * @param {ReleaseInfo} one
 * @param {import("./server.js").Guarantee | null} together what all releases promise together
 */
export function means({ guarantee }, together) {
  const epsilon = epsilonOf(guarantee);
  const all = together ? epsilonOf(together) : null;
  const { level, says } = worth(epsilon);
  fill(
    byId("slates-means"),
    element(
      "p",
      {},
      element("span", { class: `level ${level}` }, `Each person: ${says}.`),
      " With or without any one person and everything that person rated, every slate is at most " +
        `${factor(epsilon)} times more or less likely (epsilon ` +
        `${roundedUp(epsilon)}${guarantee.delta ? `, delta ${roundedUp(guarantee.delta)}` : ""}).`,
    ),
    element(
      "p",
      {},
      "Slates from one release cost nothing more, however many are made: they are computed from what is public already.",
      all === null ? "" : ` Whoever sees all releases here: epsilon ${roundedUp(all)} together.`,
    ),
    guarantee.assumes.length
      ? element(
          "details",
          {},
          element("summary", {}, "Under these assumptions"),
          element("ul", {}, ...guarantee.assumes.map((one) => element("li", {}, one))),
        )
      : null,
  );
}

/** @param {Answer} answer @param {boolean} drawn */
export function showSlate({ slate, titles, diversity, liking }, drawn) {
  fill(
    byId("slates-said"),
    `${counted(slate.items.length, "film")}, `,
    drawn ? "drawn by chance: another click, another slate, the same cost of nothing." : "chosen greedily: always the same.",
  );
  fill(byId("slates-list"), ...slate.items.map((item, place) => element("li", {}, titles?.[place] ?? String(item))));
  fill(
    byId("slates-measures"),
    ...measure("Variety", diversity, "mean distance of genres between two films of the slate"),
    ...measure("Popularity", liking, "how much its films are liked, beside the most liked ones; by the release that tells most"),
  );
}

/** @param {string} name @param {number | null} value @param {string} meaning */
function measure(name, value, meaning) {
  if (value === null) return [];
  const bar = element("span", { class: "bar" });
  bar.style.width = `${100 * value}%`;
  return [
    element(
      "div",
      {},
      element("dt", {}, name),
      element(
        "dd",
        {},
        element("b", {}, percent(value)),
        element("span", { class: "track", "aria-hidden": "true" }, bar),
        element("span", { class: "quiet" }, meaning),
      ),
    ),
  ];
}
