/** Consent: granted or not, and since which day. Every change is a row of its own; none is ever altered. */
import { answer, last, type Database } from "./database.js";
import { DAY } from "./periods.js";

/** Notes, durably, that she consents, or no longer does. Saying the same again changes nothing, not the day either. */
export function setConsent(database: Database, granted: boolean, now: number): Promise<void> {
  return database.transact("readwrite", async (stores) => {
    const table = stores("consents");
    const found = await last<{ number: number; granted: boolean; day: number }>(table);
    if (found?.granted === granted) return;
    const day = Math.max(Math.floor(now / DAY), found?.day ?? 0); // the clock may go back, a later row does not
    await answer(table.add({ number: (found?.number ?? 0) + 1, granted, day }));
  });
}

/** Whether she consents now. Nobody who was never asked has consented. */
export function hasConsented(database: Database): Promise<boolean> {
  return database.transact("readonly", async (stores) => (await last<{ granted: boolean }>(stores("consents")))?.granted ?? false);
}
