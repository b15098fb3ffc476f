/** Private selection: an offer comes, the device chooses with chance mixed in, shows, and reports exactly what was shown. */

import { showCounts } from "./counts.js";
import { byId, element, fill } from "./elements.js";
import { IMPRESSIONS, OUTCOMES, report, told } from "./impression.js";
import { showInference } from "./inference.js";
import { showLedger } from "./ledger.js";
import { candidates, policyWords } from "./offer.js";
import { notice } from "./problems.js";
import { genresOf, titleOf } from "./titles.js";
import { counted } from "./words.js";

/** @typedef {import("./page.js").App} App */
/** @typedef {import("./offer.js").WireOffer} WireOffer */

const OFFERS = "/v1/private-selection/offers";

/** @param {App} app */
export function startChoose(app) {
  const [consent, button, flush] = [byId("consent"), byId("show"), byId("flush")];
  /** @param {Promise<unknown>} work what fails is told where it happened */
  const guarded = (work) => work.catch((error) => fill(byId("shown"), notice(error)));

  const ledger = async () => {
    try {
      showLedger(byId("selection-ledger"), await app.person.delegate.selectionStatement(), "for the whole profile");
    } catch (error) {
      fill(byId("selection-ledger"), notice(error));
    }
  };
  const counts = () => showCounts(byId("counts"), app.server);
  const profile = async () => {
    const granted = await app.person.delegate.consented();
    consent.checked = granted;
    fill(
      byId("consent-says"),
      granted
        ? "On: what suits you decides, with chance mixed in. Switching it off wipes your ratings from this browser."
        : "Off: you are shown what is publicly best, and nothing private is read.",
    );
    const { size } = app.person.ratings;
    fill(
      byId("profile-size"),
      size
        ? `Your profile: ${counted(size, "rating")} from the tab Recommend.`
        : "Your profile is empty: rate films in the tab Recommend, and the choice has something to go by.",
    );
  };
  const waiting = async () => {
    const left = await app.person.delegate.flush();
    flush.hidden = left === 0;
    return left;
  };

  consent.addEventListener("change", () =>
    guarded(
      (async () => {
        const wanted = consent.checked;
        try {
          if (wanted) await app.person.delegate.consent();
          else await app.person.revoke();
        } catch (error) {
          consent.checked = !wanted; // what is written decides, and it was not
          app.changed("ratings");
          throw error;
        }
        app.changed("ratings");
        fill(
          byId("show-said"),
          consent.checked ? "Your profile may be used for the choice." : "Your profile is no longer used, and was wiped.",
        );
      })(),
    ),
  );

  button.addEventListener("click", async () => {
    if (button.ariaBusy === "true") return; // not disabled: that would throw the focus away
    button.ariaBusy = "true";
    fill(byId("show-said"), "Asking for an offer, choosing here, reporting …");
    try {
      await showOne(app);
      flush.hidden = !byId("shown").querySelector('[data-outcome="pending"]') && flush.hidden;
    } catch (error) {
      fill(byId("show-said"));
      fill(byId("shown"), notice(error));
    }
    button.ariaBusy = "false";
    await Promise.all([ledger(), counts()]);
  });
  flush.addEventListener("click", () =>
    guarded(
      (async () => {
        const left = await waiting();
        if (!left) told(app);
        fill(
          byId("show-said"),
          left ? `${counted(left, "report")} still waiting: the server does not answer.` : "All reports have arrived.",
        );
        await counts();
      })(),
    ),
  );

  app.on("ratings", () => guarded(profile()));
  app.on("person", () => {
    fill(byId("shown"));
    fill(byId("show-said"));
    fill(byId("inference"), element("p", { class: "quiet" }, "Nothing yet: nothing was shown in this visit."));
    guarded(Promise.all([profile(), ledger()]));
  });
  app.on("tab", () => app.tab === "choose" && void counts());
  [consent, button].forEach((control) => (control.disabled = false));
  guarded(Promise.all([profile(), ledger(), waiting()]));
  if (app.tab === "choose") void counts();
}

/** @param {App} app */
async function showOne(app) {
  app.catchUp();
  const { delegate, catalogue } = app.person;
  const offer = await delegate.offer();
  const choice = offer && (await delegate.choose(offer));
  if (!choice) {
    fill(
      byId("show-said"),
      offer
        ? "The offer was no good (malformed or expired): nothing is shown, and nothing is told."
        : "The server has nothing to offer.",
    );
    fill(byId("shown"));
    return;
  }
  const display = choice.items.map((one) =>
    element(
      "div",
      { class: "pick", "data-testid": "shown-item" },
      element("span", { class: "tag" }, "shown to you"),
      element("p", { class: "film" }, titleOf(catalogue, one)),
      element("p", { class: "quiet" }, genresOf(catalogue, one).join(" · ")),
    ),
  );
  // On the screen first, then reported: what is billed was shown.
  fill(byId("shown"), ...display);
  await painted();
  const outcome = await delegate.shown(choice);
  // As they crossed the wire, and not as the page understood them.
  const offered = /** @type {WireOffer} */ (JSON.parse(new TextDecoder().decode(app.traffic.last(OFFERS)?.received ?? undefined)));
  const sent = app.traffic.last(IMPRESSIONS)?.sent ?? null;
  const asked = app.traffic.last(OFFERS)?.sent ?? null;
  const [item] = choice.items;
  fill(byId("show-said"), `Shown: ${titleOf(catalogue, item)}. The report: ${OUTCOMES[outcome] ?? outcome}.`);
  fill(
    byId("shown"),
    ...display,
    element(
      "div",
      { "data-testid": "policy" },
      element("p", {}, ...policyWords(offered, choice)),
      candidates(catalogue, offered, item),
    ),
    report(app, asked, sent, outcome),
  );
  const statement = await delegate.selectionStatement();
  showInference(byId("inference"), { ...choice.policy, epsilon: choice.epsilon }, statement);
}

/** When the browser has drawn what the page shows now. In a tab that is hidden it does so when somebody looks. */
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
