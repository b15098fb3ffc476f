/** What went wrong, and what to do about it. No message shows a private value, and no error of the program is hidden. */

import { element } from "./elements.js";

/** @typedef {{ title: string, advice: string }} Problem */

/** @type {Record<string, Problem>} by the stable codes of errors */
const KNOWN = {
  unreachable: {
    title: "The server does not answer.",
    advice:
      "Check that it is running and that you are connected, then try again. Nothing was lost: what was drawn is " +
      "kept, and the same bytes are sent again.",
  },
  "too-many-requests": {
    title: "The server asks you to slow down.",
    advice: "Wait a little, then try again. The same bytes will be sent.",
  },
  "not-ready": { title: "The server is still starting.", advice: "Wait a few seconds, then try again." },
  "ledger-unavailable": {
    title: "A ledger cannot be read or written now.",
    advice:
      "Nothing leaves without being charged first. Free some disk space, leave private browsing, or close other " +
      "windows of this page; then try again.",
  },
  conflict: {
    title: "The ledger in this browser was made under other terms.",
    advice:
      "It has another budget or other features than this page asks for, and what was promised stays promised. For " +
      "a demonstration you may open a fresh one.",
  },
  "storage-unavailable": {
    title: "This browser does not let the page store anything.",
    advice:
      "The ledger has to be kept: without it the same noise could not be sent again, and fresh noise each time " +
      "would be no protection. Allow storage for this address, or leave private browsing.",
  },
  "ledger-gone": {
    title: "The ledger was closed or deleted while this page was open.",
    advice: "Load the page again. If you cleared this site's data, what was spent is forgotten with it.",
  },
  "system-noise-unavailable": {
    title: "The browser gives no secure random numbers.",
    advice: "Without them nothing may leave. Use a current browser.",
  },
  unauthorised: {
    title: "The server wants a key for this.",
    advice: "Its operator may allow it to everybody: the setting is open_counts.",
  },
  forbidden: { title: "The server does not allow this.", advice: "Ask its operator." },
  "not-found": { title: "This server does not offer that.", advice: "Its operator has not switched it on." },
};

/** @param {unknown} error @returns {Problem} */
export function explained(error) {
  const code = /** @type {{ code?: unknown }} */ (error)?.code;
  const name = error instanceof Error ? error.name : "";
  if (code === "ledger-unavailable" && /InvalidStateError/.test(String(error))) return KNOWN["ledger-gone"];
  if (code === "ledger-unavailable" && /SecurityError|UnknownError/.test(String(error))) return KNOWN["storage-unavailable"];
  if (typeof code === "string" && KNOWN[code]) return KNOWN[code];
  // Messages of the delegate begin with their code, for logs; a person reads the rest.
  const said = sentence((error instanceof Error ? error.message : String(error)).replace(`${code}: `, ""));
  if (error instanceof TypeError && /fetch|network|load failed/i.test(said)) return KNOWN.unreachable;
  if (["SecurityError", "QuotaExceededError", "UnknownError"].includes(name))
    return KNOWN["storage-unavailable"];
  return {
    title: said || "Something failed.",
    advice: typeof code === "string" ? `(${code})` : "Load the page again; if it stays, tell the operator of this server.",
  };
}

/** @param {string} text */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** @param {unknown} error @param {() => void} [again] */
export function notice(error, again) {
  const problem = explained(error);
  if (!(error instanceof Error) || !("code" in error)) console.error(error);
  return element(
    "div",
    { class: "notice bad", "data-testid": "problem" },
    element("p", {}, element("strong", {}, problem.title), " ", problem.advice),
    again && element("button", { class: "plain", onclick: again }, "Try again"),
  );
}

/** Whether this page may work at all; null where it may. @returns {Problem | null} */
export function obstacle() {
  if (!isSecureContext) {
    return {
      title: "This address is not a secure one.",
      advice:
        "A page that was changed on its way could send anything. Open it by https, or on this computer as " +
        "http://localhost or http://127.0.0.1.",
    };
  }
  if (!("indexedDB" in globalThis)) return KNOWN["storage-unavailable"];
  return null;
}
