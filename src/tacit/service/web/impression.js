/** The report of what was shown: the very bytes, the server's answer, and the same bytes once more. */

import { showCounts } from "./counts.js";
import { byId, element, fill, folded } from "./elements.js";
import { hexLines } from "./hex_dump.js";
import { notice } from "./problems.js";
import { bytes } from "./words.js";

/** @typedef {import("./page.js").App} App */

export const IMPRESSIONS = "/v1/private-selection/impressions";

/** @type {Record<string, string>} what the server's word for a report means */
export const OUTCOMES = {
  ok: "counted, once and exactly",
  duplicate: "known already: not counted a second time",
  conflict: "refused: another film was reported under the same token",
  unknown: "refused: the server does not know this offer",
  expired: "refused: it came too late",
  refused: "refused: the server took it for no report at all",
  pending: "no answer yet: the report is kept in this browser, and the same bytes will be sent again",
};

/** @param {App} app @param {Uint8Array | null} asked @param {Uint8Array | null} sent @param {string} outcome */
export function report(app, asked, sent, outcome) {
  const says = element(
    "p",
    { class: "outcome", "data-testid": "outcome", "data-outcome": outcome, role: "status" },
    ...outcomeWords(outcome),
  );
  const again = element("button", { class: "plain", "data-testid": "report-again", disabled: !sent }, "Report it again");
  again.addEventListener("click", async () => {
    if (!sent) return;
    try {
      const { outcome: second } = await app.server.repeat(IMPRESSIONS, sent);
      says.dataset.outcome = second;
      fill(says, ...outcomeWords(second));
    } catch (error) {
      fill(says, notice(error));
    }
    await showCounts(byId("counts"), app.server);
  });
  return element(
    "div",
    { class: "report" },
    element("h3", {}, "What left this device ", sent ? element("span", { class: "tag out" }, bytes(sent.length)) : null),
    sent
      ? element("pre", { "data-testid": "impression", tabindex: 0, role: "group", "aria-label": "The report that left" }, new TextDecoder().decode(sent))
      : element("p", {}, "Nothing yet."),
    sent ? folded("As plain bytes", element("pre", { tabindex: 0, role: "group", "aria-label": "The report as bytes" }, hexLines(sent))) : null,
    element(
      "p",
      { class: "quiet" },
      "The token is the server's own, from its offer; the item is what was shown. No score, no rank, no user.",
    ),
    asked
      ? element(
          "p",
          { class: "quiet" },
          "Before it, the request for an offer left, which tells whether you consent and nothing else: ",
          element("code", {}, new TextDecoder().decode(asked)),
        )
      : null,
    says,
    element(
      "div",
      { class: "row" },
      again,
      element("span", { class: "quiet" }, "The same bytes once more, as after a lost answer."),
    ),
  );
}

/** The answer to a report that had been waiting, where it is the one on the screen. @param {App} app */
export function told(app) {
  const says = byId("shown").querySelector('[data-outcome="pending"]');
  const received = app.traffic.last(IMPRESSIONS)?.received;
  if (!says || !received) return;
  const { outcome } = JSON.parse(new TextDecoder().decode(received));
  says.dataset.outcome = outcome;
  fill(says, ...outcomeWords(outcome));
}

/** @param {string} outcome */
function outcomeWords(outcome) {
  return ["The server says ", element("code", {}, outcome), `: ${OUTCOMES[outcome] ?? "a word that this page does not know"}.`];
}
