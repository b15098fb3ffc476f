/** Consent: granted or not, and since which day. Every change is a row of its own; none is ever altered. */
import { answer, last, type Database, type Stores } from "./database.js";
import { DAY } from "./periods.js";

/**
 * Notes, durably, that she consents, or no longer does. Saying the same again changes nothing, not the day either; but every
 * revocation is a row, because it also wipes what other tabs were told since the one before.
 */
export function setConsent(database: Database, granted: boolean, now: number): Promise<void> {
  return database.transact("readwrite", async (stores) => {
    const table = stores("consents");
    const found = await last<{ number: number; granted: boolean; day: number }>(table);
    if (granted && found?.granted) return;
    const today = Math.max(Math.floor(now / DAY), found?.day ?? 0); // the clock may go back, a later row does not
    const day = found?.granted === granted ? found.day : today;
    await answer(table.add({ number: (found?.number ?? 0) + 1, granted, day }));
  });
}

/** Whether she consents now, and the number of her last revocation. Nobody who was never asked has consented. */
export async function standing(stores: Stores): Promise<{ granted: boolean; revoked: number }> {
  const { number, granted } = (await last<{ number: number; granted: boolean }>(stores("consents"))) ?? { number: 0, granted: false };
  return { granted, revoked: number - Number(granted) }; // a grant is never two rows: what stands before it is a revocation
}
