/** A ledger as a person reads it: how much of the budget is spent, what for, and when it renews. */

import { element, fill } from "./elements.js";
import { counted, day, moment, plain } from "./words.js";

/** @typedef {import("../../../../delegate/src/index.js").Statement} Statement */

const PERIODS = /** @type {Record<string, string>} */ ({ day: "a day", month: "a month", lifetime: "in all" });
const SPANS = /** @type {Record<string, string>} */ ({ day: "24 hours", month: "31 days" }); // of windows that slide

/**
 * @param {Element} place
 * @param {Statement} statement
 * @param {string} unit what an epsilon is of
 * @param {{ eta: string, epsilon: number }} [next] the signal that would be asked for next
 */
export function showLedger(place, statement, unit, next) {
  const budget = Number(statement.budget.epsilon);
  const [spent, left] = [Number(statement.spent), Number(statement.left)];
  const entries = [...statement.entries].reverse();
  const paid = next !== undefined && entries.some(({ what }) => etaOf(what) === Number(next.eta));
  const fits = next !== undefined && !paid && next.epsilon <= left * (1 + 1e-9);
  const span = statement.budget.sliding ? SPANS[statement.budget.per] : null;
  const per = span ? `in any ${span}` : PERIODS[statement.budget.per];
  fill(
    place,
    element(
      "div",
      {
        class: "meter",
        role: "meter",
        "aria-label": "Budget spent",
        "aria-valuemin": 0,
        "aria-valuemax": budget,
        "aria-valuenow": spent,
        "aria-valuetext": `${statement.spent} of ${plain(budget)} spent`,
      },
      bar("spent", spent / budget),
      fits ? bar("next", next.epsilon / budget) : null,
    ),
    element(
      "p",
      { class: "sum" },
      element("b", { "data-testid": "spent" }, statement.spent),
      ` of ${plain(budget)} spent, `,
      element("b", { "data-testid": "left" }, statement.left),
      " left",
      element("span", { class: "quiet" }, ` · epsilon ${unit}, ${per}`),
    ),
    next &&
      element(
        "p",
        { class: "quiet", "data-testid": "next-charge" },
        paid
          ? "The signal with this noise is drawn and paid for: asking again sends the same bytes and costs nothing."
          : fits
            ? `The striped part is what a signal with this noise would take: ${plain(next.epsilon)}.`
            : `A signal with this noise would take ${plain(next.epsilon)}, which does not fit any more.`,
      ),
    element(
      "p",
      { class: "quiet" },
      statement.renews
        ? `Renews on ${day(statement.renews)} (UTC).`
        : span
          ? `What was spent is back ${span} after it was charged.`
          : "It does not renew.",
    ),
    entries.length
      ? element(
          "details",
          { "data-testid": "charges", open: entries.length <= 3 },
          element("summary", {}, counted(statement.charges, "charge")),
          element(
            "ul",
            { class: "charges" },
            ...entries.map(({ at, what, epsilon }) =>
              element("li", {}, element("b", {}, epsilon), ` ${charge(what)} `, element("span", { class: "quiet" }, moment(at))),
            ),
          ),
        )
      : element("p", { class: "quiet" }, "No charges yet."),
  );
}

// The ids of charges: "2026-11 <digest of the features> 1/10" of a signal, "choice <token>" and "click <token>" of an offer.

/** The eta of a signal's charge, or NaN. @param {string} what */
function etaOf(what) {
  const [numerator, denominator] = (what.match(/ (\d+)\/(\d+)$/) ?? []).slice(1).map(Number);
  return numerator / denominator;
}

/** @param {string} what */
function charge(what) {
  const [first, second = ""] = what.split(" ");
  const eta = etaOf(what);
  return Number.isNaN(eta) ? `for a ${first} (${second.slice(0, 8)}…)` : `for the signal of ${first}, eta ${plain(eta)}`;
}

/** @param {string} kind @param {number} share */
function bar(kind, share) {
  const made = element("span", { class: kind });
  made.style.width = `${Math.min(100, 100 * share)}%`;
  return made;
}
