/** Rating films: find or be reminded of one, give it stars, see the list. All of it happens in the page. */

import { combobox } from "./combobox.js";
import { byId, element, fill } from "./elements.js";
import { counted } from "./words.js";
import { genresOf, known, titleOf } from "./titles.js";
import { epsilonOf } from "./server.js";

/** @typedef {import("./page.js").App} App */
/** @typedef {import("./titles.js").ItemId} ItemId */

const STARS = [1, 2, 3, 4, 5];
const MOST_FOUND = 8;
const SUGGESTED = 30; // asked for
const POPULAR = 30; // the weight of popularity: well-known films, and not the most different ones
const SHOWN = 14; // at a time: the next one moves up when one is rated

/** @param {App} app */
export function startRating(app) {
  /** @type {ItemId[]} */
  let suggested = [];

  const field = byId("search");
  combobox(field, byId("found"), {
    find: (text) => app.person.catalogue.find(text, MOST_FOUND),
    label: (item) => titleOf(app.person.catalogue, item),
    note: (item) => genresOf(app.person.catalogue, item).join(", "),
    taken: (item) => rateThis(item),
  });

  /** Asks for the stars of one film. @param {ItemId} item */
  const rateThis = (item) => {
    const { catalogue, ratings } = app.person;
    const given = ratings.get(item);
    const options = STARS.map((value) =>
      element(
        "label",
        { title: counted(value, "star") },
        element("input", {
          type: "radio",
          name: "stars",
          value,
          checked: value === given,
          "aria-label": counted(value, "star"),
          onchange: () => {
            app.person.rate(item, value);
            app.changed("ratings");
          },
        }),
        element("span", { "aria-hidden": "true" }, "★"),
      ),
    );
    fill(
      byId("rating"),
      element(
        "fieldset",
        { class: "stars", "data-testid": "stars" },
        element(
          "legend",
          {},
          element("b", {}, titleOf(catalogue, item)),
          " ",
          element("span", { class: "quiet" }, genresOf(catalogue, item).join(", ")),
        ),
        element("div", {}, ...options),
      ),
    );
    const first = options.find((option) => /** @type {HTMLInputElement} */ (option.firstChild).checked) ?? options[0];
    /** @type {HTMLInputElement} */ (first.firstChild).focus({ preventScroll: true });
    byId("rating").scrollIntoView({ block: "nearest" });
  };

  const show = () => {
    const { catalogue, ratings, remembered } = app.person;
    fill(byId("how-many"), `among ${counted(catalogue.ids.length, "title")}`);
    byId("rated-none").hidden = ratings.size > 0;
    byId("forget").disabled = ratings.size === 0;
    fill(
      byId("rated-list"),
      ...[...ratings].reverse().map(([item, value]) => {
        const title = titleOf(catalogue, item);
        return element(
          "li",
          {},
          element("span", { class: "title" }, title),
          element(
            "button",
            { class: "given", "aria-label": `${counted(value, "star")} for ${title}: change`, onclick: () => rateThis(item) },
            element("span", { "aria-hidden": "true" }, "★".repeat(value)),
            element("span", { class: "faint", "aria-hidden": "true" }, "★".repeat(STARS.length - value)),
          ),
          element(
            "button",
            { class: "remove", "aria-label": `Remove ${title}`, "data-testid": "remove", onclick: () => removed(item) },
            "×",
          ),
        );
      }),
    );
    if (!remembered)
      fill(
        byId("remembered"),
        "They are never sent. This browser does not let the page remember them: they are gone when you leave.",
      );
    const left = suggested.filter((item) => known(catalogue, item) && !ratings.has(item)).slice(0, SHOWN);
    fill(
      byId("suggestions"),
      ...left.map((item) =>
        element(
          "li",
          {},
          element("button", { "data-testid": "suggestion", onclick: () => rateThis(item) }, titleOf(catalogue, item)),
        ),
      ),
    );
  };

  /** @param {ItemId} item */
  const removed = (item) => {
    app.person.forget(item);
    app.changed("ratings");
    byId("rated-list").querySelector("button.remove")?.focus(); // the focus must not fall back to the top
  };

  byId("forget").addEventListener("click", () => {
    app.person.forgetEverything();
    fill(byId("rating"));
    app.changed("ratings");
    field.focus();
  });

  /** Well-known films: a slate that anybody gets, so that asking for it tells nothing. */
  const suggest = async () => {
    const { releases } = await app.server.get("/v1/slates");
    if (!releases.length) return;
    const best = releases.reduce((/** @type {any} */ one, /** @type {any} */ other) =>
      epsilonOf(other.guarantee) > epsilonOf(one.guarantee) ? other : one,
    );
    const { slate } = await app.server.get(`/v1/slates/${encodeURIComponent(best.name)}?k=${SUGGESTED}&alpha=${POPULAR}`);
    suggested = slate.items;
    fill(
      byId("suggestions-from"),
      "The same list for everybody: the slate of the release ",
      element("code", {}, best.name),
      ". Its counts have noise, so that some are there by chance: that is what protects the people behind them.",
    );
    show();
  };

  app.on("ratings", show);
  app.on("person", () => {
    fill(byId("rating"));
    show();
  });
  field.disabled = false;
  show();
  suggest().catch(() => fill(byId("suggestions-from"), "This server suggests none. Search for a title above."));
}
