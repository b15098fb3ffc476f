/** Encodings that only tests need, so no page has to load them: messages as JSON, and the bytes of a reply. */
import * as fields from "../src/messages/codec.js";
import * as replies from "../src/messages/multi_selection.js";
import * as signals from "../src/messages/multi_selection.js";
import { nearestEven } from "../src/arithmetic.js";
import { invalidMessage } from "../src/errors.js";
import { fromHalf, MOST_DIMENSION, MOST_K, MOST_STEPS, MOST_U32, Reply, Request, Signal } from "../src/messages/multi_selection.js";
import type { Offer, Policy } from "../src/messages/private_selection.js";

type Json = Record<string, unknown>;

const SIGNAL = {
  version: fields.VERSION_1,
  simulated: fields.oneOf(true, false),
  empty: fields.oneOf(true, false),
  grid_bits: fields.whole(0, signals.MOST_GRID_BITS),
  eta: fields.list(fields.whole(1, Number(MOST_U32))),
  steps: fields.list(fields.whole(-MOST_STEPS, MOST_STEPS)),
};
const REPLY = fields.record({
  version: fields.VERSION_1,
  kind: fields.oneOf(...replies.KINDS),
  short: fields.oneOf(true, false),
  k: fields.whole(1, MOST_K),
  dimension: fields.whole(1, MOST_DIMENSION),
  components: fields.whole(0, MOST_DIMENSION),
  items: fields.list(numberInText),
  numbers: fields.list(fields.real()),
});
const LARGEST = 65504; // of half precision
const LEAST_EXPONENT = -14;

export function signalToJSON(signal: Signal): Json {
  return {
    version: signals.SIGNAL_VERSION & 0xff,
    simulated: signal.simulated,
    empty: signal.empty,
    grid_bits: signal.gridBits,
    eta: [Number(signal.eta.numerator), Number(signal.eta.denominator)],
    steps: Array.from(signal.steps),
  };
}

export function signalFromJSON(value: unknown): Signal {
  return signalOf(fields.record(SIGNAL)(value));
}

export const requestToJSON = ({ signal, k, t }: Request): Json => ({ ...signalToJSON(signal), k, t });

export function requestFromJSON(value: unknown): Request {
  const { k, t, ...signal } = fields.record({ ...SIGNAL, k: fields.whole(1, MOST_K), t: fields.whole(1, MOST_K) })(value);
  return new Request(signalOf(signal), k, t);
}

/** The same fields as on the wire, with items as texts of digits. */
export function replyToJSON(reply: Reply): Json {
  return {
    version: replies.REPLY_VERSION & 0xff,
    kind: reply.kind,
    short: reply.short,
    k: reply.k,
    dimension: reply.dimension,
    components: reply.components,
    items: filled(reply).map(String),
    numbers: Array.from(reply.numbers),
  };
}

export function replyFromJSON(value: unknown): Reply {
  const { kind, short, k, dimension, components, items, numbers } = REPLY(value);
  const sent = kind === "linear-map-half" ? (number: number) => fromHalf(toHalf(number)) : Math.fround;
  if (items.length !== k) throw invalidMessage("expected k items at $.items.");
  return new Reply(kind, replies.withoutPadding(items, short), k, dimension, components, numbers.map(sent));
}

export function replyToBytes(reply: Reply): Uint8Array {
  const width = reply.kind === "linear-map-half" ? 2 : 4;
  const view = new DataView(new ArrayBuffer(replies.REPLY_HEADER + 8 * reply.k + width * reply.numbers.length));
  view.setUint16(0, replies.REPLY_VERSION, true);
  view.setUint8(2, replies.KINDS.indexOf(reply.kind) | (reply.short ? replies.SHORT : 0));
  view.setUint8(3, reply.k);
  view.setUint16(4, reply.dimension, true);
  view.setUint16(6, reply.components, true);
  filled(reply).forEach((item, place) => view.setBigUint64(replies.REPLY_HEADER + 8 * place, item, true));
  reply.numbers.forEach((number, place) => {
    const at = replies.REPLY_HEADER + 8 * reply.k + width * place;
    if (width === 2) view.setUint16(at, toHalf(number), true);
    else view.setFloat32(at, number, true);
  });
  return new Uint8Array(view.buffer);
}

export function policyToJSON({ rule, epsilon, m, d, slots, bounding, width, floors }: Policy): Json {
  return { version: 1, id: rule, epsilon, m, d, slots, bounding, width, floors: floors === null ? null : [...floors] };
}

export function offerToJSON(offer: Offer): Json {
  const candidates = offer.candidates.map((candidate) => ({ ...candidate }));
  const batch = offer.batch === null ? null : { ...offer.batch, prices: [...offer.batch.prices] };
  return { version: 1, token: offer.token, expires: offer.expires, policy: policyToJSON(offer.policy), candidates, batch };
}

/** The bits of the nearest half-precision number, ties to even; infinity beyond the largest. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(value)) return 0x7e00;
  const exponent = Math.max(LEAST_EXPONENT, exponentOf(size));
  const rounded = nearestEven(size * 2 ** (10 - exponent)) * 2 ** (exponent - 10);
  if (rounded > LARGEST) return sign | 0x7c00;
  if (rounded < 2 ** LEAST_EXPONENT) return sign | (rounded * 2 ** 24);
  const top = exponentOf(rounded); // rounding up may have reached the next power of 2
  return sign | ((top + 15) << 10) | (rounded * 2 ** (10 - top) - 1024);
}

function exponentOf(value: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return ((view.getUint16(0) >> 4) & 2047) - 1023;
}

function filled(reply: Reply): bigint[] {
  const last = reply.items[reply.items.length - 1] as bigint;
  return Array.from({ length: reply.k }, (_, place) => reply.items[place] ?? last);
}

function signalOf({
  steps,
  grid_bits,
  eta,
  simulated,
  empty,
}: {
  steps: number[];
  grid_bits: number;
  eta: number[];
  simulated: boolean;
  empty: boolean;
}): Signal {
  if (eta.length !== 2) throw invalidMessage("expected a list of 2 at $.eta.");
  return new Signal(steps, grid_bits, signals.inLowestTerms(eta[0]!, eta[1]!), simulated, empty);
}

/** A 64-bit integer as digits, because JavaScript numbers are exact only up to 2^53. */
function numberInText(value: unknown, path = "$"): bigint {
  if (typeof value === "string" && /^(0|[1-9]\d{0,19})$/.test(value) && BigInt(value) < 1n << 64n) return BigInt(value);
  throw invalidMessage(`expected a whole number, as a text of digits without leading zeros, at ${path}.`);
}
