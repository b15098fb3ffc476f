/** The page: opens the delegate, fills the header, starts the tabs. Everything private happens in delegate.js; see person.js. */

import { startChoose } from "./choose.js";
import { byId, element, fill } from "./elements.js";
import { startHeader } from "./header.js";
import { Person } from "./person.js";
import { notice, obstacle } from "./problems.js";
import { startRecommend } from "./recommend.js";
import { Server } from "./server.js";
import { startSlates } from "./slates.js";
import { startTabs } from "./tabs.js";
import { Traffic } from "./traffic.js";

/**
 * What the parts of the page share. They tell each other of changes: "ratings", "eta", "person" (another one now), "tab".
 * @typedef {"ratings" | "eta" | "person" | "tab"} Change
 */
export class App {
  constructor() {
    this.traffic = new Traffic();
    this.server = new Server((exchange) => this.traffic.note(exchange));
    this.tab = "";
    this.#events = new EventTarget();
  }

  #events;
  /** @type {Person | null} */
  #person = null;

  /** @returns {Person} */
  get person() {
    if (!this.#person) throw new Error("the page has opened no delegate yet");
    return this.#person;
  }

  /** @param {Change} what @param {() => void} listener */
  on(what, listener) {
    this.#events.addEventListener(what, listener);
  }

  /** @param {Change} what */
  changed(what) {
    this.#events.dispatchEvent(new Event(what));
  }

  /** What another tab of this browser wrote or forgot is so here too. */
  catchUp() {
    if (this.person.caughtUp()) this.changed("ratings");
  }

  /** @param {(note: (exchange: import("./server.js").Exchange) => void) => Promise<Person>} open */
  async become(open) {
    const opened = await open((exchange) => this.traffic.note(exchange));
    this.#person?.delegate.close();
    this.#person = opened;
  }
}

async function start() {
  const app = new App();
  startTabs((name) => {
    app.tab = name;
    app.changed("tab");
  });
  const forbidden = obstacle();
  if (forbidden) {
    fill(byId("trouble"), element("p", { class: "notice bad" }, element("strong", {}, forbidden.title), " ", forbidden.advice));
    return;
  }
  startHeader(app);
  startSlates(app); // needs no delegate
  await begin(app);
}

/** @param {App} app @param {typeof Person.usual} [open] */
async function begin(app, open = Person.usual) {
  fill(byId("trouble"));
  try {
    await app.become((note) => open(note));
  } catch (error) {
    fill(
      byId("trouble"),
      notice(error, () => {
        startHeader(app);
        void begin(app);
      }),
      fresh(app, error),
    );
    return;
  }
  startRecommend(app);
  startChoose(app);
  addEventListener("storage", () => app.catchUp());
  addEventListener("pageshow", (event) => event.persisted && app.catchUp()); // back from where no event reached it
  document.addEventListener("visibilitychange", () => app.catchUp());
  byId("another-person").addEventListener("click", async () => {
    try {
      await app.become((note) => Person.another(note));
      app.changed("person");
    } catch (error) {
      fill(byId("trouble"), notice(error));
    }
  });
}

/**
 * A ledger that was made under other terms is not opened under these: the way out, for a demonstration.
 * @param {App} app
 * @param {any} error
 */
function fresh(app, error) {
  return (
    error?.code === "conflict" &&
    element("button", { class: "plain", onclick: () => void begin(app, Person.another) }, "Open a fresh ledger (demonstration)")
  );
}

await start();
