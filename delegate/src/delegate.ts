/**
 * The delegate: a device in the browser, beside one user, with her profile in its memory and a ledger in IndexedDB.
 *
 * Multi-selection: one signal leaves in each slot. Private selection: what was shown leaves, exactly, once for each offer.
 */
import { ask, type Asked, type Asking } from "./asking.js";
import { checkedBudget } from "./budgets.js";
import { Catalogue, type ItemId } from "./catalogue.js";
import { choose, type Choosing } from "./choosing.js";
import { BINARY, bodyOf, Client, JSON_TYPE, jsonBytes, jsonOf, type Answer } from "./client.js";
import { setConsent } from "./consent.js";
import { Database, type Stores } from "./database.js";
import { Displays, REPORTED, SHOWN, type Choice } from "./displays.js";
import { invalidMessage, refuseToBeWritten, unknownName } from "./errors.js";
import { exactEta } from "./eta.js";
import { checkedFeatures, featuresOf, versionOf } from "./features.js";
import { impression, offerRequest, outcomeOf, type Outcome } from "./impression.js";
import { Ledger, type Statement } from "./ledger.js";
import { checkedLimits } from "./limits.js";
import { estimator, placesOf } from "./multi_selection.js";
import { systemNoise } from "./noise.js";
import { isOffer, offerFromJSON, type Offer } from "./offer.js";
import type { DelegateOptions, Recommendation } from "./options.js";
import { ranked } from "./order.js";
import { moment, requireWithin } from "./periods.js";
import { Profile } from "./profile.js";
import { readingsOf, type Readings } from "./readings.js";
import { Reply } from "./reply.js";
import { Request } from "./request.js";
import { Revocations } from "./revocations.js";
import { partsOf, scorerOf, type PrivateScorer } from "./scoring.js";
import { promised, Signal } from "./signal.js";
import { checkedSlots } from "./slots.js";
import { nextTick } from "./ticks.js";

const TIDY_EVERY = 3_600_000; // milliseconds

export class Delegate {
  readonly #profile = new Profile();
  readonly #revocations: Revocations;
  readonly #client: Client;
  readonly #asking: Omit<Asking, "features">;
  readonly #choosing: Omit<Choosing, "quality" | "consented">;
  #scorer: PrivateScorer | null = null;
  #tidied = -Infinity;

  private constructor(
    readonly catalogue: Catalogue,
    client: Client,
    asking: Omit<Asking, "features">,
    choosing: Omit<Choosing, "quality" | "consented">,
  ) {
    this.#client = client;
    this.#asking = asking;
    this.#choosing = choosing;
    this.#revocations = new Revocations(asking.ledger.database, this.#profile);
  }

  /** Loads the server's catalogue and opens the ledger. Refused where the ledger was made with another budget or other slots. */
  static async open(options: DelegateOptions): Promise<Delegate> {
    const { place = "tacit", refresh = "month", perPeriod = 1, noise = systemNoise, clock = Date.now } = options;
    const budget = checkedBudget(options.budget);
    const limits = checkedLimits(options.limits);
    checkedSlots(refresh, perPeriod);
    requireWithin(refresh, budget.per);
    // called as a plain function: a browser's own fetch refuses to be a method of anything else
    const fetching = (...given: Parameters<typeof fetch>): Promise<Response> => (options.fetch ?? globalThis.fetch)(...given);
    const client = new Client(options.server ?? globalThis.location.origin, fetching, options.onExchange ?? (() => undefined));
    const catalogue = Catalogue.fromJSON(jsonOf(bodyOf(await client.get("/v1/catalogue", JSON_TYPE))));
    const version = await versionOf(catalogue);
    const { dimension } = catalogue;
    const database = await Database.open(place);
    const ledger = new Ledger(database, clock);
    const subject = `me ${refresh} ${perPeriod}`;
    const selection = `selection ${client.origin}`;
    try {
      const { rounding } = promised(exactEta(1), dimension);
      await ledger.agree(subject, { budget, protects: `features by L1 distance, + ${rounding}`, caveat: noise.caveat }, "me ");
      await ledger.agree(selection, { budget: limits.budget, protects: "one profile", caveat: noise.caveat });
    } catch (problem) {
      database.close();
      throw problem;
    }
    const displays = new Displays(database, client.origin);
    return new Delegate(
      catalogue,
      client,
      { ledger, subject, budget, refresh, perPeriod, noise, version, dimension },
      { ledger, subject: selection, displays, limits, noise },
    );
  }

  /** Adds a rating, in memory only: nothing leaves, and nothing is written. */
  rate(item: ItemId, value: number): void {
    const [place, first] = [this.#place(item), this.#profile.size === 0];
    this.#profile.rate(place, value);
    if (first) this.#revocations.begun();
  }

  /** Removes a rating. A signal that is already drawn stays what it is. */
  forget(item: ItemId): void {
    this.#profile.forget(this.#place(item));
  }

  /** Removes all ratings. */
  wipe(): void {
    this.#profile.wipe();
  }

  /** A copy of the ratings, by item. */
  ratings(): ReadonlyMap<ItemId, number> {
    return new Map([...this.#profile.ratings()].map(([place, value]) => [this.catalogue.ids[place] as ItemId, value]));
  }

  /** The features of the profile: they stay here. */
  features(): Float64Array {
    return checkedFeatures(featuresOf(this.catalogue, this.#profile.ratings()), this.catalogue.dimension);
  }

  /**
   * This slot's signal: drawn and charged the first time, after that the same bytes, in every tab. eta is the user's choice, never a
   * server's: signals with two etas are two signals, and both are charged.
   */
  async ask(eta: number | string): Promise<Asked> {
    const exact = exactEta(eta);
    await this.#revocations.heeded(); // also where there is a memo: the pick goes by the profile too
    const features = (stores: Stores): Promise<Float64Array> => this.#revocations.heed(stores).then(() => this.features());
    return ask(exact, { ...this.#asking, features });
  }

  /** Sends this slot's signal for a slate of `k` items and picks `t` of them here. The server does not learn which. */
  async recommend({ k = 5, t = 1, eta }: { k?: number; t?: number; eta: number | string }): Promise<Recommendation> {
    new Request(Signal.nothing(this.catalogue.dimension, eta), k, t); // refuses odd k and t before any noise
    const started = performance.now();
    const asked = await this.ask(eta);
    const sent = new Request(asked.signal, k, t).toBytes();
    await nextTick(started);
    const received = bodyOf(await this.#client.post("/v1/multi-selection", sent, BINARY));
    const reply = Reply.fromBytes(received);
    if (reply.k !== k) throw invalidMessage("the reply has another number of items than was asked for.");
    const slate = placesOf(reply, this.catalogue);
    const estimates = estimator(reply, this.catalogue.dimension)(this.features());
    const ids = slate.map((place) => this.catalogue.ids[place] as ItemId);
    return {
      picked: ranked(estimates)
        .slice(0, t)
        .map((place) => ids[place] as ItemId),
      slate: ids,
      estimates,
      asked,
      sent,
      received,
    };
  }

  /** What one signal promises, in plain numbers. Draws nothing and charges nothing. Show it to the user only. */
  readings(eta: number | string): Readings {
    return readingsOf(exactEta(eta), this.catalogue, this.#profile.ratings(), this.#asking.noise.caveat === null);
  }

  /** What signals have spent in the period under way, and what is left. */
  statement(): Promise<Statement> {
    return this.#asking.ledger.statement(this.#asking.subject);
  }

  /** She agrees that offers are chosen from by what is private. Dated, durable, and not so before it is said. */
  consent(): Promise<void> {
    return setConsent(this.#asking.ledger.database, true, this.#now());
  }

  /** She no longer does: from the next offer on nothing private is read. The profile is wiped; what was spent stays spent. */
  async revoke(): Promise<void> {
    this.#profile.wipe();
    await setConsent(this.#asking.ledger.database, false, this.#now()); // which wipes the profiles of other tabs
  }

  consented(): Promise<boolean> {
    return this.#revocations.heeded();
  }

  /** Asks the server for an offer in a public context. null, no fill, where there is none or what came is none. */
  async offer(context = ""): Promise<Offer | null> {
    const body = jsonBytes(offerRequest(context, await this.consented()));
    await this.#loadScorer();
    const answer = await this.#client.post("/v1/private-selection/offers", body, JSON_TYPE);
    if (answer.status === 204) return null;
    const content = bodyOf(answer);
    try {
      return offerFromJSON(jsonOf(content));
    } catch {
      return null; // whatever a server may have sent instead is no fill, and never an error
    }
  }

  /**
   * What to show for an offer; the same token again: the same items. It is on the disk when it is returned, and its cost before it was
   * drawn. null where it expired, and while or after another call was choosing for the same token. Fetch the content of all candidates
   * before: fetching that of the choice alone tells it.
   */
  async choose(offer: Offer): Promise<Choice | null> {
    if (!isOffer(offer)) return null;
    const now = this.#now();
    if (!(now - this.#tidied >= 0 && now - this.#tidied < TIDY_EVERY)) {
      this.#tidied = now;
      await this.#choosing.displays.forget(now);
    }
    const started = performance.now();
    const scorer = this.#scorer;
    const quality = scorer === null ? null : (items: readonly string[]) => scorer(this.features(), items);
    const consented = (stores: Stores): Promise<boolean> => this.#revocations.heed(stores);
    try {
      await this.#revocations.heeded();
      return await choose(offer, { ...this.#choosing, consented, quality });
    } finally {
      await nextTick(started);
    }
  }

  /** Notes, durably, that the choice is on the screen; then sends that. "pending" where the server gave no final answer. */
  async shown(choice: Choice): Promise<Outcome | "pending"> {
    return this.#report(await this.#choosing.displays.mark(choice.token, SHOWN));
  }

  /** Sends what was shown and has no final answer, the same bytes as before. Returns how many are still waiting. */
  async flush(): Promise<number> {
    await this.#choosing.displays.forget(this.#now());
    let waiting = 0;
    for (const choice of await this.#choosing.displays.between(SHOWN, SHOWN)) {
      if ((await this.#report(choice)) === "pending") waiting += 1;
    }
    return waiting;
  }

  /** What choices have spent for this server in the period under way, and what is left. */
  selectionStatement(): Promise<Statement> {
    return this.#choosing.ledger.statement(this.#choosing.subject);
  }

  /** Closes the database. The profile, which was not written, is gone. */
  close(): void {
    this.wipe();
    this.#asking.ledger.database.close();
  }

  toJSON(): never {
    return refuseToBeWritten("a delegate holds a profile, which");
  }

  async #report({ token, items }: Choice): Promise<Outcome | "pending"> {
    const answer = await this.#client.post("/v1/private-selection/impressions", jsonBytes(impression(token, items)), JSON_TYPE);
    const outcome = outcomeOf(answer);
    if (outcome !== "pending") await this.#choosing.displays.mark(token, REPORTED).catch(() => undefined); // forgotten meanwhile
    return outcome;
  }

  /** Without the public model offers are answered publicly, and it is tried again. */
  async #loadScorer(): Promise<void> {
    if (this.#scorer !== null) return;
    const part = (number: number): Promise<Answer> => this.#client.get(`/v1/private-selection/scorer?part=${number}`, BINARY);
    try {
      // the server may change its model between two parts: then all are asked for once more
      const parts = (await partsOf(part)) ?? (await partsOf(part));
      this.#scorer = parts && scorerOf(parts, this.catalogue);
    } catch {
      this.#scorer = null;
    }
  }

  #place(item: ItemId): number {
    const place = this.catalogue.place(item);
    // what she rated is private, also what she tried to: the error shows no id
    if (place === undefined) throw unknownName("there is no such item in this catalogue: look it up with catalogue.find(text).");
    return place;
  }

  #now(): number {
    return moment(this.#asking.ledger.clock);
  }
}
