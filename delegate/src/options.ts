/** What a delegate is opened with, and what it gives back. */
import type { Asked } from "./asking.js";
import type { Budget } from "./budgets.js";
import type { ItemId } from "./catalogue.js";
import type { Exchange } from "./client.js";
import type { Limits } from "./limits.js";
import type { Noise } from "./noise.js";
import type { Period } from "./periods.js";

export interface DelegateOptions {
  /** The server's origin; the page's own unless said. */
  readonly server?: string;
  /** The name of the IndexedDB database. */
  readonly place?: string;
  /** What signals may cost, in epsilon per unit of L1 distance. Agreed when the database is first opened, and never changed. */
  readonly budget: Budget;
  /** When a fresh signal may be drawn: once in each of `perPeriod` equal parts of a day or month. Agreed like the budget. */
  readonly refresh?: Period;
  readonly perPeriod?: number;
  /** What offers may cost, for each server. */
  readonly limits?: Limits;
  readonly fetch?: typeof globalThis.fetch;
  readonly noise?: Noise;
  /** Milliseconds since 1970. */
  readonly clock?: () => number;
  /** Is told of everything that leaves and comes. */
  readonly onExchange?: (exchange: Exchange) => void;
}

export interface Recommendation {
  readonly picked: readonly ItemId[]; // the best of the slate at the true features, best first
  readonly slate: readonly ItemId[]; // as the server ordered it
  readonly estimates: readonly number[]; // of the slate, at the true features: they stay here
  readonly asked: Asked;
  readonly sent: Uint8Array;
  readonly received: Uint8Array;
}
