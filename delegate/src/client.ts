/** The way to the server. Only the bytes of messages leave: no cookie, no referrer, no redirect to somebody else. */
import { invalidMessage, invalidParameter, TacitError } from "./errors.js";

export const BINARY = "application/vnd.tacit";
export const JSON_TYPE = "application/json";
const PATIENCE = 30_000; // milliseconds

/** What was sent and what came back, for a page that shows it. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly sent: Uint8Array | null;
  readonly received: Uint8Array | null; // null where there was no answer
  readonly status: number; // 0 where there was no answer
  readonly contentType: string; // of the answer
}

export interface Answer {
  readonly status: number;
  readonly body: Uint8Array;
  readonly headers: Headers;
}

export class Client {
  readonly origin: string;
  readonly #fetch: typeof globalThis.fetch;
  readonly #onExchange: (exchange: Exchange) => void;

  constructor(server: string, fetch: typeof globalThis.fetch, onExchange: (exchange: Exchange) => void) {
    this.#fetch = fetch;
    this.#onExchange = onExchange;
    try {
      this.origin = new URL(server).origin;
    } catch {
      throw invalidParameter("server must be an origin, such as https://example.org.");
    }
  }

  get(path: string, accept: string): Promise<Answer> {
    // nothing is kept: the tag of a cached copy is as good as a cookie
    return this.#send("GET", path, null, { headers: { Accept: accept }, cache: "no-store" });
  }

  post(path: string, body: Uint8Array, type: string): Promise<Answer> {
    const headers = { "Content-Type": type, Accept: type };
    return this.#send("POST", path, body, { headers, body: body as BodyInit, cache: "no-store" });
  }

  async #send(method: string, path: string, sent: Uint8Array | null, more: RequestInit): Promise<Answer> {
    let found: Answer = { status: 0, body: new Uint8Array(0), headers: new Headers() };
    try {
      const response = await this.#fetch(this.origin + path, {
        method,
        credentials: "omit",
        referrerPolicy: "no-referrer",
        redirect: "error",
        signal: AbortSignal.timeout(PATIENCE),
        ...more,
      });
      found = { status: response.status, body: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
    } catch {
      // no answer: what went wrong on the way is in the browser's own log
    }
    const { status, body, headers } = found;
    const received = status === 0 ? null : body.slice();
    this.#onExchange({ method, path, sent: sent?.slice() ?? null, received, status, contentType: headers.get("Content-Type") ?? "" });
    return found;
  }
}

/** Whether the same bytes are to be sent again later, whoever answered so. */
export const isTransient = (status: number): boolean => status === 0 || status === 408 || status === 429 || status >= 500;

/** The stable code of a problem in the server's own words; null for anything else, such as the page of a gateway on the way. */
export function codeOf({ body, headers }: Answer): string | null {
  const code = /^application\/problem\+json *(;|$)/i.test(headers.get("Content-Type") ?? "") ? memberOf(body, "code") : null;
  return typeof code === "string" && /^[a-z-]{1,40}$/.test(code) ? code : null;
}

/** The body of a 200; else the error that the server names, of whose own words nothing is shown. */
export function bodyOf(answer: Answer): Uint8Array {
  const { status } = answer;
  if (status === 200) return answer.body;
  const later = isTransient(status) ? " Try again later." : "";
  throw new TacitError(
    status === 0 ? "unreachable" : (codeOf(answer) ?? "refused-by-server"),
    `the server answered with status ${status}.${later}`,
  );
}

/** The JSON of a body. */
export function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw invalidMessage("expected JSON in UTF-8.");
  }
}

/** A member of the object in a body; undefined where there is none. */
export function memberOf(body: Uint8Array, name: string): unknown {
  try {
    return (jsonOf(body) as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

export const jsonBytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
