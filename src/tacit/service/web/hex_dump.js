/** Bytes as people read them: plain lines, and the same bytes with what each group of them means. */

import { element } from "./elements.js";

/** @param {Uint8Array} content */
export function hex(content) {
  return Array.from(content, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
}

/** Eight bytes to a line, which fits a phone. @param {Uint8Array} content */
export function hexLines(content) {
  const lines = [];
  for (let from = 0; from < content.length; from += 8) {
    lines.push(`${from.toString(16).padStart(4, "0")}  ${hex(content.subarray(from, from + 8))}`);
  }
  return lines.join("\n");
}

/** @typedef {{ name: string, content: Uint8Array, means: string, part: "header" | "liked" | "disliked" }} Field */

/** @param {Field[]} fields */
export function annotated(fields) {
  return element(
    "ol",
    { class: "dump", "data-testid": "bytes", tabindex: 0, "aria-label": "The bytes, in the order in which they were sent" },
    ...fields.map(({ name, content, means, part }) =>
      element("li", { class: part }, element("code", {}, hex(content)), element("span", {}, element("b", {}, name), " ", means)),
    ),
  );
}
