/**
 * What the page itself asks of the server: public things, the same for everybody. Nothing here knows the profile; what does is in
 * delegate.js. Every exchange is noted for the section Traffic.
 */

/** @typedef {import("../../../../delegate/src/index.js").Exchange} Exchange */
/**
 * @typedef {object} Guarantee
 * @property {number | "inf"} epsilon
 * @property {number} delta
 * @property {string[]} assumes
 */

export class Refused extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export class Server {
  /** @param {(exchange: Exchange) => void} note */
  constructor(note) {
    this.note = note;
  }

  /** @param {string} path @returns {Promise<any>} */
  async get(path) {
    return this.#exchange("GET", path, null);
  }

  /**
   * Sends bytes that left this device before: they tell nothing new.
   * @param {string} path
   * @param {Uint8Array} body
   * @returns {Promise<any>}
   */
  async repeat(path, body) {
    return this.#exchange("POST", path, body);
  }

  /** @param {string} method @param {string} path @param {Uint8Array | null} sent */
  async #exchange(method, path, sent) {
    let response;
    try {
      response = await fetch(path, {
        method,
        body: /** @type {BodyInit | null} */ (sent),
        headers: sent ? { "Content-Type": "application/json" } : {},
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
        redirect: "error", // to nobody else
      });
    } catch {
      this.note({ method, path, sent, received: null, status: 0, contentType: "" });
      throw new Refused("unreachable", "The server does not answer.");
    }
    const received = new Uint8Array(await response.arrayBuffer());
    const contentType = response.headers.get("Content-Type") ?? "";
    this.note({ method, path, sent, received, status: response.status, contentType });
    const text = new TextDecoder().decode(received);
    if (response.ok) return JSON.parse(text);
    const problem = contentType.includes("json") ? JSON.parse(text) : {};
    throw new Refused(problem.code ?? `http-${response.status}`, problem.detail ?? `The server answered ${response.status}.`);
  }
}

/** The epsilon of a guarantee as a number; infinite where nothing is promised. @param {Guarantee} guarantee */
export function epsilonOf(guarantee) {
  return guarantee.epsilon === "inf" ? Infinity : Number(guarantee.epsilon);
}
