/** Every request since the page was loaded, with what went and what came. */

import { byId, element, fill, folded } from "./elements.js";
import { bytes, counted } from "./words.js";
import { hexLines } from "./hex_dump.js";

/** @typedef {import("./server.js").Exchange} Exchange */

const MOST_SHOWN = 4096; // bytes of one message: a catalogue is long, and the same for everybody

export class Traffic {
  constructor() {
    /** @type {Exchange[]} */
    this.exchanges = [];
  }

  /** @param {Exchange} exchange */
  note(exchange) {
    this.exchanges.push(exchange);
    byId("traffic-list").prepend(row(exchange));
    const sum = (/** @type {"sent" | "received"} */ side) =>
      this.exchanges.reduce((total, one) => total + (one[side]?.length ?? 0), 0);
    fill(
      byId("traffic-sum"),
      `${counted(this.exchanges.length, "request")} · ${bytes(sum("sent"))} sent`,
      element("span", { class: "spare" }, ` · ${bytes(sum("received"))} received`),
    );
  }

  /**
   * The last exchange at a path, if there was one.
   * @param {string} ending
   * @returns {Exchange | undefined}
   */
  last(ending) {
    return this.exchanges.findLast((one) => pathOf(one).endsWith(ending));
  }
}

/** @param {Exchange} exchange */
function pathOf(exchange) {
  const url = new URL(exchange.path, location.origin);
  return url.pathname + url.search;
}

/** @param {Exchange} exchange */
function row(exchange) {
  const { method, sent, received, status } = exchange;
  const answer = status ? `${status}` : "no answer";
  return element(
    "li",
    { "data-testid": "exchange" },
    element(
      "details",
      {},
      element(
        "summary",
        {},
        element("code", {}, `${method} ${pathOf(exchange)}`),
        element("span", { class: sent?.length ? "tag out" : "tag" }, sent?.length ? `${bytes(sent.length)} sent` : "address only"),
        element("span", { class: "tag" }, `${answer}, ${bytes(received?.length ?? 0)} received`),
      ),
      content("Sent", sent, exchange.method === "GET" ? "nothing but the address" : "nothing"),
      content("Received", received, "nothing"),
    ),
  );
}

/** @param {string} head @param {Uint8Array | null} message @param {string} none */
function content(head, message, none) {
  if (!message?.length) return element("p", { class: "quiet" }, `${head}: ${none}.`);
  const text = readable(message);
  const cut = message.length > MOST_SHOWN ? `, the first ${bytes(MOST_SHOWN)} of it` : "";
  const hex = element("pre", { tabindex: 0, role: "group", "aria-label": "As bytes" }, hexLines(message.subarray(0, MOST_SHOWN)));
  return element(
    "div",
    {},
    element("p", { class: "quiet" }, `${head}: ${bytes(message.length)}${cut}`),
    text === null ? hex : element("pre", { tabindex: 0, role: "group", "aria-label": "As text" }, text.slice(0, MOST_SHOWN)),
    text === null ? null : folded("as bytes", hex),
  );
}

/** The text of a message, or null where it is none. @param {Uint8Array} message */
function readable(message) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(message);
    return /^[\[{]/.test(text.trimStart()) ? text : null;
  } catch {
    return null;
  }
}
