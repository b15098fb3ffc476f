/** Forms of messages that a device does not need itself, and no page has to load: JSON, and the bytes of a reply. */
import { invalidMessage } from "../src/errors.js";
import { MOST_U32 } from "../src/eta.js";
import * as fields from "../src/fields.js";
import { nearestEven, fromHalf } from "../src/half.js";
import type { Offer } from "../src/offer.js";
import type { Policy } from "../src/policy.js";
import * as replies from "../src/reply.js";
import { Reply } from "../src/reply.js";
import { MOST_K, Request } from "../src/request.js";
import * as signals from "../src/signal.js";
import { MOST_DIMENSION, MOST_STEPS, Signal } from "../src/signal.js";

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
    version: signals.VERSION & 0xff,
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

/** The same fields as on the wire; items as texts of digits. */
export function replyToJSON(reply: Reply): Json {
  return {
    version: replies.VERSION & 0xff,
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
  const sent = kind === "linear-map-half" ? (one: number) => fromHalf(toHalf(one)) : Math.fround;
  if (items.length !== k) throw invalidMessage("expected k items at $.items.");
  return new Reply(kind, replies.slateOf(items, short), k, dimension, components, numbers.map(sent));
}

export function replyToBytes(reply: Reply): Uint8Array {
  const width = reply.kind === "linear-map-half" ? 2 : 4;
  const view = new DataView(new ArrayBuffer(replies.HEADER + 8 * reply.k + width * reply.numbers.length));
  view.setUint16(0, replies.VERSION, true);
  view.setUint8(2, replies.KINDS.indexOf(reply.kind) | (reply.short ? replies.SHORT : 0));
  view.setUint8(3, reply.k);
  view.setUint16(4, reply.dimension, true);
  view.setUint16(6, reply.components, true);
  filled(reply).forEach((item, place) => view.setBigUint64(replies.HEADER + 8 * place, item, true));
  reply.numbers.forEach((number, place) => {
    const at = replies.HEADER + 8 * reply.k + width * place;
    if (width === 2) view.setUint16(at, toHalf(number), true);
    else view.setFloat32(at, number, true);
  });
  return new Uint8Array(view.buffer);
}

export function policyToJSON({ rule, epsilon, m, d, slots, bounding, width, floors }: Policy): Json {
  return { version: 1, id: rule, epsilon, m, d, slots, bounding, width, floors: floors === null ? null : [...floors] };
}

export function offerToJSON(offer: Offer): Json {
  const candidates = offer.candidates.map((one) => ({ ...one }));
  const batch = offer.batch === null ? null : { ...offer.batch, prices: [...offer.batch.prices] };
  return { version: 1, token: offer.token, expires: offer.expires, policy: policyToJSON(offer.policy), candidates, batch };
}

/** The bits of the nearest half, ties to the even one; infinite beyond the largest. */
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
  return new Signal(steps, grid_bits, signals.lowest(eta[0]!, eta[1]!), simulated, empty);
}

/** A whole number of 64 bits written in digits: a browser's numbers are exact to 2^53 only. */
function numberInText(value: unknown, path = "$"): bigint {
  if (typeof value === "string" && /^(0|[1-9]\d{0,19})$/.test(value) && BigInt(value) < 1n << 64n) return BigInt(value);
  throw invalidMessage(`expected a whole number, as a text of digits without leading zeros, at ${path}.`);
}
