/**
 * The privacy ledger of one device: what was charged, durably, and never more than was promised.
 *
 * A charge is checked and written in one transaction, and is on the disk before anything is drawn: a crash in between loses budget,
 * never privacy. What was drawn is then kept with its charge; the first to do so wins, and everybody sends that.
 */
import { renewalOf, shown, spanOf, unitsUp, windowOf, type Budget, type Cost } from "./budgets.js";
import { answer, Database, last, type Stores } from "./database.js";
import { conflict, TacitError } from "./errors.js";
import { moment } from "./periods.js";

/** What is agreed with a subject, for good: a promise is kept, not edited. */
export interface Terms {
  readonly budget: Budget;
  readonly protects: string;
  readonly caveat: string | null; // of the noise
}

/** A charge that is on the disk. `stored` is what was drawn for it, if that was kept. */
export interface Receipt {
  readonly fresh: boolean; // false where this id had been charged before
  readonly stored: Uint8Array | null;
}

/** What was charged in the window that is under way, and what is left of it; `spent` and `left` are exact decimals. */
export interface Statement {
  readonly budget: Budget;
  readonly spent: string;
  readonly left: string;
  readonly charges: number;
  readonly renews: Date | null; // when the calendar opens the next window; null for a lifetime, and where the window slides
  readonly entries: readonly { readonly at: Date; readonly what: string; readonly epsilon: string }[]; // oldest first
}

interface Row extends Cost {
  readonly number: number;
  readonly subject: string;
  readonly id: string;
  readonly at: number; // milliseconds since 1970; never falls from one row to the next
  readonly total: number; // of the subject, with this charge
  readonly content: Uint8Array | null;
}

export class Ledger {
  constructor(
    readonly database: Database,
    readonly clock: () => number,
  ) {}

  /** Agrees terms with a subject. `alone` is how the names of subjects begin of which there may be one: the first. */
  async agree(subject: string, terms: Terms, alone?: string): Promise<void> {
    await this.database.transact("readwrite", async (stores) => {
      const table = stores("terms");
      const found = (await answer(table.getAll())) as { subject: string; terms: string }[];
      const other = found.find((one) => (alone === undefined ? one.subject === subject : one.subject.startsWith(alone)));
      const written = JSON.stringify(terms);
      if (other === undefined) table.put({ subject, terms: written });
      else if (other.subject !== subject || other.terms !== written) {
        throw conflict("this database has another budget, refresh, perPeriod, noise or number of features: open it as it was made.");
      }
    });
  }

  /**
   * Checks and writes in one transaction. The same `id` again is no second charge. Refused charges have charged nothing. `ready` is called
   * where the charge fits, before it is written, in the same transaction: what it throws undoes the charge.
   */
  async charge(subject: string, id: string, cost: Cost, ready?: (stores: Stores) => unknown): Promise<Receipt> {
    const now = moment(this.clock);
    return this.database.transact("readwrite", async (stores) => {
      const charges = stores("charges");
      const found = (await answer(charges.index("id").get([subject, id]))) as Row | undefined;
      if (found !== undefined) {
        if (found.amount !== cost.amount || found.unprotected !== cost.unprotected) {
          throw conflict("this id was charged before, for something else.");
        }
        return { fresh: false, stored: found.content };
      }
      const tip = await last<Row>(charges);
      const at = Math.max(now, tip?.at ?? 0); // the clock may go back, the ledger's time does not
      const { budget, total, spent } = await spentBy(stores, subject, at);
      const allowed = unitsUp(budget.epsilon);
      if (spent + cost.amount > allowed) {
        throw new TacitError(
          "budget-exhausted",
          `a charge of ${shown(cost.amount)} was refused; ${shown(allowed - spent)} of ${shown(allowed)} is left in ${spanOf(budget)}.`,
        );
      }
      await ready?.(stores);
      charges.add({ number: (tip?.number ?? 0) + 1, subject, id, at, ...cost, total: total + cost.amount, content: null } satisfies Row);
      return { fresh: true, stored: null };
    });
  }

  /** Keeps what was drawn for a charge; the first to do so wins. Returns what is kept: send that. */
  keep(subject: string, id: string, content: Uint8Array): Promise<Uint8Array> {
    return this.database.transact("readwrite", async (stores) => {
      const charges = stores("charges");
      const found = (await answer(charges.index("id").get([subject, id]))) as Row | undefined;
      if (found === undefined) throw conflict("what was not charged is not kept.");
      if (found.content === null) charges.put({ ...found, content });
      return found.content ?? content;
    });
  }

  /** What was kept for a charge. Reading charges nothing. */
  stored(subject: string, id: string): Promise<Uint8Array | null> {
    return this.database.transact("readonly", async (stores) => {
      const found = (await answer(stores("charges").index("id").get([subject, id]))) as Row | undefined;
      return found?.content ?? null;
    });
  }

  /** The newest that was kept under an id that ends so. It was paid for. */
  newest(subject: string, ending: string): Promise<Uint8Array | null> {
    return this.database.transact("readonly", async (stores) => {
      const rows = (await answer(stores("charges").index("at").getAll(since(subject, -Infinity)))) as Row[];
      return rows.reverse().find((row) => row.content !== null && row.id.endsWith(ending))?.content ?? null;
    });
  }

  async statement(subject: string): Promise<Statement> {
    const now = moment(this.clock);
    return this.database.transact("readonly", async (stores) => {
      const { budget, spent, at } = await spentBy(stores, subject, now);
      const rows = (await answer(
        stores("charges")
          .index("at")
          .getAll(since(subject, windowOf(budget, at))),
      )) as Row[];
      const renews = renewalOf(budget, at);
      return {
        budget,
        spent: shown(spent),
        left: shown(Math.max(0, unitsUp(budget.epsilon) - spent)),
        charges: rows.length,
        renews: renews === null ? null : new Date(renews),
        entries: rows.map((row) => ({ at: new Date(row.at), what: row.id, epsilon: shown(row.amount) })),
      };
    });
  }
}

/** What a subject has spent in all, and in the window that holds `now`, or her last charge where that is later. */
async function spentBy(stores: Stores, subject: string, now: number) {
  const agreed = (await answer(stores("terms").get(subject))) as { terms: string } | undefined;
  if (agreed === undefined) throw new TacitError("unknown-subject", "the ledger knows no subject of that name.");
  const { budget } = JSON.parse(agreed.terms) as Terms;
  const index = stores("charges").index("at");
  const newest = await last<Row>(index, since(subject, -Infinity));
  const at = Math.max(now, newest?.at ?? 0);
  const total = newest?.total ?? 0;
  const start = windowOf(budget, at);
  const before =
    start === -Infinity ? null : await last<Row>(index, IDBKeyRange.bound([subject, -Infinity], [subject, start], false, true));
  return { budget, at, total, spent: total - (before?.total ?? 0) };
}

const since = (subject: string, start: number): IDBKeyRange => IDBKeyRange.bound([subject, start], [subject, Infinity]);
