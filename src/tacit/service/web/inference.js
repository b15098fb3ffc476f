/**
 * What a server could infer from one report, and from all of them. For the rule `rr` with one best item: before the report each of m
 * candidates is as likely as any other to be her best; after it, the shown one is so with e^epsilon / (e^epsilon + m - 1). Epsilon adds
 * up over reports, and the same formula with the sum is the most that all of them together can tell.
 */

import { element, fill } from "./elements.js";
import { counted, factor, percent, roundedUp } from "./words.js";

/** @typedef {{ rule: string, epsilon: number, m: number, d: number }} Applied */

/** @param {Element} place @param {Applied} applied @param {import("./ledger.js").Statement} statement */
export function showInference(place, applied, statement) {
  const spent = Number(statement.spent);
  const told = applied.epsilon > 0 && applied.m > 1;
  const before = 1 / applied.m;
  const one = told ? after(applied.epsilon, applied.m) : before;
  const all = after(Math.max(spent, applied.epsilon), applied.m);
  const bars =
    applied.m > 1
      ? element(
          "div",
          { class: "odds" },
          odds("Before the report", before, "before"),
          odds("After this report", one, "after"),
          statement.charges > 1 ? odds("After all reports, at worst", all, "all") : null,
        )
      : null;
  fill(place, ...(told ? words(applied, before, one) : silent(applied)), bars, sum(statement, spent, applied, all));
}

/** @param {number} epsilon @param {number} m */
function after(epsilon, m) {
  return 1 / (1 + (m - 1) * Math.exp(-epsilon)); // e^epsilon / (e^epsilon + m - 1), without overflow
}

/** @param {Applied} applied @param {number} before @param {number} one */
function words({ rule, epsilon, m, d }, before, one) {
  const exact = rule === "rr" && d === 1;
  return [
    element(
      "p",
      {},
      `To a server that knew nothing about you, each of the ${m} candidates was as likely as any other to suit ` +
        `you best: ${percent(before, 1)}. After the report it believes so of the shown one with ` +
        `${exact ? "" : "at most "}`,
      element("b", {}, percent(one, 1)),
      `. Whatever it knew before, the odds between any two profiles change by a factor of at most ${factor(epsilon)}.`,
    ),
  ];
}

/** @param {Applied} applied */
function silent({ rule, m }) {
  if (m === 1) return [element("p", {}, "Nothing: there was one candidate, and it was shown.")];
  return [
    element(
      "p",
      {},
      rule === "uniform"
        ? "Nothing: the choice was pure chance, whatever your profile is. The report tells what was shown and not what suits you."
        : "Nothing: the publicly best was shown, as it would have been to anybody. The report tells what was shown and not what suits you.",
    ),
  ];
}

/** @param {import("./ledger.js").Statement} statement @param {number} spent @param {Applied} applied @param {number} all */
function sum(statement, spent, { m }, all) {
  if (!statement.charges) return null;
  return element(
    "p",
    { "data-testid": "adds-up" },
    "Reports add up. ",
    element("b", {}, `Epsilon so far: ${roundedUp(spent)}`),
    ` in ${counted(statement.charges, "charge")} of this period, a factor of at most ${factor(spent)}.`,
    statement.charges > 1 && m > 1
      ? ` Had all of them named the same film out of the same ${m}, the server would believe ${percent(all, 1)} that it is your best.`
      : "",
    " That is why there is a budget. If you have also asked for a recommendation here, the server has your noisy profile beside these reports.",
  );
}

/** @param {string} label @param {number} share @param {string} kind */
function odds(label, share, kind) {
  const bar = element("span", { class: `bar ${kind}` });
  bar.style.width = `${100 * share}%`;
  return element(
    "div",
    { class: "odd", "data-testid": `inference-${kind}` },
    element("span", {}, label),
    element("span", { class: "track", "aria-hidden": "true" }, bar),
    element("b", {}, percent(share, 1)),
  );
}
