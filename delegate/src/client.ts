/**
 * The connection to the server, one method for each route. Only the bytes of messages leave: no cookie, no referrer, no cached copy, no
 * redirect to another server.
 */
import { Catalogue } from "./catalogue.js";
import { invalidMessage, invalidParameter, TacitError } from "./errors.js";
import { Reply } from "./messages/multi_selection.js";
import { impression, offerFromJSON, OUTCOMES, type Offer, type offerRequest, type Outcome } from "./messages/private_selection.js";

const BINARY = "application/vnd.tacit";
const JSON_TYPE = "application/json";
const TIMEOUT = 30_000; // milliseconds
const MOST_PARTS = 1000;

/** One request and its answer, for a page that shows the traffic. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly sent: Uint8Array | null;
  readonly received: Uint8Array | null; // null if there was no answer
  readonly status: number; // 0 if there was no answer
  readonly contentType: string; // of the answer
}

interface Answer {
  readonly status: number;
  readonly body: Uint8Array;
  readonly headers: Headers;
}

export class Client {
  readonly origin: string;
  readonly #fetch: typeof globalThis.fetch | undefined;
  readonly #onExchange: ((exchange: Exchange) => void) | undefined;

  constructor(server: string, fetch?: typeof globalThis.fetch, onExchange?: (exchange: Exchange) => void) {
    this.#fetch = fetch;
    this.#onExchange = onExchange;
    try {
      this.origin = new URL(server).origin;
    } catch {
      throw invalidParameter("server must be an origin, such as https://example.org.");
    }
  }

  async catalogue(): Promise<Catalogue> {
    return Catalogue.fromJSON(parseJSON(bodyOf(await this.#get("/v1/catalogue", JSON_TYPE))));
  }

  /** Sends a multi-selection request. Returns the bytes of the reply. */
  async slate(request: Uint8Array): Promise<Uint8Array> {
    return bodyOf(await this.#post("/v1/multi-selection", request, BINARY));
  }

  /** Asks for an offer. Returns null if the server has none, or sent something that is not a valid offer. */
  async offer(request: ReturnType<typeof offerRequest>): Promise<Offer | null> {
    const answer = await this.#post("/v1/private-selection/offers", encodeJSON(request), JSON_TYPE);
    if (answer.status === 204) return null;
    const body = bodyOf(answer);
    try {
      return offerFromJSON(parseJSON(body));
    } catch {
      return null;
    }
  }

  /** Reports the items that were shown. Returns "pending" unless the answer is final; then send the same report again later. */
  async report(token: string, items: readonly string[]): Promise<Outcome | "pending"> {
    const answer = await this.#post("/v1/private-selection/impressions", encodeJSON(impression(token, items)), JSON_TYPE);
    const outcome = memberOf(answer.body, "outcome");
    if (answer.status === 200) return OUTCOMES.find((known) => known === outcome) ?? "pending";
    return isTransient(answer.status) || codeOf(answer) === null ? "pending" : "refused";
  }

  /** Loads all parts of the server's public model, for any later choice. Returns null if they have different versions. */
  async scorer(): Promise<Reply[] | null> {
    const part = (number: number): Promise<Answer> => this.#get(`/v1/private-selection/scorer?part=${number}`, BINARY);
    const first = await part(0);
    const count = Number(first.headers.get("Tacit-Parts") ?? 1);
    if (!(Number.isInteger(count) && count >= 1 && count <= MOST_PARTS)) return null;
    const answers = [first, ...(await Promise.all(Array.from({ length: count - 1 }, (_, index) => part(index + 1))))];
    const versions = new Set(answers.map(({ headers }) => headers.get("Tacit-Version"))); // a part that is gone has no version
    return versions.size > 1 ? null : answers.map((answer) => Reply.fromBytes(bodyOf(answer)));
  }

  #get(path: string, accept: string): Promise<Answer> {
    return this.#send("GET", path, null, { headers: { Accept: accept } });
  }

  #post(path: string, body: Uint8Array, type: string): Promise<Answer> {
    return this.#send("POST", path, body, { headers: { "Content-Type": type, Accept: type }, body: body as BodyInit });
  }

  async #send(method: string, path: string, sent: Uint8Array | null, init: RequestInit): Promise<Answer> {
    const fetch = this.#fetch ?? globalThis.fetch; // a plain function: a browser's own fetch cannot be called as a method
    let answer: Answer = { status: 0, body: new Uint8Array(0), headers: new Headers() };
    try {
      const response = await fetch(this.origin + path, {
        method,
        credentials: "omit",
        referrerPolicy: "no-referrer",
        cache: "no-store", // the tag of a cached copy would identify the user like a cookie
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT),
        ...init,
      });
      answer = { status: response.status, body: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
    } catch {
      // no answer; the browser's own log has the reason
    }
    const { status, body, headers } = answer;
    const received = status === 0 ? null : body.slice();
    const contentType = headers.get("Content-Type") ?? "";
    this.#onExchange?.({ method, path, sent: sent?.slice() ?? null, received, status, contentType });
    return answer;
  }
}

/** Returns the body of an answer with status 200. Otherwise throws an error with the server's code, without its text. */
function bodyOf(answer: Answer): Uint8Array {
  const { status, body } = answer;
  if (status === 200) return body;
  const code = status === 0 ? "unreachable" : (codeOf(answer) ?? "refused-by-server");
  const advice = isTransient(status) ? " Try again later." : "";
  throw new TacitError(code, (status === 0 ? "the server did not answer." : `the server answered with status ${status}.`) + advice);
}

/** Whether the same bytes should be sent again later. */
const isTransient = (status: number): boolean => status === 0 || status === 408 || status === 429 || status >= 500;

/** The stable code of a problem that the server itself reported; null for anything else, such as a gateway's page. */
function codeOf({ body, headers }: Answer): string | null {
  const code = /^application\/problem\+json *(;|$)/i.test(headers.get("Content-Type") ?? "") ? memberOf(body, "code") : null;
  return typeof code === "string" && /^[a-z-]{1,40}$/.test(code) ? code : null;
}

const encodeJSON = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

function parseJSON(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw invalidMessage("expected JSON in UTF-8.");
  }
}

/** A member of the JSON object in a body; undefined if there is none. */
function memberOf(body: Uint8Array, name: string): unknown {
  try {
    return (parseJSON(body) as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}
