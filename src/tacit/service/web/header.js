/** Which server this is, which model it has, and what the people behind the model were promised: as the server says it. */

import { byId, element, fill } from "./elements.js";
import { explained } from "./problems.js";
import { epsilonOf } from "./server.js";
import { counted, day, factor, roundedUp } from "./words.js";

/** @typedef {import("./page.js").App} App */

/** @param {App} app */
export async function startHeader(app) {
  fill(byId("facts"), ...fact("Server", location.host));
  try {
    const model = await app.server.get("/v1/model");
    fill(
      byId("facts"),
      ...fact("Server", location.host),
      ...fact(
        "Model",
        `${model.name} `,
        element("code", { title: model.version, "data-testid": "model-version" }, String(model.version).slice(0, 12)),
      ),
      ...fact("Knows", `${counted(model.items, "film")}, ${counted(model.look_alikes, "look-alike")}`),
      ...published(model.published),
    );
    fill(byId("promise"), ...promise(model.guarantee));
  } catch (error) {
    fill(
      byId("promise"),
      element("p", {}, `What the people behind this model were promised is not known. ${explained(error).title}`),
    );
  }
}

/** @param {string} head @param {...(Node | string)} content */
function fact(head, ...content) {
  return [element("div", {}, element("dt", {}, head), element("dd", {}, ...content))];
}

/** @param {unknown} when a date, as text or in seconds; or something that is none */
function published(when) {
  const date = typeof when === "string" ? new Date(when) : typeof when === "number" ? new Date(when * 1000) : null;
  return date && !Number.isNaN(date.getTime()) ? fact("Published", day(date)) : [];
}

/** @param {import("./server.js").Guarantee} guarantee */
function promise(guarantee) {
  const epsilon = epsilonOf(guarantee);
  const assumed = guarantee.assumes.length
    ? [
        element(
          "details",
          {},
          element("summary", {}, Number.isFinite(epsilon) ? "Under these assumptions" : "In the server's words"),
          element("ul", {}, ...guarantee.assumes.map((one) => element("li", {}, one))),
        ),
      ]
    : [];
  if (!Number.isFinite(epsilon)) {
    return [
      element(
        "p",
        {},
        element("strong", { class: "level bad" }, "No guarantee"),
        " for the people whose ratings made this model: it was fitted to them without noise, or holds some of " +
          "them in the clear. What follows protects ",
        element("em", {}, "you"),
        ", who ask; it does not protect them.",
      ),
      ...assumed,
    ];
  }
  const delta = guarantee.delta ? `, delta = ${roundedUp(guarantee.delta)}` : "";
  return [
    element(
      "p",
      {},
      "The people whose ratings made this model were promised ",
      element("strong", { class: "level good" }, `epsilon = ${roundedUp(epsilon)}${delta}`),
      `: with or without any one of them, the model is at most ${factor(epsilon)} times more or less likely to be what it is.`,
    ),
    ...assumed,
  ];
}
