/** The device's file: an IndexedDB database. Nothing private is in it: charges, signals that were drawn, choices that were made. */
import { TacitError } from "./errors.js";

const VERSION = 1;
const STORES = ["terms", "charges", "displays", "consents"];

/** The stores of a transaction, by name. */
export type Stores = (name: string) => IDBObjectStore;

export class Database {
  private constructor(readonly db: IDBDatabase) {
    db.onversionchange = () => db.close(); // a page of a later version, or whoever clears the site's data, must not wait
  }

  static async open(place: string): Promise<Database> {
    try {
      const request = indexedDB.open(place, VERSION);
      request.onupgradeneeded = () => create(request.result);
      return new Database(await answer(request));
    } catch (problem) {
      throw unavailable(problem);
    }
  }

  /**
   * One transaction over all stores. It is on the disk when this returns, and undone as a whole where `work` throws. Transactions
   * that write come one after the other, whichever tab they are from.
   */
  async transact<T>(mode: IDBTransactionMode, work: (stores: Stores) => Promise<T>): Promise<T> {
    let transaction: IDBTransaction | undefined;
    try {
      const begun = (transaction = this.db.transaction(STORES, mode, { durability: "strict" }));
      const over = new Promise((resolve, reject) => {
        begun.oncomplete = resolve;
        begun.onabort = () => reject(begun.error);
      });
      over.catch(() => undefined); // it is awaited below, unless the work throws first
      const result = await work((name) => begun.objectStore(name));
      await over;
      return result;
    } catch (problem) {
      try {
        transaction?.abort();
      } catch {
        // it is over already
      }
      throw unavailable(problem);
    }
  }

  close(): void {
    this.db.close();
  }
}

/** What a request gives. */
export function answer<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** The last record of a range; null where there is none. */
export async function last<T>(source: IDBObjectStore | IDBIndex, range?: IDBKeyRange): Promise<T | null> {
  const cursor = await answer(source.openCursor(range, "prev"));
  return cursor === null ? null : (cursor.value as T);
}

function create(db: IDBDatabase): void {
  db.createObjectStore("terms", { keyPath: "subject" });
  const charges = db.createObjectStore("charges", { keyPath: "number" });
  charges.createIndex("id", ["subject", "id"], { unique: true });
  charges.createIndex("at", ["subject", "at"]);
  const displays = db.createObjectStore("displays", { keyPath: ["server", "token"] });
  displays.createIndex("state", ["server", "state", "token"]);
  displays.createIndex("expires", "expires");
  db.createObjectStore("consents", { keyPath: "number" });
}

function unavailable(problem: unknown): TacitError {
  if (problem instanceof TacitError) return problem;
  return new TacitError("ledger-unavailable", `the browser's database cannot be read or written now (${(problem as Error | null)?.name}).`);
}
