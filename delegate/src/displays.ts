/**
 * What the device chose, showed and reported. A choice is on the disk before anything is shown, and marked as shown before anything
 * is reported: whatever is billed was shown, and a token has one draw, wherever the device may crash.
 */
import { answer, type Database } from "./database.js";
import { invalidParameter, unknownName } from "./errors.js";
import type { Policy } from "./policy.js";

const GRACE = 86_400; // seconds that a display outlives its offer: until then a repeated token finds its choice

/** How far a display has come. It only ever goes on. */
export const CHOSEN = 0;
export const SHOWN = 1;
export const REPORTED = 2;
const CLAIMED = -1;

/** What to show, and nothing of why. `policy` is the one that was applied: a function of public data. */
export interface Choice {
  readonly token: string;
  readonly items: readonly string[]; // ids as texts, one for each slot
  readonly expires: number; // seconds since 1970
  readonly policy: Policy;
  readonly consented: boolean;
  readonly epsilon: number; // that was charged
}

interface Row extends Choice {
  readonly server: string;
  readonly state: number;
}

export class Displays {
  constructor(
    readonly database: Database,
    readonly server: string,
  ) {}

  /** What was chosen for this offer, and how far that has come, if it was. */
  find(token: string): Promise<Row | null> {
    return this.database.transact("readonly", async (stores) => {
      return ((await answer(stores("displays").get([this.server, token]))) as Row | undefined) ?? null;
    });
  }

  /**
   * Whether this call is the first for the token, in any tab: it alone may write what is shown. Where it dies, nobody does: the time
   * that scoring takes must not decide which of two calls is shown.
   */
  claim(token: string, expires: number): Promise<boolean> {
    const key = `claim ${token}`; // no offer has such a token: it is not hexadecimal
    return this.#first({ token: key, expires, state: CLAIMED }).then((found) => found === undefined);
  }

  /** Keeps a choice, durably; the first to do so wins. Returns what is kept: show that, and nothing else. */
  choose(choice: Choice): Promise<Choice> {
    return this.#first({ ...choice, state: CHOSEN }).then((found) => choiceOf(found ?? choice));
  }

  /** Notes, durably, that a choice is on the screen (SHOWN), or that the server has given its final answer (REPORTED). */
  mark(token: string, state: number): Promise<Choice> {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const found = (await answer(table.get([this.server, token]))) as Row | undefined;
      if (found === undefined) throw unknownName("there is no choice for this offer: choose first.");
      if (state > found.state + 1) throw invalidParameter("what was not marked as shown is not reported: mark it first.");
      if (state > found.state) table.put({ ...found, state });
      return choiceOf(found);
    });
  }

  /** Choices from one state to another, in the order of tokens: an order that says nothing. */
  between(least: number, most: number): Promise<Choice[]> {
    const range = IDBKeyRange.bound([this.server, least], [this.server, most, []]); // a list comes after every text
    return this.database.transact("readonly", async (stores) => {
      return ((await answer(stores("displays").index("state").getAll(range))) as Row[]).map(choiceOf);
    });
  }

  /** Adds a row unless there is one, which is returned. */
  #first(row: Partial<Row> & { token: string }): Promise<Row | undefined> {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const found = (await answer(table.get([this.server, row.token]))) as Row | undefined;
      if (found === undefined) table.add({ ...row, server: this.server });
      return found;
    });
  }

  /** Deletes what expired more than 24 hours before `now`, in milliseconds: else servers would decide how many rows there are. */
  forget(now: number): Promise<void> {
    const lapsed = IDBKeyRange.upperBound(Math.ceil(now / 1000) - GRACE, true);
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      for (const key of await answer(table.index("expires").getAllKeys(lapsed))) table.delete(key);
    });
  }
}

export const choiceOf = ({ server: _, state: __, ...choice }: Partial<Row> & Choice): Choice => Object.freeze(choice);
