/**
 * The device's durable record, in IndexedDB: the privacy ledger of charges, the displays of private selection, and the user's consents. It
 * holds nothing private, only charges, released signals and choices.
 *
 * A charge is checked and written in one transaction and is on disk before anything is drawn, so a crash in between loses budget, never
 * privacy. The released bytes are then kept with their charge. The first caller to keep them wins, and every later one sends those bytes.
 */
import { conflict, invalidParameter, TacitError, unknownName } from "./errors.js";
import { DAY, formatUnits, moment, periodText, renewalOf, unitsUp, windowOf, type Budget, type Cost } from "./limits.js";
import type { Policy } from "./messages/private_selection.js";

/** What is agreed with a subject. Terms never change afterwards. */
export interface Terms {
  readonly budget: Budget;
  readonly protects: string;
  readonly caveat: string | null; // of the noise
}

/** A charge that is on disk. */
export interface Receipt {
  readonly fresh: boolean; // false if this id was charged before
  readonly stored: Uint8Array | null; // the bytes kept for this charge, if any
}

/** The charges in the current window and what is left of the budget. `spent` and `left` are exact decimals. */
export interface Statement {
  readonly budget: Budget;
  readonly spent: string;
  readonly left: string;
  readonly charges: number;
  readonly renews: Date | null; // when the next calendar window opens; null for a lifetime or a sliding window
  readonly entries: readonly { readonly at: Date; readonly what: string; readonly epsilon: string }[]; // oldest first
}

interface Charge extends Cost {
  readonly number: number;
  readonly subject: string;
  readonly id: string;
  readonly at: number; // milliseconds since 1970; never decreases from one charge to the next
  readonly total: number; // of the subject, including this charge
  readonly content: Uint8Array | null;
}

/** The privacy ledger. Every charge is durable, and no subject can spend more than its budget. */
export class Ledger {
  constructor(
    readonly database: Database,
    readonly clock: () => number,
  ) {}

  /** Agrees terms with a subject, once. Of all subjects whose names start with `unique`, the database accepts only the first. */
  async agree(subject: string, terms: Terms, unique?: string): Promise<void> {
    await this.database.transact("readwrite", async (stores) => {
      const table = stores("terms");
      const rows = (await result(table.getAll())) as { subject: string; terms: string }[];
      const agreed = rows.find((row) => (unique === undefined ? row.subject === subject : row.subject.startsWith(unique)));
      const written = JSON.stringify(terms);
      if (agreed === undefined) table.put({ subject, terms: written });
      else if (agreed.subject !== subject || agreed.terms !== written) {
        throw conflict(
          "this database was created with another budget, refresh, perPeriod, noise or number of features. Open it with the original ones.",
        );
      }
    });
  }

  /**
   * Checks and writes a charge in one transaction. Charging the same `id` again costs nothing. A refused charge leaves no trace. `ready` runs
   * in the same transaction, after the charge was found to fit and before it is written; if it throws, the charge is undone.
   */
  async charge(subject: string, id: string, cost: Cost, ready?: (stores: Stores) => unknown): Promise<Receipt> {
    const now = moment(this.clock);
    return this.database.transact("readwrite", async (stores) => {
      const row = await chargeOf(stores, subject, id);
      if (row !== undefined) {
        if (row.amount !== cost.amount || row.unprotected !== cost.unprotected) {
          throw conflict("this id was already charged with another cost.");
        }
        return { fresh: false, stored: row.content };
      }
      const charges = stores("charges");
      const tip = await last<Charge>(charges);
      const at = Math.max(now, tip?.at ?? 0); // the ledger's time never goes back, even if the clock does
      const { budget, total, spent } = await spentBy(stores, subject, at);
      const allowed = unitsUp(budget.epsilon);
      if (spent + cost.amount > allowed) {
        const left = `${formatUnits(allowed - spent)} of ${formatUnits(allowed)} is left in ${periodText(budget)}`;
        throw new TacitError("budget-exhausted", `a charge of ${formatUnits(cost.amount)} was refused; ${left}.`);
      }
      await ready?.(stores);
      charges.add({ number: (tip?.number ?? 0) + 1, subject, id, at, ...cost, total: total + cost.amount, content: null } satisfies Charge);
      return { fresh: true, stored: null };
    });
  }

  /** Keeps the bytes released for a charge, unless some are kept already. Returns the kept bytes: send those. */
  keep(subject: string, id: string, content: Uint8Array): Promise<Uint8Array> {
    return this.database.transact("readwrite", async (stores) => {
      const row = await chargeOf(stores, subject, id);
      if (row === undefined) throw conflict("cannot keep a release that was not charged.");
      if (row.content === null) stores("charges").put({ ...row, content });
      return row.content ?? content;
    });
  }

  /** Returns the bytes kept for a charge. Reading costs nothing. */
  stored(subject: string, id: string): Promise<Uint8Array | null> {
    return this.database.transact("readonly", async (stores) => (await chargeOf(stores, subject, id))?.content ?? null);
  }

  /** Returns the newest bytes kept under an id with this ending. They are already paid for. */
  newest(subject: string, ending: string): Promise<Uint8Array | null> {
    return this.database.transact("readonly", async (stores) => {
      const rows = (await result(stores("charges").index("at").getAll(since(subject, -Infinity)))) as Charge[];
      return rows.reverse().find((row) => row.content !== null && row.id.endsWith(ending))?.content ?? null;
    });
  }

  async statement(subject: string): Promise<Statement> {
    const now = moment(this.clock);
    return this.database.transact("readonly", async (stores) => {
      const { budget, spent, at } = await spentBy(stores, subject, now);
      const range = since(subject, windowOf(budget, at));
      const rows = (await result(stores("charges").index("at").getAll(range))) as Charge[];
      const renews = renewalOf(budget, at);
      return {
        budget,
        spent: formatUnits(spent),
        left: formatUnits(Math.max(0, unitsUp(budget.epsilon) - spent)),
        charges: rows.length,
        renews: renews === null ? null : new Date(renews),
        entries: rows.map((row) => ({ at: new Date(row.at), what: row.id, epsilon: formatUnits(row.amount) })),
      };
    });
  }
}

const chargeOf = (stores: Stores, subject: string, id: string): Promise<Charge | undefined> =>
  result(stores("charges").index("id").get([subject, id]));

/** A subject's total spending, and its spending in the window of `now`, or of its last charge if that is later. */
async function spentBy(stores: Stores, subject: string, now: number) {
  const agreed = (await result(stores("terms").get(subject))) as { terms: string } | undefined;
  if (agreed === undefined) throw new TacitError("unknown-subject", "the ledger has no terms for this subject.");
  const { budget } = JSON.parse(agreed.terms) as Terms;
  const index = stores("charges").index("at");
  const newest = await last<Charge>(index, since(subject, -Infinity));
  const at = Math.max(now, newest?.at ?? 0);
  const total = newest?.total ?? 0;
  const start = windowOf(budget, at);
  const before =
    start === -Infinity ? null : await last<Charge>(index, IDBKeyRange.bound([subject, -Infinity], [subject, start], false, true));
  return { budget, at, total, spent: total - (before?.total ?? 0) };
}

const since = (subject: string, start: number): IDBKeyRange => IDBKeyRange.bound([subject, start], [subject, Infinity]);

const GRACE = 86_400; // seconds for which a display outlives its offer, so that a repeated token finds its choice

/** The states of a display. A display only moves forward. */
const CLAIMED = -1;
const CHOSEN = 0;
export const SHOWN = 1;
export const REPORTED = 2;

/** What to show, without the reasons. `policy` is the one that was applied: a function of public data. */
export interface Choice {
  readonly token: string;
  readonly items: readonly string[]; // ids as texts, one for each slot
  readonly expires: number; // seconds since 1970
  readonly policy: Policy;
  readonly consented: boolean;
  readonly epsilon: number; // what was charged
}

interface Display extends Choice {
  readonly server: string;
  readonly state: number;
}

/**
 * The choices made for one server's offers. A choice is on disk before it is shown, and marked as shown before it is reported. So everything
 * billed was shown, and each token has one draw, wherever the device crashes.
 */
export class Displays {
  constructor(
    readonly database: Database,
    readonly server: string,
  ) {}

  /** Returns the choice made for this token, or null. */
  find(token: string): Promise<Choice | null> {
    return this.database.transact("readonly", async (stores) => {
      const display = (await result(stores("displays").get([this.server, token]))) as Display | undefined;
      return display === undefined ? null : choiceOf(display);
    });
  }

  /**
   * Claims a token: true for the first call in any tab, which alone may write a choice. If that call fails, nobody writes one, because the
   * time that scoring takes must not decide which of two calls is shown.
   */
  claim(token: string, expires: number): Promise<boolean> {
    const key = `claim ${token}`; // no offer has such a token: it is not hexadecimal
    return this.#add({ token: key, expires, state: CLAIMED }).then((existing) => existing === undefined);
  }

  /** Writes a choice, unless there is one already. Returns the written choice: show only that. */
  choose(choice: Choice): Promise<Choice> {
    return this.#add({ ...choice, state: CHOSEN }).then((existing) => choiceOf(existing ?? choice));
  }

  /** Records that a choice is on screen (SHOWN) or that the server gave its final answer (REPORTED). */
  mark(token: string, state: number): Promise<Choice> {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const display = (await result(table.get([this.server, token]))) as Display | undefined;
      if (display === undefined) throw unknownName("there is no choice for this offer: call choose first.");
      if (state > display.state + 1) throw invalidParameter("a choice must be marked as shown before it is reported.");
      if (state > display.state) table.put({ ...display, state });
      return choiceOf(display);
    });
  }

  /** Returns the choices that were shown and not yet reported, ordered by token, an order that carries no information. */
  unreported(): Promise<Choice[]> {
    const range = IDBKeyRange.bound([this.server, SHOWN], [this.server, SHOWN, []]); // an array sorts after every string
    return this.database.transact("readonly", async (stores) => {
      return ((await result(stores("displays").index("state").getAll(range))) as Display[]).map(choiceOf);
    });
  }

  /** Deletes displays whose offers expired more than 24 hours before `now` (milliseconds), so that servers cannot fill the database. */
  forget(now: number): Promise<void> {
    const lapsed = IDBKeyRange.upperBound(Math.ceil(now / 1000) - GRACE, true);
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      for (const key of await result(table.index("expires").getAllKeys(lapsed))) table.delete(key);
    });
  }

  /** Adds a row unless its key exists. Returns the existing row, if any. */
  #add(row: Partial<Display> & { token: string }): Promise<Display | undefined> {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const existing = (await result(table.get([this.server, row.token]))) as Display | undefined;
      if (existing === undefined) table.add({ ...row, server: this.server });
      return existing;
    });
  }
}

const choiceOf = ({ server: _, state: __, ...choice }: Partial<Display> & Choice): Choice => Object.freeze(choice);

interface Consent {
  readonly number: number;
  readonly granted: boolean;
  readonly day: number; // since 1970
}

/**
 * Records that the user consents, or no longer does. Rows are never altered. Granting consent twice writes one row and keeps the first day.
 * Every revocation writes a row, because each also wipes what other tabs collected since the last one.
 */
export function setConsent(database: Database, granted: boolean, now: number): Promise<void> {
  return database.transact("readwrite", async (stores) => {
    const table = stores("consents");
    const current = await last<Consent>(table);
    if (granted && current?.granted) return;
    const today = Math.max(Math.floor(now / DAY), current?.day ?? 0); // days never go back, even if the clock does
    const day = current?.granted === granted ? current.day : today;
    await result(table.add({ number: (current?.number ?? 0) + 1, granted, day } satisfies Consent));
  });
}

/** Whether the user consents now (false until they say so), and the number of their last revocation. */
export async function consentOf(stores: Stores): Promise<{ granted: boolean; revoked: number }> {
  const { number, granted } = (await last<Consent>(stores("consents"))) ?? { number: 0, granted: false };
  return { granted, revoked: number - Number(granted) }; // a grant is one row, so the row before it is a revocation
}

const VERSION = 1;
const STORES = ["terms", "charges", "displays", "consents"];

/** The stores of a transaction, by name. */
export type Stores = (name: string) => IDBObjectStore;

/** The IndexedDB database that all tabs of an origin share. */
export class Database {
  private constructor(readonly db: IDBDatabase) {
    db.onversionchange = () => db.close(); // do not block an upgrade by a newer page, or the deletion of site data
  }

  static async open(name: string): Promise<Database> {
    try {
      const request = indexedDB.open(name, VERSION);
      request.onupgradeneeded = () => createStores(request.result);
      return new Database(await result(request));
    } catch (problem) {
      throw unavailable(problem);
    }
  }

  /**
   * Runs `work` in one transaction over all stores. When this returns, the transaction is on disk; if `work` throws, all of it is undone.
   * Write transactions run one after the other, in all tabs.
   */
  async transact<T>(mode: IDBTransactionMode, work: (stores: Stores) => Promise<T>): Promise<T> {
    let transaction: IDBTransaction | undefined;
    try {
      const begun = (transaction = this.db.transaction(STORES, mode, { durability: "strict" }));
      const complete = new Promise((resolve, reject) => {
        begun.oncomplete = resolve;
        begun.onabort = () => reject(begun.error);
      });
      complete.catch(() => undefined); // awaited below, unless the work throws first
      const value = await work((name) => begun.objectStore(name));
      await complete;
      return value;
    } catch (problem) {
      try {
        transaction?.abort();
      } catch {
        // the transaction has already ended
      }
      throw unavailable(problem);
    }
  }

  close(): void {
    this.db.close();
  }
}

function createStores(db: IDBDatabase): void {
  db.createObjectStore("terms", { keyPath: "subject" });
  const charges = db.createObjectStore("charges", { keyPath: "number" });
  charges.createIndex("id", ["subject", "id"], { unique: true });
  charges.createIndex("at", ["subject", "at"]);
  const displays = db.createObjectStore("displays", { keyPath: ["server", "token"] });
  displays.createIndex("state", ["server", "state", "token"]);
  displays.createIndex("expires", "expires");
  db.createObjectStore("consents", { keyPath: "number" });
}

/** Waits for a request's result. */
function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Returns the last record of a range, or null. */
async function last<T>(source: IDBObjectStore | IDBIndex, range?: IDBKeyRange): Promise<T | null> {
  const cursor = await result(source.openCursor(range, "prev"));
  return cursor === null ? null : (cursor.value as T);
}

function unavailable(problem: unknown): TacitError {
  if (problem instanceof TacitError) return problem;
  const name = (problem as Error | null)?.name;
  return new TacitError("ledger-unavailable", `the browser's database cannot be read or written now (${name}).`);
}
