/**
 * One person: her delegate, which draws, charges and picks, and the ratings that this browser remembers for the page. The delegate
 * itself keeps ratings in memory only; that they outlast a visit is this page's doing, and it says so.
 */

import { Delegate } from "./delegate.js";
import { placeOf } from "./titles.js";

/** @typedef {import("../../../../delegate/src/index.js").Delegate} Device what delegate.js is made from */
/** @typedef {import("./titles.js").ItemId} ItemId */
/** @typedef {import("./server.js").Exchange} Exchange */

const BUDGET = { epsilon: 20, per: "month" }; // of signals, per unit of distance: this page's choice, agreed when a ledger is made
const FIRST = "tacit";
const PLACE = "tacit-page.place";
const RATINGS = "tacit-page.ratings.";

export class Person {
  /** @param {Device} delegate @param {string} place */
  constructor(delegate, place) {
    this.delegate = delegate;
    this.place = place;
    /** Whether the browser lets the page remember ratings. */
    this.remembered = true;
  }

  /** @type {ItemId[]} the rated items, the newest last: a delegate keeps no order */
  #order = [];
  /** @type {[ItemId, number][]} ratings of items that this catalogue lacks: a later one may have them again */
  #absent = [];
  /** @type {string | null} what this browser remembered when this tab last read or wrote it */
  #text = null;

  /** The person of the last visit, or the first one. @param {(exchange: Exchange) => void} onExchange */
  static async usual(onExchange) {
    return Person.#open(read(PLACE) ?? FIRST, onExchange);
  }

  /** A fresh profile and ledger, in this browser, under a name that nobody is told. @param {(exchange: Exchange) => void} onExchange */
  static async another(onExchange) {
    const name = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    const place = `${FIRST}-${name}`;
    const person = await Person.#open(place, onExchange);
    write(PLACE, place);
    return person;
  }

  /** @param {string} place @param {(exchange: Exchange) => void} onExchange */
  static async #open(place, onExchange) {
    // The ledger must outlive a shortage of space: what was spent would be forgotten with it. Browsers may decline.
    void navigator.storage?.persist?.().catch(() => undefined);
    const delegate = /** @type {Device} */ (/** @type {unknown} */ (await Delegate.open({ place, budget: BUDGET, onExchange })));
    const person = new Person(delegate, place);
    person.#recall(read(RATINGS + place));
    return person;
  }

  /**
   * Another tab of this browser may have written or forgotten ratings: hers are the same. Says whether anything changed. What is
   * stored is looked at, and no event relied on: a tab that was frozen heard none.
   */
  caughtUp() {
    const text = read(RATINGS + this.place);
    if (text === this.#text) return false;
    this.#recall(text);
    return true;
  }

  /** Takes over what this browser remembers, and nothing else. @param {string | null} text */
  #recall(text) {
    this.delegate.wipe();
    this.#text = text;
    const { catalogue } = this.delegate;
    /** @type {Map<ItemId, number>} */
    const present = new Map();
    this.#absent = [];
    for (const [item, value] of ratingsIn(text)) {
      const place = placeOf(catalogue, item); // also of an id that was a number and is a text now, or the other way round
      if (place < 0) this.#absent.push([item, value]);
      else present.set(catalogue.ids[place], value);
    }
    this.#order = [...present.keys()];
    for (const [item, value] of present) this.delegate.rate(item, value);
  }

  get catalogue() {
    return this.delegate.catalogue;
  }

  /** The newest last. @returns {Map<ItemId, number>} */
  get ratings() {
    const held = this.delegate.ratings();
    return new Map(this.#order.filter((item) => held.has(item)).map((item) => [item, Number(held.get(item))]));
  }

  /** @param {ItemId} item @param {number} value */
  rate(item, value) {
    this.caughtUp(); // this one change is made to what is remembered now
    this.delegate.rate(item, value);
    if (!this.#order.includes(item)) this.#order.push(item);
    this.#keep();
  }

  /** @param {ItemId} item */
  forget(item) {
    this.caughtUp();
    this.delegate.forget(item);
    this.#order = this.#order.filter((other) => other !== item);
    this.#keep();
  }

  /** All ratings that this browser remembers, also of people you were before. What left cannot be called back. */
  forgetEverything() {
    this.#wipe();
    removeAll();
  }

  /** From now on nothing private is read for offers. The delegate wipes the profile, so the page forgets it too. */
  async revoke() {
    this.#wipe(); // first, and whatever becomes of the note in the ledger: she has said so
    await this.delegate.revoke();
  }

  #wipe() {
    this.delegate.wipe();
    this.#order = [];
    this.#absent = [];
    this.#keep();
  }

  #keep() {
    const ratings = [...this.#absent, ...this.ratings];
    const [key, text] = [RATINGS + this.place, ratings.length ? JSON.stringify(ratings) : null];
    this.remembered = text === null ? remove(key) : write(key, text);
    this.#text = this.remembered ? text : read(key); // the old one, where a browser did not let it be replaced
  }
}

/** The ratings in a text; whatever else somebody may have written there is none. @param {string | null} text @returns {[ItemId, number][]} */
function ratingsIn(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter(isRating) : [];
  } catch {
    return [];
  }
}

/** @param {unknown} found @returns {found is [ItemId, number]} */
function isRating(found) {
  const [item, value] = Array.isArray(found) ? found : [];
  return ["number", "string"].includes(typeof item) && typeof value === "number" && value >= 1 && value <= 5;
}

// A browser may refuse its storage to a page, by an error even on reading: the page then works for this visit.

/** @param {string} key */
function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string} value */
function write(key, value) {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

function removeAll() {
  try {
    Object.keys(localStorage)
      .filter((key) => key.startsWith(RATINGS))
      .forEach((key) => localStorage.removeItem(key));
  } catch {
    // nothing is remembered then
  }
}

/** @param {string} key */
function remove(key) {
  try {
    localStorage.removeItem(key);
    return true;
  } catch {
    return false;
  }
}
