/** The slider of eta, and what the chosen one promises in plain words. The figures are the delegate's readings; nothing is drawn. */

import { byId, element, fill } from "./elements.js";
import { factor, roundedUp, worth } from "./words.js";

/** @typedef {import("./page.js").App} App */

const STOPS = ["0.05", "0.1", "0.2", "0.3", "0.5", "1", "2"]; // texts, so that 0.1 means one tenth exactly
const FIRST = "0.1"; // where the library starts too

/** @param {App} app @returns {() => string} the eta that is chosen */
export function startEta(app) {
  const slider = byId("eta");
  Object.assign(slider, {
    min: "0",
    max: String(STOPS.length - 1),
    step: "1",
    value: String(STOPS.indexOf(FIRST)),
    disabled: false,
  });
  const chosen = () => STOPS[Number(slider.value)];

  const show = () => {
    const eta = chosen();
    const readings = app.person.delegate.readings(eta);
    byId("eta-shown").textContent = eta;
    slider.setAttribute("aria-valuetext", `eta ${eta}, epsilon ${roundedUp(readings.perUnit)} per unit of distance`);
    fill(
      byId("reading"),
      element(
        "p",
        {},
        "One signal costs ",
        element("b", {}, `epsilon = ${roundedUp(readings.perUnit)}`),
        " per unit of distance between profiles (1/eta). Read at distances that mean something:",
      ),
      element(
        "ul",
        { class: "readings" },
        line("One film more", readings.oneRatingAdded, "With one more film rated, what the server sees becomes at most "),
        readings.oneRatingRemoved === null
          ? null
          : line("One film less", readings.oneRatingRemoved, "Without any one of your ratings, it becomes at most "),
        readings.oneRatingMoved === null
          ? null
          : line("One film on the other side", readings.oneRatingMoved, "With any one like turned into a dislike, or back, it becomes at most "),
        line("You or anybody", readings.anywhere, "Compared with any other person, at most "),
      ),
      element("p", {}, verdict(readings)),
      emptyBlocks(app.person.delegate.features()),
    );
    app.changed("eta");
  };

  slider.addEventListener("input", show);
  app.on("ratings", show);
  app.on("person", show);
  show();
  return chosen;
}

/** @param {string} head @param {number} epsilon @param {string} sentence */
function line(head, epsilon, sentence) {
  const { level, says } = worth(epsilon);
  return element(
    "li",
    {},
    element("span", { class: `level ${level}` }, element("b", {}, head), ": ", says),
    element(
      "span",
      {},
      sentence,
      element("b", {}, `${factor(epsilon)} times`),
      " more or less likely ",
      element("span", { class: "quiet" }, `(epsilon ${roundedUp(epsilon)})`),
      ".",
    ),
  );
}

/** @param {import("../../../../delegate/src/index.js").Readings} readings */
function verdict({ oneRatingAdded, oneRatingRemoved, oneRatingMoved, anywhere }) {
  const one = Math.max(oneRatingAdded, oneRatingRemoved ?? 0, oneRatingMoved ?? 0);
  if (worth(anywhere).level === "good")
    return (
      "Plainly: even your taste as a whole is mostly hidden. What the server offers then owes little to you, and " +
      "the pick that is made here does most of the work."
    );
  if (worth(one).level === "bad")
    return (
      "Plainly: this protects small differences only. Single ratings may show in a profile as short as yours, and " +
      "the server learns the coarse region of your taste. More noise, or more ratings, hide them better."
    );
  return (
    "Plainly: single ratings are covered, your taste as a whole is not. The server learns roughly what you like; " +
    "that is what it recommends by."
  );
}

/** A block without any film is where one rating shows most. @param {Float64Array} features */
function emptyBlocks(features) {
  const half = features.length / 2;
  const empty = [features.subarray(0, half), features.subarray(half)].map((block) => block.every((share) => share === 0));
  if (empty.every(Boolean)) return element("p", { class: "quiet" }, "You have rated nothing yet: the first film counts most.");
  if (!empty.some(Boolean)) return null;
  const missing = empty[0] ? "liked" : "disliked";
  return element(
    "p",
    { class: "quiet" },
    `None of your films counts as ${missing} yet. The first one that does moves that half of your profile from ` +
      "nothing to something, so it would show most: rate one, and the figure for one film more falls.",
  );
}
