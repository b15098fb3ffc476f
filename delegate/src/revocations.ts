/**
 * A revocation in one tab wipes the profiles of all: the database is the one thing that they share, and so each looks there before
 * its own is read.
 */
import { standing } from "./consent.js";
import type { Database, Stores } from "./database.js";
import type { Profile } from "./profile.js";

export class Revocations {
  #seen = 0; // the last revocation at the time when the profile was last begun
  #looking: Promise<void> = Promise.resolve();

  constructor(
    readonly database: Database,
    readonly profile: Profile,
  ) {}

  /** The profile, which was empty, is begun now: revocations until now are none of its ratings. */
  begun(): void {
    const look = async (stores: Stores): Promise<void> => void (this.#seen = (await standing(stores)).revoked);
    // Without an answer the older number stays: then rather too much is wiped.
    this.#looking = this.database.transact("readonly", look).catch(() => undefined);
  }

  /** Whether she consents now. What was begun before her last revocation is wiped. */
  async heed(stores: Stores): Promise<boolean> {
    const { granted, revoked } = await standing(stores);
    if (revoked > this.#seen) this.profile.wipe();
    return granted;
  }

  /** The same in a transaction of its own. */
  async heeded(): Promise<boolean> {
    await this.#looking;
    return this.database.transact("readonly", (stores) => this.heed(stores));
  }
}
