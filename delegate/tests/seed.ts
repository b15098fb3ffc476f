/** Fixed unless TACIT_SEED=fresh: no test may depend on one lucky value. */
const { process } = globalThis as unknown as { process: { env: Record<string, string | undefined> } };
const shift = process.env["TACIT_SEED"] === "fresh" ? crypto.getRandomValues(new Uint32Array(1))[0]! : 0;

export const seeded = (seed: number): number => (seed + shift) >>> 0;
