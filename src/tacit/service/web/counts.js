/** What the server counted: exact, whoever was shown what. The same for everybody who asks. */

import { element, fill } from "./elements.js";
import { notice } from "./problems.js";
import { counted } from "./words.js";

const MOST_SHOWN = 12;

/** @param {Element} place @param {import("./server.js").Server} server */
export async function showCounts(place, server) {
  let items;
  try {
    ({ items } = await server.get("/v1/private-selection/counts"));
  } catch (error) {
    fill(place, notice(error));
    return;
  }
  const sorted = [...items].sort((one, other) => other.impressions - one.impressions);
  const total = sorted.reduce((sum, one) => sum + one.impressions, 0);
  const most = Math.max(1, ...sorted.map((one) => one.impressions));
  const billed = sorted.some((one) => Number(one.micros) > 0);
  fill(
    place,
    element(
      "p",
      {},
      element("b", { "data-testid": "counts-total" }, counted(total, "impression")),
      " from all devices together. These counts have no noise; what each of them tells about one person is " +
        "bounded by the chance in her choice.",
    ),
    total
      ? element(
          "table",
          { class: "bars" },
          element("caption", { class: "quiet" }, "Impressions by film"),
          element(
            "thead",
            {},
            element(
              "tr",
              {},
              ...["Film", "Impressions", ...(billed ? ["Billed"] : [])].map((head) => element("th", { scope: "col" }, head)),
            ),
          ),
          element(
            "tbody",
            {},
            ...sorted
              .filter((one) => one.impressions)
              .slice(0, MOST_SHOWN)
              .map((one) => row(one, most, billed)),
          ),
        )
      : null,
  );
}

/**
 * @param {{ item: string, title?: string, impressions: number, micros: number | string }} one
 * @param {number} most
 * @param {boolean} billed
 */
function row({ item, title, impressions, micros }, most, billed) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${(100 * impressions) / most}%`;
  return element(
    "tr",
    { "data-testid": "count", "data-item": item },
    element("th", { scope: "row" }, title ?? item),
    element("td", {}, element("span", { class: "number" }, impressions), element("span", { class: "track" }, bar)),
    billed ? element("td", {}, `${(Number(micros) / 1e6).toFixed(6)}`) : null,
  );
}
