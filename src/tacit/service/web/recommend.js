/** Multi-selection: the profile, the noise, the ledger, and the button that asks. */

import { byId, fill } from "./elements.js";
import { startEta } from "./eta_choice.js";
import { showLedger } from "./ledger.js";
import { notice } from "./problems.js";
import { startRating } from "./rating.js";
import { show } from "./recommendation.js";
import { counted } from "./words.js";

/** @typedef {import("./page.js").App} App */

const SLATE = 5; // films in an answer

/** @param {App} app */
export function startRecommend(app) {
  const button = byId("ask");
  /** @type {Uint8Array | null} what was sent last, in this visit and by this person */
  let before = null;
  startRating(app);
  const eta = startEta(app);

  const ledger = async () => {
    const { delegate } = app.person;
    try {
      showLedger(byId("ledger"), await delegate.statement(), "per unit of distance", {
        eta: eta(),
        epsilon: delegate.readings(eta()).perUnit,
      });
    } catch (error) {
      fill(byId("ledger"), notice(error));
    }
  };
  const hint = () => {
    const { size } = app.person.ratings;
    fill(
      byId("ask-hint"),
      size
        ? `From ${counted(size, "rating")}. There is one signal for each noise level in a month: rate first, then ask.`
        : "You can ask without ratings too: then the profile is empty, and noise is all that leaves.",
    );
  };

  const ask = async () => {
    if (button.ariaBusy === "true") return; // not disabled: that would throw the focus away
    button.ariaBusy = "true";
    fill(byId("said"), "Adding noise, charging the ledger, asking …");
    app.catchUp();
    try {
      const answer = await app.person.delegate.recommend({ k: SLATE, t: 1, eta: eta() });
      show(app, answer, before);
      byId("said").scrollIntoView({
        block: "start",
        behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
      });
      before = answer.sent;
    } catch (error) {
      fill(byId("said"));
      fill(byId("results"), notice(error, ask));
    }
    button.ariaBusy = "false";
    await ledger();
  };

  button.addEventListener("click", ask);
  app.on("ratings", hint);
  app.on("eta", ledger);
  app.on("person", () => {
    before = null;
    fill(byId("results"));
    fill(byId("said"), "You are another person now, with an empty profile and an unspent ledger.");
    hint();
  });
  button.disabled = false;
  hint();
  ledger();
}
