/** What came of asking: what left, what did not, what came back, and what was picked here. */

import { byId, element, fill, folded } from "./elements.js";
import { annotated, hexLines } from "./hex_dump.js";
import { picture } from "./picture.js";
import { readRequest } from "./request_bytes.js";
import { genresOf, titleOf } from "./titles.js";
import { bytes, counted } from "./words.js";

/** @typedef {import("./page.js").App} App */
/** @typedef {import("../../../../delegate/src/index.js").Recommendation} Recommendation */

/** @param {App} app @param {Recommendation} answer @param {Uint8Array | null} before */
export function show(app, answer, before) {
  const { catalogue, delegate } = app.person;
  const sent = readRequest(answer.sent, catalogue.names);
  const same =
    before !== null && before.length === answer.sent.length && before.every((byte, place) => byte === answer.sent[place]);
  fill(
    byId("said"),
    `Picked here: ${titleOf(catalogue, answer.picked[0])}. ${bytes(answer.sent.length)} left this device. ` +
      `${charged(answer.asked.from, same)}`,
  );
  fill(
    byId("results"),
    fallback(answer.asked.from),
    element("div", { class: "columns" }, answers(catalogue, answer), left(answer, sent)),
    element(
      "section",
      { class: "card", "aria-labelledby": "picture-title" },
      element("h2", { id: "picture-title" }, "What the server saw of you"),
      sent.empty
        ? element("p", {}, "Nothing: every number that left is 0, the same for everybody. The true profile is drawn beside it.")
        : null,
      answer.asked.from === "memo" || answer.asked.from === "older"
        ? element(
            "p",
            { class: "quiet" },
            "The noisy profile was drawn when this signal was first asked for; the true one is that of now. What " +
              "you rated since then is not in the signal, but the pick went by it.",
          )
        : null,
      picture(catalogue.names, delegate.features(), sent.values),
    ),
  );
}

/** @param {Recommendation["asked"]["from"]} from @param {boolean} same */
function charged(from, same) {
  if (from === "fresh") return "The ledger was charged for it before the noise was drawn.";
  if (from === "memo")
    return same
      ? "The same bytes were sent again: nothing was charged, and nothing new was told."
      : "This signal was drawn earlier and is kept: it was sent again, and nothing was charged.";
  return "Nothing was charged.";
}

/** @param {Recommendation["asked"]["from"]} from */
function fallback(from) {
  if (from !== "older" && from !== "nothing") return null;
  return element(
    "div",
    { class: "notice", "data-testid": "fallback", "data-from": from },
    element(
      "p",
      {},
      element("strong", {}, "The budget does not cover another signal with this noise. "),
      from === "older"
        ? "An older signal with this noise, paid for in an earlier period, was sent once more. The server learns " +
            "nothing that it was not told then; the films may suit who you were."
        : "So a signal that tells nothing was sent: zeros and a flag, the same for everybody, at no cost. The " +
            "server answered as it would answer anybody; the pick among its films was still made by your true " +
            "profile, here.",
    ),
    element(
      "p",
      { class: "quiet" },
      "It is no error, and it does not depend on what you rated: a refusal that did would itself be an answer.",
    ),
  );
}

/** @param {import("./titles.js").Catalogue} catalogue @param {Recommendation} answer */
function answers(catalogue, { slate, estimates, picked, received }) {
  const [low, high] = [Math.min(...estimates), Math.max(...estimates)];
  return element(
    "section",
    { class: "card here", "aria-labelledby": "answers-title" },
    element("h2", { id: "answers-title" }, "The answers"),
    element(
      "div",
      { class: "pick", "data-testid": "pick" },
      element("span", { class: "tag here" }, "picked here"),
      element("p", { class: "film" }, titleOf(catalogue, picked[0])),
      element("p", { class: "quiet" }, genresOf(catalogue, picked[0]).join(" · ")),
    ),
    element(
      "p",
      {},
      `The server sent ${counted(slate.length, "film")} and a small scorer (${bytes(received.length)}). The ` +
        "scorer was run here, on your true profile:",
    ),
    element(
      "ol",
      { class: "slate", "data-testid": "slate" },
      ...slate.map((item, place) => {
        const chosen = picked.includes(item);
        const estimate = element("span", { class: "estimate" });
        estimate.style.width = `${high > low ? 12 + (88 * (estimates[place] - low)) / (high - low) : 100}%`;
        return element(
          "li",
          { class: chosen ? "chosen" : null, "data-testid": "slate-item" },
          element(
            "span",
            { class: "title" },
            `${titleOf(catalogue, item)} `,
            chosen ? element("span", { class: "tag here" }, "picked here") : null,
          ),
          element("span", { class: "number" }, estimates.length ? estimates[place].toFixed(3) : "–"),
          element("span", { class: "track", "aria-hidden": "true" }, estimate),
        );
      }),
    ),
    element(
      "p",
      { class: "quiet" },
      "Numbers are local estimates; bars go from the lowest to the highest of these films. The server knows the " +
        "films and not the numbers, nor which one was picked.",
    ),
  );
}

/** @param {Recommendation} answer @param {import("./request_bytes.js").Sent} sent */
function left(answer, sent) {
  return element(
    "section",
    { class: "card out", "aria-labelledby": "left-title" },
    element(
      "h2",
      { id: "left-title" },
      "What left this device ",
      element("span", { class: "tag out", "data-testid": "byte-count" }, bytes(answer.sent.length)),
    ),
    element("p", {}, "These bytes, and around them the headers that your browser sends with every request. Each with its meaning:"),
    annotated(sent.fields),
    folded("All of them as plain bytes", element("pre", { "data-testid": "bytes-hex", tabindex: 0, role: "group", "aria-label": "The bytes that left" }, hexLines(answer.sent))),
    element("h3", {}, "What did not leave ", element("span", { class: "tag here" }, "stays here")),
    element(
      "ul",
      {},
      element("li", {}, "your ratings, and which films you rated"),
      element("li", {}, "the true numbers of your profile"),
      element("li", {}, "which film was picked, and the estimates"),
    ),
    element(
      "p",
      { class: "quiet" },
      "To be fair: the server also sees your network address and the time, and bytes that are sent again are a " +
        "pseudonym, by which it may know that the same device asks.",
    ),
  );
}
