/** An in-memory server behind `fetch`. It records requests, and tests can set its answers. */
import { replyToBytes } from "./forms.js";
import { Reply, Request } from "../src/messages/multi_selection.js";

export const NAMES = ["Action", "Comedy", "Drama"];
export const IDS = [1, 2, 5, 9];
export const GENRES = [[0], [0, 1], [2], []];
export const DIMENSION = 2 * NAMES.length;

export const CATALOGUE = {
  version: 1,
  name: "small",
  model: "0a1b",
  features: { kind: "genre-profile/1", dimension: DIMENSION, names: NAMES, liked_from: 4.0, low: 0, high: 1, grid_bits: 20 },
  ids: IDS,
  titles: ["Heat (1995)", "Élan, The (2001)", "Léon (1994)", "Heatwave (1982)"],
  genres: GENRES,
};

/** Utilities 0.1, 0.2, ... plus the weight of the item's first liked genre. */
const matrix = (ids: readonly number[]): number[] =>
  ids.flatMap((id) => {
    const place = IDS.indexOf(id);
    return [0.1 * (place + 1), ...Array.from({ length: DIMENSION }, (_, feature) => (GENRES[place]!.includes(feature) ? 2 : 0))];
  });

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly init: RequestInit;
  readonly body: Uint8Array | null;
}

export class FakeServer {
  readonly seen: Seen[] = [];
  readonly impressions = new Map<string, string>(); // token to items, as JSON
  catalogue: unknown = CATALOGUE;
  offers: unknown[] = []; // served in order; none left means no fill
  parts = 2; // of the scorer
  versions: (string | null)[] = []; // of the scorer's parts, in the order of requests; none left means no version
  scorer: "linear" | "missing" | "other" = "linear";
  failing: number | "network" | Response | null = null; // the answer to every message
  slate: number[] = IDS;
  answeredK: number | null = null; // instead of the requested k
  outcome: string | null = null; // instead of the correct outcome

  readonly fetch = (async (input: RequestInfo | URL, init: RequestInit = {}) => {
    const url = new URL(String(input));
    const path = url.pathname + url.search;
    const body = init.body === undefined ? null : new Uint8Array(init.body as Uint8Array);
    this.seen.push({ method: init.method ?? "GET", path, init, body });
    await new Promise((resolve) => setTimeout(resolve, 0));
    return this.#answer(path, body);
  }) as typeof globalThis.fetch;

  #answer(path: string, body: Uint8Array | null): Response {
    if (path === "/v1/catalogue") return Response.json(this.catalogue);
    if (path.startsWith("/v1/private-selection/scorer")) return this.#part(Number(new URLSearchParams(path.split("?")[1]).get("part")));
    if (this.failing === "network") throw new TypeError("fetch failed");
    if (this.failing instanceof Response) return this.failing.clone();
    if (this.failing !== null) return problem("too-many-requests", this.failing);
    if (path === "/v1/multi-selection") {
      const k = this.answeredK ?? Request.fromBytes(body!).k;
      const slate = this.slate.slice(0, k);
      const rows = matrix(slate);
      for (let spare = slate.length; spare < k; spare += 1) rows.push(...rows.slice(-1 - DIMENSION));
      return binary(replyToBytes(new Reply("linear-map", slate.map(BigInt), k, DIMENSION, 0, rows)));
    }
    const json = JSON.parse(new TextDecoder().decode(body!));
    if (path === "/v1/private-selection/offers") {
      const offer = this.offers.shift();
      return offer === undefined ? new Response(null, { status: 204 }) : Response.json(offer);
    }
    if (this.outcome !== null) return Response.json({ outcome: this.outcome });
    const known = this.impressions.get(json.token);
    const said = JSON.stringify(json.items);
    if (known === undefined) this.impressions.set(json.token, said);
    return Response.json({ outcome: known === undefined ? "ok" : known === said ? "duplicate" : "conflict" });
  }

  #part(part: number): Response {
    const gone = this.versions[0] === "gone" && this.versions.shift();
    if (gone || this.scorer === "missing") return problem("not-found", 404);
    const size = IDS.length / this.parts;
    const ids = IDS.slice(part * size, (part + 1) * size);
    const kind = this.scorer === "linear" ? "linear-map" : "none";
    const reply = new Reply(kind, ids.map(BigInt), ids.length, DIMENSION, 0, kind === "none" ? [] : matrix(ids));
    const version = this.versions.shift() ?? null;
    return binary(replyToBytes(reply), { "Tacit-Parts": String(this.parts), ...(version !== null && { "Tacit-Version": version }) });
  }
}

export const problem = (code: unknown, status: number, type = "application/problem+json"): Response =>
  new Response(JSON.stringify({ code }), { status, headers: { "Content-Type": type } });

const binary = (bytes: Uint8Array, more: Record<string, string> = {}): Response =>
  new Response(bytes as BodyInit, { headers: { "Content-Type": "application/vnd.tacit", ...more } });

let tokens = 0;

/** An offer of all four items, highest public score first. */
export function offerOf(more: { policy?: object; token?: string; expires?: number; batch?: object | null } = {}, now = Date.now()): object {
  const token = more.token ?? (tokens += 1).toString(16).padStart(32, "0");
  const policy = { version: 1, id: "rr", epsilon: 1, m: 4, d: 1, slots: 1, bounding: "none", width: null, floors: null, ...more.policy };
  const candidates = ["1", "2", "5", "9"].map((item, place) => ({ item, bid: 1_000_000, public_score: 0.4 - place / 10 }));
  return { version: 1, token, expires: more.expires ?? Math.floor(now / 1000) + 600, policy, candidates, batch: more.batch ?? null };
}
