/**
 * The delegate: a device in the browser that acts for one user. It keeps their profile in memory and a ledger in IndexedDB.
 *
 * Multi-selection sends one signal in each slot. Private selection reports exactly what was shown, once for each offer.
 */
import { scorerOf, type Catalogue, type ItemId, type Scorer } from "./catalogue.js";
import { Client, type Exchange } from "./client.js";
import { invalidMessage, refuseToSerialise, unknownName } from "./errors.js";
import { consentOf, Database, Displays, Ledger, REPORTED, setConsent, SHOWN, type Choice, type Statement, type Stores } from "./ledger.js";
import { checkBudget, checkLimits, checkSlots, moment, type Budget, type Limits, type Period } from "./limits.js";
import { rank } from "./mechanisms.js";
import { exactEta, guaranteeOf, Reply, Request, Signal } from "./messages/multi_selection.js";
import { isOffer, offerRequest, type Offer, type Outcome } from "./messages/private_selection.js";
import { ask, estimatorOf, readingsOf, slateOf, type Asked, type Readings, type SignalContext } from "./multi_selection.js";
import { systemNoise, type Noise } from "./noise.js";
import { choose, type ChoiceContext } from "./private_selection.js";
import { checkFeatures, featuresOf, Profile, versionOf } from "./profile.js";

export interface DelegateOptions {
  /** The server's origin; by default the page's own. */
  readonly server?: string;
  /** The name of the IndexedDB database. */
  readonly place?: string;
  /** What signals may cost, in epsilon per unit of L1 distance. Fixed when the database is first opened. */
  readonly budget: Budget;
  /** How often a fresh signal may be drawn: once in each of `perPeriod` equal parts of a day or month. Fixed like the budget. */
  readonly refresh?: Period;
  readonly perPeriod?: number;
  /** What offers may cost, for each server. */
  readonly limits?: Limits;
  readonly fetch?: typeof globalThis.fetch;
  readonly noise?: Noise;
  /** Returns milliseconds since 1970. */
  readonly clock?: () => number;
  /** Called with every request and its answer. */
  readonly onExchange?: (exchange: Exchange) => void;
}

export interface Recommendation {
  readonly picked: readonly ItemId[]; // the best items of the slate at the true features, best first
  readonly slate: readonly ItemId[]; // in the server's order
  readonly estimates: readonly number[]; // of the slate, at the true features; they stay on the device
  readonly asked: Asked;
  readonly sent: Uint8Array;
  readonly received: Uint8Array;
}

const TIDY_EVERY = 3_600_000; // milliseconds

export class Delegate {
  readonly #profile = new Profile();
  readonly #consent: ConsentGuard;
  readonly #client: Client;
  readonly #signals: Omit<SignalContext, "features">;
  readonly #choices: Omit<ChoiceContext, "quality" | "consented">;
  #scorer: Scorer | null = null;
  #tidied = -Infinity;

  private constructor(
    readonly catalogue: Catalogue,
    client: Client,
    signals: Omit<SignalContext, "features">,
    choices: Omit<ChoiceContext, "quality" | "consented">,
  ) {
    this.#client = client;
    this.#signals = signals;
    this.#choices = choices;
    this.#consent = new ConsentGuard(signals.ledger.database, this.#profile);
  }

  /** Loads the server's catalogue and opens the ledger. Throws `conflict` if the ledger was created with another budget or other slots. */
  static async open(options: DelegateOptions): Promise<Delegate> {
    const { place = "tacit", refresh = "month", perPeriod = 1, noise = systemNoise, clock = Date.now } = options;
    const budget = checkBudget(options.budget);
    const limits = checkLimits(options.limits);
    checkSlots(refresh, perPeriod, budget.per);
    const client = new Client(options.server ?? globalThis.location.origin, options.fetch, options.onExchange);
    const catalogue = await client.catalogue();
    const version = await versionOf(catalogue);
    const { dimension } = catalogue;
    const database = await Database.open(place);
    const ledger = new Ledger(database, clock);
    const subject = `me ${refresh} ${perPeriod}`;
    const selection = `selection ${client.origin}`;
    try {
      const { rounding } = guaranteeOf(exactEta(1), dimension);
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

  /** Adds a rating to the profile in memory. Nothing is sent or written. */
  rate(item: ItemId, value: number): void {
    const [index, first] = [this.#indexOf(item), this.#profile.size === 0];
    this.#profile.rate(index, value);
    if (first) this.#consent.startProfile();
  }

  /** Removes a rating. A signal that was already drawn does not change. */
  forget(item: ItemId): void {
    this.#profile.forget(this.#indexOf(item));
  }

  /** Removes all ratings. */
  wipe(): void {
    this.#profile.wipe();
  }

  /** A copy of the ratings, by item. */
  ratings(): ReadonlyMap<ItemId, number> {
    return new Map([...this.#profile.ratings()].map(([index, value]) => [this.catalogue.ids[index] as ItemId, value]));
  }

  /** The features of the profile. They stay on the device. */
  features(): Float64Array {
    return checkFeatures(featuresOf(this.catalogue, this.#profile.ratings()), this.catalogue.dimension);
  }

  /**
   * Returns this slot's signal. The first call charges and draws it; later calls return the same bytes, in every tab. Let the user choose
   * eta, never a server: signals with two etas are two signals, and both are charged.
   */
  async ask(eta: number | string): Promise<Asked> {
    const exact = exactEta(eta);
    await this.#consent.check(); // also before a stored signal is returned, because the pick depends on the profile too
    const features = (stores: Stores): Promise<Float64Array> => this.#consent.checkIn(stores).then(() => this.features());
    return ask(exact, { ...this.#signals, features });
  }

  /** Sends this slot's signal for a slate of `k` items and picks `t` of them on the device. The server does not learn which. */
  async recommend({ k = 5, t = 1, eta }: { k?: number; t?: number; eta: number | string }): Promise<Recommendation> {
    new Request(Signal.nothing(this.catalogue.dimension, eta), k, t); // throws on invalid k or t before any noise is drawn
    const started = performance.now();
    const asked = await this.ask(eta);
    const sent = new Request(asked.signal, k, t).toBytes();
    await nextTick(started);
    const received = await this.#client.slate(sent);
    const reply = Reply.fromBytes(received);
    if (reply.k !== k) throw invalidMessage("the reply is for another k than the request.");
    const slate = slateOf(reply, this.catalogue).map((index) => this.catalogue.ids[index] as ItemId);
    const estimates = estimatorOf(reply, this.catalogue.dimension)(this.features());
    const best = rank(estimates).slice(0, t);
    return { picked: best.map((index) => slate[index] as ItemId), slate, estimates, asked, sent, received };
  }

  /** What one signal reveals, in plain numbers. Draws and charges nothing. Show the result to the user only. */
  readings(eta: number | string): Readings {
    return readingsOf(exactEta(eta), this.catalogue, this.#profile.ratings(), this.#signals.noise.caveat === null);
  }

  /** What signals have spent in the current period, and what is left. */
  statement(): Promise<Statement> {
    return this.#signals.ledger.statement(this.#signals.subject);
  }

  /** Records the user's consent to private selection, with its date. Without consent, offers are answered from public data only. */
  consent(): Promise<void> {
    return setConsent(this.#signals.ledger.database, true, this.#now());
  }

  /** Records that the user withdrew their consent and wipes the profile, in every tab. Spent budget stays spent. */
  async revoke(): Promise<void> {
    this.#profile.wipe();
    await setConsent(this.#signals.ledger.database, false, this.#now()); // other tabs see this row and wipe their profiles
  }

  /** Whether the user consents now. */
  consented(): Promise<boolean> {
    return this.#consent.check();
  }

  /** Asks the server for an offer in a public context. Returns null (no fill) if there is none or the answer is not a valid offer. */
  async offer(context = ""): Promise<Offer | null> {
    const request = offerRequest(context, await this.consented());
    await this.#loadScorer();
    return this.#client.offer(request);
  }

  /**
   * Chooses what to show for an offer. The cost is on disk before the draw, and the choice before it is returned; the same token returns the
   * same items again. Returns null for an expired offer, and while or after another call chooses for the same token. Fetch the content of
   * all candidates first: fetching only the chosen item's content would reveal the choice.
   */
  async choose(offer: Offer): Promise<Choice | null> {
    if (!isOffer(offer)) return null;
    const now = this.#now();
    if (!(now - this.#tidied >= 0 && now - this.#tidied < TIDY_EVERY)) {
      this.#tidied = now;
      await this.#choices.displays.forget(now);
    }
    const started = performance.now();
    const scorer = this.#scorer;
    const quality = scorer === null ? null : (items: readonly string[]) => scorer(this.features(), items);
    const consented = (stores: Stores): Promise<boolean> => this.#consent.checkIn(stores);
    try {
      await this.#consent.check();
      return await choose(offer, { ...this.#choices, consented, quality });
    } finally {
      await nextTick(started);
    }
  }

  /** Records that the choice is on screen, then reports it. Returns "pending" if the server gave no final answer. */
  async shown(choice: Choice): Promise<Outcome | "pending"> {
    return this.#report(await this.#choices.displays.mark(choice.token, SHOWN));
  }

  /** Sends every report without a final answer again, with the same bytes. Returns how many are still pending. */
  async flush(): Promise<number> {
    await this.#choices.displays.forget(this.#now());
    let pending = 0;
    for (const choice of await this.#choices.displays.unreported()) {
      if ((await this.#report(choice)) === "pending") pending += 1;
    }
    return pending;
  }

  /** What choices have spent for this server in the current period, and what is left. */
  selectionStatement(): Promise<Statement> {
    return this.#choices.ledger.statement(this.#choices.subject);
  }

  /** Closes the database and wipes the profile, which was never written. */
  close(): void {
    this.wipe();
    this.#signals.ledger.database.close();
  }

  toJSON(): never {
    return refuseToSerialise("a delegate holds a profile, which");
  }

  async #report({ token, items }: Choice): Promise<Outcome | "pending"> {
    const outcome = await this.#client.report(token, items);
    if (outcome !== "pending") await this.#choices.displays.mark(token, REPORTED).catch(() => undefined); // may be deleted meanwhile
    return outcome;
  }

  /** Loads the public scorer. If that fails, offers are answered publicly, and the next offer tries again. */
  async #loadScorer(): Promise<void> {
    if (this.#scorer !== null) return;
    try {
      // the server may change its model between two parts; then all parts are loaded once more
      const parts = (await this.#client.scorer()) ?? (await this.#client.scorer());
      this.#scorer = parts && scorerOf(parts, this.catalogue);
    } catch {
      this.#scorer = null;
    }
  }

  #indexOf(item: ItemId): number {
    const index = this.catalogue.indexOf(item);
    // what the user rated is private, and so is what they tried to rate: the error shows no id
    if (index === undefined) throw unknownName("no such item in this catalogue: look it up with catalogue.find(text).");
    return index;
  }

  #now(): number {
    return moment(this.#signals.ledger.clock);
  }
}

/**
 * Wipes the profile of this tab after a revocation in any tab. Tabs share only the database, so each tab checks it before it reads its
 * profile.
 */
class ConsentGuard {
  #lastRevocation = 0; // when the profile was started
  #reading: Promise<void> = Promise.resolve();

  constructor(
    readonly database: Database,
    readonly profile: Profile,
  ) {}

  /** Notes that an empty profile got its first rating: earlier revocations do not apply to it. */
  startProfile(): void {
    const read = async (stores: Stores): Promise<void> => void (this.#lastRevocation = (await consentOf(stores)).revoked);
    // if the read fails, the older number stays: too much may be wiped, never too little
    this.#reading = this.database.transact("readonly", read).catch(() => undefined);
  }

  /** Returns whether the user consents now. Wipes a profile that was started before their last revocation. */
  async check(): Promise<boolean> {
    await this.#reading;
    return this.database.transact("readonly", (stores) => this.checkIn(stores));
  }

  /** The same within a transaction. */
  async checkIn(stores: Stores): Promise<boolean> {
    const { granted, revoked } = await consentOf(stores);
    if (revoked > this.#lastRevocation) this.profile.wipe();
    return granted;
  }
}

const TICK = 100; // milliseconds: a supported policy takes about 2 on a desktop computer and 10 on a slow phone

/** Waits until a full tenth of a second after `started` (performance.now()), so that the result's time does not reveal private work. */
export function nextTick(started: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, TICK - ((performance.now() - started) % TICK)));
}
