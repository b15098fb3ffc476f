/** One tab after the other, where the browser can see to it. */

/** Runs work by itself among all that is run under the same name, in every tab of this origin. */
export type InTurn = <T>(name: string, work: () => Promise<T>) => Promise<T>;

/** By Web Locks. Where a platform has none, at once: whoever then keeps first still decides for all, but is likelier the quicker. */
export const inTurn: InTurn = (name, work) => {
  const locks = (globalThis.navigator as Partial<Navigator> | undefined)?.locks;
  return locks === undefined ? work() : (locks.request(name, work) as ReturnType<typeof work>);
};
