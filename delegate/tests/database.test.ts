// The device's file: what is written is on the disk, and over, before anybody is told.
import "fake-indexeddb/auto";
import { expect, test, vi } from "vitest";
import { Database } from "../src/database.js";

test("a transaction is strict, and complete when its result is there", async () => {
  const database = await Database.open("database");
  const begin = vi.spyOn(database.db, "transaction");
  await database.transact("readwrite", async (stores) => stores("terms").put({ subject: "me", terms: "{}" }));
  expect(begin.mock.calls[0]?.slice(1)).toEqual(["readwrite", { durability: "strict" }]);
  // of a transaction that is over no store can be had; of one that is still to be written it can
  const over = begin.mock.results[0]?.value as IDBTransaction;
  expect(() => over.objectStore("terms").get("me")).toThrow();
});
