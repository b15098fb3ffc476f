// Built from delegate/ by `npm run bundle`; do not edit.
// @ts-nocheck: its sources were checked

// src/errors.ts
var TacitError = class extends Error {
  constructor(code, message) {
    super(`${code}: ${message}`);
    this.name = "TacitError";
    this.code = code;
  }
};
var invalidParameter = (message) => new TacitError("invalid-parameter", message);
var invalidMessage = (message) => new TacitError("invalid-message", message);
var conflict = (message) => new TacitError("conflict", message);
var unknownName = (message) => new TacitError("unknown-name", message);
function refuseToSerialise(what) {
  throw invalidParameter(`${what} is private and cannot be serialised.`);
}

// src/messages/codec.ts
var record = (members) => {
  const names = Object.keys(members);
  const object = reader(`an object of ${names.join(", ")}`, (value) => {
    const present = typeof value === "object" && value !== null ? Object.keys(value) : [];
    return present.length === names.length && names.every((name) => present.includes(name));
  });
  return (value, path = "$") => {
    const content = object(value, path);
    return Object.fromEntries(names.map((name) => [name, members[name](content[name], `${path}.${name}`)]));
  };
};
var list = (read2) => {
  const array = reader("a list", Array.isArray);
  return (value, path) => array(value, path).map((item) => read2(item, path));
};
var orNull = (read2) => (value, path) => value === null ? null : read2(value, path);
var oneOf = (...allowed) => reader(`one of ${allowed.join(", ")}`, (value) => allowed.includes(value));
var whole = (least, most) => reader(`a whole number from ${least} to ${most}`, (value) => Number.isInteger(value) && value >= least && value <= most);
var real = (most = Infinity) => reader("a finite number", (value) => Number.isFinite(value) && Math.abs(value) <= most);
var text = (least = 0, most = 200) => matching(`a text of ${least} to ${most} characters`, `\\P{Cs}{${least},${most}}`);
var printable = (most) => matching("printable characters", `( |[^\\p{C}\\p{Z}]){1,${most}}`);
var hexadecimal = (least, most) => matching("hexadecimal digits", `([0-9a-f]{2}){${least},${most}}`);
function matching(what, pattern) {
  const expression = new RegExp(`^${pattern}$`, "u");
  return reader(what, (value) => typeof value === "string" && expression.test(value));
}
function reader(what, fits) {
  return (value, path = "$") => {
    if (!fits(value)) throw invalidMessage(`expected ${what} at ${path}.`);
    return value;
  };
}
var VERSION_1 = whole(1, 1);

// src/arithmetic.ts
function fraction(numerator, denominator) {
  let [divisor, rest] = [numerator < 0n ? -numerator : numerator, denominator];
  while (rest !== 0n) [divisor, rest] = [rest, divisor % rest];
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}
function ofFloat(value) {
  let [mantissa, shift] = [value, 0];
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    shift += 1;
  }
  return fraction(BigInt(mantissa), 1n << BigInt(shift));
}
function ofDecimal(text3) {
  const match = /^\s*\+?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?\s*$/.exec(text3);
  const [, whole2 = "", part = "", exponent = "0"] = match ?? [];
  if (match === null || text3.length > 400 || whole2 + part === "") return null;
  const decimals = BigInt(part.length) - BigInt(exponent);
  const digits = BigInt(whole2 + part);
  return decimals > 0n ? fraction(digits, 10n ** decimals) : fraction(digits * 10n ** -decimals, 1n);
}
var times = (first, second) => fraction(first.numerator * second.numerator, first.denominator * second.denominator);
var plus = (first, second) => fraction(first.numerator * second.denominator + second.numerator * first.denominator, first.denominator * second.denominator);
var up = (value) => round(value, true);
var down = (value) => round(value, false);
function round({ numerator, denominator }, upwards) {
  const shift = 54 - (bitLength(numerator) - bitLength(denominator));
  const [above, below2] = shift > 0 ? [numerator << BigInt(shift), denominator] : [numerator, denominator << BigInt(-shift)];
  const quotient = above / below2;
  const spare = BigInt(bitLength(quotient) - 53);
  const kept = quotient >> spare;
  const exact = kept << spare === quotient && above % below2 === 0n;
  return Number(upwards && !exact ? kept + 1n : kept) * 2 ** (Number(spare) - shift);
}
var ceiling = (numerator, denominator) => (numerator + denominator - 1n) / denominator;
var bitLength = (value) => value === 0n ? 0 : value.toString(2).length;
function nearestEven(value) {
  const nearest = Math.round(value);
  return nearest - value === 0.5 && nearest % 2 !== 0 ? nearest - 1 : nearest;
}
var REDUCED = 8;
function expBounds(exponent, bits) {
  const { numerator, denominator } = exponent;
  const negative = numerator < 0n;
  const size = negative ? -numerator : numerator;
  if (size === 0n) return [1n << BigInt(bits), 1n << BigInt(bits)];
  if (negative && size >= BigInt(bits) * denominator) return [0n, 1n];
  const halvings = REDUCED + (size / denominator).toString(2).length;
  const precision = BigInt(bits + 64 + 2 * halvings + 4 * Number(size / denominator));
  let [low, high] = expSeries(size, denominator << BigInt(halvings), precision);
  for (let left = halvings; left > 0; left -= 1) {
    low = low * low >> precision;
    high = (high * high >> precision) + 1n;
  }
  if (negative) {
    const unit = 1n << 2n * precision;
    [low, high] = [unit / high, unit / low + 1n];
  }
  const spare = precision - BigInt(bits);
  return [low >> spare, ceiling(high, 1n << spare)];
}
function expSeries(size, denominator, precision) {
  const unit = 1n << precision;
  let [term, sum, terms] = [unit, unit, 1n];
  while (term > 0n) {
    term = term * size / (denominator * terms);
    sum += term;
    terms += 1n;
  }
  return [sum, sum + 2n * terms + 2n];
}
var WEIGHT_BITS = 32;
function weightOf(epsilon) {
  const exact = ofFloat(epsilon);
  for (let more = 96; ; more *= 2) {
    const [low, high] = expBounds(exact, WEIGHT_BITS + more).map((end) => end >> BigInt(more));
    const least = 1n << BigInt(WEIGHT_BITS);
    if (low === high) return low > least ? low : least;
  }
}

// src/messages/multi_selection.ts
var NOT_A_SIGNAL = "not a valid signal or request, or one of another version: expected steps within 2^30 of 0 and eta from 0.001 to 10 in lowest terms.";
var SIGNAL_VERSION = 21249;
var SIGNAL_HEADER = 16;
var SIMULATED = 1;
var EMPTY = 2;
var MOST_GRID_BITS = 30;
var MOST_STEPS = 2 ** 30;
var MOST_DIMENSION = 2 ** 16 - 1;
var GRID_BITS = 20;
var Signal = class _Signal {
  constructor(steps, gridBits, eta, simulated = false, empty = false) {
    this.gridBits = gridBits;
    this.eta = eta;
    this.simulated = simulated;
    this.empty = empty;
    const listed = Array.from(steps);
    const valid = listed.length >= 1 && listed.length <= MOST_DIMENSION && listed.every((step) => Number.isInteger(step) && Math.abs(step) <= MOST_STEPS) && Number.isInteger(gridBits) && gridBits >= 0 && gridBits <= MOST_GRID_BITS && inRange(eta) && (!empty || !(simulated || listed.some(Boolean)));
    if (!valid) throw invalidMessage(NOT_A_SIGNAL);
    this.steps = Int32Array.from(listed);
  }
  /** An empty signal, for a device whose budget is spent. */
  static nothing(dimension, eta, gridBits = GRID_BITS) {
    return new _Signal(new Int32Array(dimension), gridBits, typeof eta === "object" ? eta : exactEta(eta), false, true);
  }
  get dimension() {
    return this.steps.length;
  }
  /** The noisy features. Values outside the domain of features are normal. */
  get values() {
    return Float64Array.from(this.steps, (step) => step * 2 ** -this.gridBits);
  }
  /** The sender's guarantee: epsilon per unit of (L1 distance + rounding). null if the noise was simulated. */
  get guarantee() {
    if (this.simulated) return null;
    if (this.empty) return { epsilon: 0, rounding: 0 };
    return guaranteeOf(this.eta, this.dimension, this.gridBits);
  }
  /** The bytes that a device stores. */
  toBytes() {
    return pack(this, 0, 0);
  }
  static fromBytes(content) {
    const { signal, k, t } = unpack(content);
    if (k !== 0 || t !== 0) throw invalidMessage(NOT_A_SIGNAL);
    return signal;
  }
};
var MOST_K = 255;
var Request = class _Request {
  constructor(signal, k = 5, t = 1) {
    this.signal = signal;
    this.k = k;
    this.t = t;
    if (!Number.isInteger(k) || !Number.isInteger(t) || t < 1 || k < t || k > MOST_K) {
      throw invalidMessage(`a request needs 1 <= t <= k <= ${MOST_K}.`);
    }
  }
  toBytes() {
    return pack(this.signal, this.k, this.t);
  }
  static fromBytes(content) {
    const { signal, k, t } = unpack(content);
    return new _Request(signal, k, t);
  }
};
function guaranteeOf(eta, dimension, gridBits = GRID_BITS) {
  return {
    epsilon: up({ numerator: eta.denominator, denominator: eta.numerator }),
    rounding: up(fraction(BigInt(dimension), 1n << BigInt(gridBits)))
  };
}
function pack(signal, k, t) {
  const view = new DataView(new ArrayBuffer(SIGNAL_HEADER + 4 * signal.dimension));
  view.setUint16(0, SIGNAL_VERSION, true);
  view.setUint8(2, (signal.simulated ? SIMULATED : 0) | (signal.empty ? EMPTY : 0));
  view.setInt8(3, -signal.gridBits);
  view.setUint32(4, Number(signal.eta.numerator), true);
  view.setUint32(8, Number(signal.eta.denominator), true);
  view.setUint16(12, signal.dimension, true);
  view.setUint8(14, k);
  view.setUint8(15, t);
  signal.steps.forEach((step, index) => view.setInt32(SIGNAL_HEADER + 4 * index, step, true));
  return new Uint8Array(view.buffer);
}
function unpack(content) {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const dimension = content.length < SIGNAL_HEADER ? -1 : view.getUint16(12, true);
  const flags = dimension < 0 ? 0 : view.getUint8(2);
  if (content.length !== SIGNAL_HEADER + 4 * dimension || view.getUint16(0, true) !== SIGNAL_VERSION || flags > (SIMULATED | EMPTY)) {
    throw invalidMessage(NOT_A_SIGNAL);
  }
  const steps = Int32Array.from({ length: dimension }, (_, index) => view.getInt32(SIGNAL_HEADER + 4 * index, true));
  const eta = inLowestTerms(view.getUint32(4, true), view.getUint32(8, true));
  const signal = new Signal(steps, 0 - view.getInt8(3), eta, (flags & SIMULATED) !== 0, (flags & EMPTY) !== 0);
  return { signal, k: view.getUint8(14), t: view.getUint8(15) };
}
function inLowestTerms(numerator, denominator) {
  const reduced = fraction(BigInt(numerator), BigInt(denominator || 1));
  if (reduced.denominator !== BigInt(denominator)) throw invalidMessage(NOT_A_SIGNAL);
  return reduced;
}
var MOST_U32 = (1n << 32n) - 1n;
function exactEta(eta) {
  const written = typeof eta === "number" || typeof eta === "string" ? String(eta) : "";
  const [, above, under] = /^\s*(\d{1,40})\/(\d{1,40})\s*$/.exec(written) ?? [];
  const exact = above === void 0 || under === void 0 ? ofDecimal(written) : BigInt(under) === 0n ? null : fraction(BigInt(above), BigInt(under));
  if (exact === null || !inRange(exact)) {
    throw invalidParameter("eta must be a number from 0.001 to 10 with at most nine decimals, or a fraction of two numbers below 2^32.");
  }
  return exact;
}
var inRange = ({ numerator, denominator }) => 1000n * numerator >= denominator && numerator <= 10n * denominator && numerator <= MOST_U32 && denominator <= MOST_U32;
var NOT_A_REPLY = "not a valid reply, or one of another version: expected 1 to k distinct items and as many finite numbers as the header says.";
var REPLY_VERSION = 20993;
var REPLY_HEADER = 8;
var SHORT = 128;
var KINDS = ["none", "linear-map", "linear-map-half", "principal-components", "network"];
var Reply = class _Reply {
  // the model as sent, row by row, padded to k items
  constructor(kind, items, k, dimension, components, numbers) {
    this.kind = kind;
    this.k = k;
    this.dimension = dimension;
    this.components = components;
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const spare = k - items.length;
    this.items = [...items];
    this.numbers = Float64Array.from(numbers);
    const valid = spare >= 0 && items.length >= 1 && k <= MOST_K && dimension >= 1 && components > 0 === (kind === "principal-components") && new Set(items).size === items.length && numbers.length === rows * columns && this.numbers.every(Number.isFinite) && // the padding of a short slate repeats the row of its last item
    this.numbers.every((number, index) => index < (rows - spare) * columns || number === this.numbers[index - columns]);
    if (!valid) throw invalidMessage(NOT_A_REPLY);
  }
  /** Whether the server had fewer than k items to offer. */
  get short() {
    return this.items.length < this.k;
  }
  /** The rows of the local model without padding; empty if the reply has no model. */
  rows() {
    const [rows, columns] = shapeOf(this.kind, this.k, this.dimension, this.components);
    const used = Math.max(0, rows - (this.k - this.items.length));
    return Array.from({ length: used }, (_, row) => this.numbers.subarray(row * columns, (row + 1) * columns));
  }
  static fromBytes(content) {
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    const code = content.length < REPLY_HEADER || view.getUint16(0, true) !== REPLY_VERSION ? SHORT - 1 : view.getUint8(2);
    const kind = KINDS[code & ~SHORT];
    if (kind === void 0) throw invalidMessage(NOT_A_REPLY);
    const [k, dimension, components] = [view.getUint8(3), view.getUint16(4, true), view.getUint16(6, true)];
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const [start, width] = [REPLY_HEADER + 8 * k, kind === "linear-map-half" ? 2 : 4];
    if (content.length !== start + width * rows * columns) throw invalidMessage(NOT_A_REPLY);
    const items = Array.from({ length: k }, (_, index) => view.getBigUint64(REPLY_HEADER + 8 * index, true));
    const numbers = Float64Array.from(
      { length: rows * columns },
      (_, index) => width === 2 ? fromHalf(view.getUint16(start + 2 * index, true)) : view.getFloat32(start + 4 * index, true)
    );
    return new _Reply(kind, withoutPadding(items, (code & SHORT) !== 0), k, dimension, components, numbers);
  }
};
function shapeOf(kind, k, dimension, components) {
  if (kind === "principal-components") return [1 + dimension + k, components];
  return kind === "linear-map" || kind === "linear-map-half" ? [k, 1 + dimension] : [0, 0];
}
function withoutPadding(padded, short) {
  const items = [...new Set(padded)];
  const last2 = items[items.length - 1];
  if (short !== items.length < padded.length || !padded.every((item, index) => item === (items[index] ?? last2))) {
    throw invalidMessage(NOT_A_REPLY);
  }
  return items;
}
function fromHalf(code) {
  const sign = code & 32768 ? -1 : 1;
  const exponent = code >> 10 & 31;
  const mantissa = code & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24);
}

// src/profile.ts
var MOST_RATING = 1e6;
var Profile = class {
  #ratings = /* @__PURE__ */ new Map();
  /** Adds a rating, or replaces an earlier rating of the same item. The error shows no value. */
  rate(index, value) {
    if (typeof value !== "number" || !(Math.abs(value) <= MOST_RATING)) {
      throw invalidParameter(`a rating must be a finite number from ${-MOST_RATING} to ${MOST_RATING}.`);
    }
    this.#ratings.set(index, value);
  }
  /** Removes a rating, if there is one. */
  forget(index) {
    this.#ratings.delete(index);
  }
  /** Removes all ratings. */
  wipe() {
    this.#ratings.clear();
  }
  get size() {
    return this.#ratings.size;
  }
  /** A copy of the ratings, in catalogue order. */
  ratings() {
    return new Map([...this.#ratings].sort(([a], [b]) => a - b));
  }
  toJSON() {
    return refuseToSerialise("a profile");
  }
};
var KIND = "genre-profile/1";
var DIAMETER = 4;
var TOLERANCE = 1e-6;
function countsOf(space, ratings) {
  const counts = new Float64Array(2 * space.names.length);
  for (const [index, value] of ratings) {
    const block = value >= space.likedFrom ? 0 : space.names.length;
    for (const genre of space.genres[index] ?? []) counts[block + genre] += 1;
  }
  return counts;
}
function featuresOf(space, ratings) {
  const counts = countsOf(space, ratings);
  const totals = blockSums(counts);
  return counts.map((count, index) => count / (totals[index < counts.length / 2 ? 0 : 1] || 1));
}
function blockSums(row) {
  const sum = (block) => block.reduce((total, value) => total + value, 0);
  return [sum(row.subarray(0, row.length / 2)), sum(row.subarray(row.length / 2))];
}
function checkFeatures(features, dimension) {
  const inside = features.length === dimension && features.every((share) => share >= 0 && share <= 1);
  if (!inside || !blockSums(features).every((sum) => sum <= TOLERANCE || Math.abs(sum - 1) <= TOLERANCE)) {
    throw new TacitError(
      "invalid-features",
      "each of the two blocks of features must consist of non-negative shares that sum to 1, or be all 0."
    );
  }
  return features;
}
function movedByOneRating(count, genres) {
  if (genres === 0) return 0;
  return count === 0 ? 1 : 2 * genres / (count + genres);
}
async function versionOf(space) {
  const [items, width] = [space.genres.length, space.names.length];
  const header = `${KIND}
${2 * width}
flags
|u1
(${items}, ${width})
`;
  const between = "liked_from\n<f8\n(1,)\n";
  const flags = new Uint8Array(items * width);
  space.genres.forEach((genres, item) => genres.forEach((genre) => flags[item * width + genre] = 1));
  const likedFrom = new DataView(new ArrayBuffer(8));
  likedFrom.setFloat64(0, space.likedFrom, true);
  const encoder = new TextEncoder();
  const parts = [encoder.encode(header), flags, encoder.encode(between), new Uint8Array(likedFrom.buffer)];
  const content = await new Blob(parts).arrayBuffer();
  if (globalThis.crypto?.subtle === void 0) {
    throw new TacitError("system-noise-unavailable", "WebCrypto needs https or a loopback address: open the page from one of them.");
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content)).subarray(0, 16);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// src/catalogue.ts
var text2 = text(0, 2e3);
var integer = whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
var read = record({
  version: VERSION_1,
  name: text2,
  model: text2,
  features: record({
    kind: oneOf(KIND),
    dimension: whole(2, MOST_DIMENSION),
    names: list(text2),
    liked_from: real(),
    low: oneOf(0),
    high: oneOf(1),
    grid_bits: oneOf(GRID_BITS)
  }),
  ids: list((value, path) => (typeof value === "string" ? text2 : integer)(value, path)),
  titles: orNull(list(text2)),
  genres: list(list(whole(0, MOST_DIMENSION)))
});
var Catalogue = class _Catalogue {
  // titles in the form that `find` compares
  constructor(name, model, names, likedFrom, ids, titles, genres) {
    this.name = name;
    this.model = model;
    this.names = names;
    this.likedFrom = likedFrom;
    this.ids = ids;
    this.titles = titles;
    this.genres = genres;
    this.#indices = new Map(ids.map((id, index) => [id, index]));
    this.#numbered = ids.every((id) => typeof id === "number" && id >= 0);
  }
  #indices;
  #numbered;
  #searchable = null;
  static fromJSON(value) {
    const { name, model, features, ids, titles, genres } = read(value);
    const { names, liked_from, dimension } = features;
    const consistent = dimension === 2 * names.length && genres.length === ids.length && (titles ?? ids).length === ids.length && new Set(ids).size === ids.length && ids.every((id) => typeof id === typeof ids[0]) && genres.every((own) => new Set(own).size === own.length && own.every((genre) => genre < names.length));
    if (!consistent) throw invalidMessage("a catalogue needs a title and genres for each distinct id, and two features for each genre.");
    return new _Catalogue(name, model, names, liked_from, ids, titles, genres);
  }
  /** The number of features: two for each genre. */
  get dimension() {
    return 2 * this.names.length;
  }
  /**
   * Returns the ids of at most `most` items whose title contains `text`, or whose id does if there are no titles. Case and accents do not
   * matter. Titles that contain the text earlier come first.
   */
  find(text3, most = 10) {
    this.#searchable ??= (this.titles ?? this.ids.map(String)).map(normalise);
    const wanted = normalise(text3);
    const starts = this.#searchable.map((title) => title.indexOf(wanted));
    const matches = starts.flatMap((start, index) => wanted === "" || start < 0 ? [] : [index]);
    matches.sort((a, b) => starts[a] - starts[b]);
    return matches.slice(0, most).map((index) => this.ids[index]);
  }
  /** The title of an item, or its id as a text if it has no title. */
  title(id) {
    return this.titles?.[this.#indices.get(id) ?? -1] ?? String(id);
  }
  /** The index of an item in `ids`. */
  indexOf(id) {
    return this.#indices.get(id);
  }
  /** The index of the item with this number on the wire. The number is the id if all ids are non-negative integers, else the index. */
  indexOfNumber(number) {
    if (this.#numbered) return this.#indices.get(Number(number));
    return number < BigInt(this.ids.length) ? Number(number) : void 0;
  }
  /** The index of the item with this id as a text, as offers name it. */
  indexOfText(item) {
    if (typeof this.ids[0] === "string") return this.#indices.get(item);
    return String(Number(item)) === item ? this.#indices.get(Number(item)) : void 0;
  }
};
var normalise = (title) => title.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();
function scorerOf(parts, catalogue) {
  const rows = /* @__PURE__ */ new Map();
  for (const part of parts) {
    if (!part.kind.startsWith("linear-map") || part.dimension !== catalogue.dimension) return null;
    const own = part.rows();
    part.items.forEach((number, position) => {
      const index = catalogue.indexOfNumber(number);
      if (index !== void 0) rows.set(index, own[position]);
    });
  }
  return (features, items) => items.map((item) => {
    const row = rows.get(catalogue.indexOfText(item) ?? -1);
    return row === void 0 ? null : linearEstimates([row], features)[0];
  });
}
var linearEstimates = (matrix, features) => matrix.map((row) => {
  let total = row[0];
  for (let column = 1; column < row.length; column += 1) total += row[column] * features[column - 1];
  return total;
});

// src/messages/private_selection.ts
var MOST_EPSILON = 40;
var MOST_CANDIDATES = 1e4;
var MOST_SLOTS = 100;
var FLOORS_WHOLE = 2 ** 32;
var readPolicy = record({
  version: VERSION_1,
  id: oneOf("public", "uniform", "greedy", "rr", "gumbel", "pf", "laplace", "envelope"),
  epsilon: real(MOST_EPSILON),
  m: whole(1, MOST_CANDIDATES),
  d: whole(1, MOST_CANDIDATES),
  slots: whole(1, MOST_SLOTS),
  bounding: oneOf("none", "scaled", "clipped"),
  width: orNull(real()),
  floors: orNull(list(whole(1, FLOORS_WHOLE)))
});
var policyFromJSON = (value, path) => {
  const { id: rule, version: _, ...fields } = readPolicy(value, path);
  const { m, epsilon, d, slots, bounding, width, floors } = fields;
  const free = rule === "public" || rule === "uniform" || rule === "greedy";
  const noisy = rule === "gumbel" || rule === "pf" || rule === "laplace";
  const total = floors?.reduce((sum, floor) => sum + floor, 0) ?? 0;
  const floored = total <= FLOORS_WHOLE && total * Math.exp(epsilon) >= FLOORS_WHOLE && floors?.length === m && slots === 1;
  const consistent = free === (epsilon === 0) && epsilon >= 0 && slots <= m && d <= m && (d === 1 || rule === "rr" && slots === 1) && noisy === (bounding !== "none") && (width === null ? bounding !== "clipped" : bounding === "clipped" && width > 0) && (floors === null ? rule !== "envelope" : rule === "envelope" && floored);
  if (!consistent) throw invalidMessage("the fields of a policy contradict each other.");
  return Object.freeze({ rule, ...fields });
};
function costOf({ rule, m, d, epsilon }) {
  if (rule === "greedy") return m > 1 ? Infinity : 0;
  return rule === "public" || rule === "uniform" || m === 1 || rule === "rr" && d === m ? 0 : epsilon;
}
var withoutCost = ({ m, slots }) => Object.freeze({ rule: "public", m, epsilon: 0, d: 1, slots, bounding: "none", width: null, floors: null });
var MOST_SECONDS = 29e5 * 86400;
var MOST_MICROS = 1e15;
var MOST_ITEM = 128;
var micros = whole(0, MOST_MICROS);
var readOffer = record({
  version: VERSION_1,
  token: hexadecimal(16, 16),
  expires: whole(0, MOST_SECONDS),
  policy: policyFromJSON,
  candidates: list(record({ item: printable(MOST_ITEM), bid: micros, public_score: real(MOST_MICROS) })),
  batch: orNull(record({ id: text(1, 100), prices: list(micros), key: hexadecimal(0, 100) }))
});
var VALIDATED = /* @__PURE__ */ new WeakSet();
function offerFromJSON(value) {
  const { version: _, ...offer } = readOffer(value);
  const { candidates, policy, batch } = offer;
  const consistent = candidates.length === policy.m && new Set(candidates.map(({ item }) => item)).size === policy.m && candidates.every(({ public_score }, index) => index === 0 || public_score <= candidates[index - 1].public_score) && (batch === null || batch.prices.length === policy.m && policy.slots === 1);
  if (!consistent) throw invalidMessage("the fields of an offer contradict each other.");
  VALIDATED.add(offer);
  return Object.freeze(offer);
}
var isOffer = (value) => VALIDATED.has(value);
var readContext = text();
var offerRequest = (context, consent) => ({
  version: 1,
  context: readContext(context, "context"),
  consent: Number(consent)
});
var impression = (token, items) => ({ version: 1, token, items });
var OUTCOMES = ["ok", "duplicate", "conflict", "unknown", "expired"];

// src/client.ts
var BINARY = "application/vnd.tacit";
var JSON_TYPE = "application/json";
var TIMEOUT = 3e4;
var MOST_PARTS = 1e3;
var Client = class {
  #fetch;
  #onExchange;
  constructor(server, fetch, onExchange) {
    this.#fetch = fetch;
    this.#onExchange = onExchange;
    try {
      this.origin = new URL(server).origin;
    } catch {
      throw invalidParameter("server must be an origin, such as https://example.org.");
    }
  }
  async catalogue() {
    return Catalogue.fromJSON(parseJSON(bodyOf(await this.#get("/v1/catalogue", JSON_TYPE))));
  }
  /** Sends a multi-selection request. Returns the bytes of the reply. */
  async slate(request) {
    return bodyOf(await this.#post("/v1/multi-selection", request, BINARY));
  }
  /** Asks for an offer. Returns null if the server has none, or sent something that is not a valid offer. */
  async offer(request) {
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
  async report(token, items) {
    const answer = await this.#post("/v1/private-selection/impressions", encodeJSON(impression(token, items)), JSON_TYPE);
    const outcome = memberOf(answer.body, "outcome");
    if (answer.status === 200) return OUTCOMES.find((known) => known === outcome) ?? "pending";
    return isTransient(answer.status) || codeOf(answer) === null ? "pending" : "refused";
  }
  /** Loads all parts of the server's public model, for any later choice. Returns null if they have different versions. */
  async scorer() {
    const part = (number) => this.#get(`/v1/private-selection/scorer?part=${number}`, BINARY);
    const first = await part(0);
    const count = Number(first.headers.get("Tacit-Parts") ?? 1);
    if (!(Number.isInteger(count) && count >= 1 && count <= MOST_PARTS)) return null;
    const answers = [first, ...await Promise.all(Array.from({ length: count - 1 }, (_, index) => part(index + 1)))];
    const versions = new Set(answers.map(({ headers }) => headers.get("Tacit-Version")));
    return versions.size > 1 ? null : answers.map((answer) => Reply.fromBytes(bodyOf(answer)));
  }
  #get(path, accept) {
    return this.#send("GET", path, null, { headers: { Accept: accept } });
  }
  #post(path, body, type) {
    return this.#send("POST", path, body, { headers: { "Content-Type": type, Accept: type }, body });
  }
  async #send(method, path, sent, init) {
    const fetch = this.#fetch ?? globalThis.fetch;
    let answer = { status: 0, body: new Uint8Array(0), headers: new Headers() };
    try {
      const response = await fetch(this.origin + path, {
        method,
        credentials: "omit",
        referrerPolicy: "no-referrer",
        cache: "no-store",
        // the tag of a cached copy would identify the user like a cookie
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT),
        ...init
      });
      answer = { status: response.status, body: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
    } catch {
    }
    const { status, body, headers } = answer;
    const received = status === 0 ? null : body.slice();
    const contentType = headers.get("Content-Type") ?? "";
    this.#onExchange?.({ method, path, sent: sent?.slice() ?? null, received, status, contentType });
    return answer;
  }
};
function bodyOf(answer) {
  const { status, body } = answer;
  if (status === 200) return body;
  const code = status === 0 ? "unreachable" : codeOf(answer) ?? "refused-by-server";
  const advice = isTransient(status) ? " Try again later." : "";
  throw new TacitError(code, (status === 0 ? "the server did not answer." : `the server answered with status ${status}.`) + advice);
}
var isTransient = (status) => status === 0 || status === 408 || status === 429 || status >= 500;
function codeOf({ body, headers }) {
  const code = /^application\/problem\+json *(;|$)/i.test(headers.get("Content-Type") ?? "") ? memberOf(body, "code") : null;
  return typeof code === "string" && /^[a-z-]{1,40}$/.test(code) ? code : null;
}
var encodeJSON = (value) => new TextEncoder().encode(JSON.stringify(value));
function parseJSON(body) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw invalidMessage("expected JSON in UTF-8.");
  }
}
function memberOf(body, name) {
  try {
    return parseJSON(body)[name];
  } catch {
    return void 0;
  }
}

// src/limits.ts
function checkLimits({ epsilon = 1, budget = { epsilon: 10, per: "day", sliding: true } } = {}) {
  if (!(epsilon > 0 && epsilon <= MOST_EPSILON)) throw invalidParameter(`limits.epsilon must be above 0 and at most ${MOST_EPSILON}.`);
  return { epsilon, budget: checkBudget(budget) };
}
function checkBudget({ epsilon, per, sliding = false }) {
  const { numerator, denominator } = epsilon > 0 && ofDecimal(String(epsilon)) || { numerator: 0n, denominator: 1n };
  if (numerator === 0n || numerator * UNITS % denominator !== 0n || !Number.isSafeInteger(unitsUp(epsilon))) {
    throw invalidParameter("a budget's epsilon must be above 0, below 9 million, and have at most nine decimals.");
  }
  const budget = { epsilon, per: checkPeriod("per", per) };
  if (!sliding) return budget;
  if (sliding !== true || per === "lifetime") throw invalidParameter("sliding must be true or false, and false for a lifetime.");
  return { ...budget, sliding };
}
var windowOf = ({ per, sliding }, at) => sliding ? at - LENGTHS[per] + 1 : edgeOf(per, at, 0) ?? -Infinity;
var renewalOf = ({ per, sliding }, at) => sliding ? null : edgeOf(per, at, 1);
var periodText = ({ per, sliding }) => (sliding ? "a sliding " : "each ") + per;
var costFrom = (epsilon, noise) => noise.caveat === null ? { amount: unitsUp(epsilon), unprotected: 0 } : { amount: 0, unprotected: 1 };
var DIGITS = 9;
var UNITS = 10n ** BigInt(DIGITS);
function unitsUp(epsilon) {
  const { numerator, denominator } = ofDecimal(String(epsilon));
  return Number(ceiling(numerator * UNITS, denominator));
}
function formatUnits(units) {
  const digits = String(units).padStart(DIGITS + 1, "0");
  return `${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`.replace(/\.?0+$/, "");
}
function slotOf(at, refresh = "month", perPeriod = 1) {
  checkSlots(refresh, perPeriod);
  const now = moment(() => at);
  const end = edgeOf(refresh, now, 1);
  if (end === null) return "ever";
  const name = new Date(now).toISOString().slice(0, refresh === "day" ? 10 : 7);
  const start = edgeOf(refresh, now, 0);
  const part = Math.floor((now - start) * perPeriod / (end - start));
  return perPeriod === 1 ? name : `${name}.${part + 1}of${perPeriod}`;
}
function checkSlots(refresh, perPeriod, per = "lifetime") {
  checkPeriod("refresh", refresh);
  if (!Number.isInteger(perPeriod) || perPeriod < 1 || perPeriod > (refresh === "lifetime" ? 1 : 1e3)) {
    throw invalidParameter("perPeriod must be a whole number from 1 to 1000, and 1 for a lifetime.");
  }
  if (PERIODS.indexOf(refresh) > PERIODS.indexOf(per)) {
    throw invalidParameter(`a slot must not be longer than the budget's period: use refresh "${per}", or a budget per "${refresh}".`);
  }
}
var PERIODS = ["day", "month", "lifetime"];
var DAY = 864e5;
var LENGTHS = { day: DAY, month: 31 * DAY, lifetime: 0 };
var END_OF_TIME = 29e5 * DAY;
function moment(clock) {
  const at = Math.floor(clock());
  if (!(at >= 0 && at <= END_OF_TIME)) {
    throw new TacitError("ledger-unavailable", "the system clock shows an impossible date; nothing was charged. Set it and try again.");
  }
  return at;
}
function edgeOf(per, at, later) {
  const date = new Date(at);
  if (per === "day") return at - at % DAY + later * DAY;
  return per === "month" ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1) : null;
}
function checkPeriod(what, value) {
  const period = PERIODS.find((known) => known === value);
  if (period === void 0) throw invalidParameter(`${what} must be one of ${PERIODS.join(", ")}.`);
  return period;
}

// src/ledger.ts
var Ledger = class {
  constructor(database, clock) {
    this.database = database;
    this.clock = clock;
  }
  /** Agrees terms with a subject, once. Of all subjects whose names start with `unique`, the database accepts only the first. */
  async agree(subject, terms, unique) {
    await this.database.transact("readwrite", async (stores) => {
      const table = stores("terms");
      const rows = await result(table.getAll());
      const agreed = rows.find((row) => unique === void 0 ? row.subject === subject : row.subject.startsWith(unique));
      const written = JSON.stringify(terms);
      if (agreed === void 0) table.put({ subject, terms: written });
      else if (agreed.subject !== subject || agreed.terms !== written) {
        throw conflict(
          "this database was created with another budget, refresh, perPeriod, noise or number of features. Open it with the original ones."
        );
      }
    });
  }
  /**
   * Checks and writes a charge in one transaction. Charging the same `id` again costs nothing. A refused charge leaves no trace. `ready` runs
   * in the same transaction, after the charge was found to fit and before it is written; if it throws, the charge is undone.
   */
  async charge(subject, id, cost, ready) {
    const now = moment(this.clock);
    return this.database.transact("readwrite", async (stores) => {
      const row = await chargeOf(stores, subject, id);
      if (row !== void 0) {
        if (row.amount !== cost.amount || row.unprotected !== cost.unprotected) {
          throw conflict("this id was already charged with another cost.");
        }
        return { fresh: false, stored: row.content };
      }
      const charges = stores("charges");
      const tip = await last(charges);
      const at = Math.max(now, tip?.at ?? 0);
      const { budget, total, spent } = await spentBy(stores, subject, at);
      const allowed = unitsUp(budget.epsilon);
      if (spent + cost.amount > allowed) {
        const left = `${formatUnits(allowed - spent)} of ${formatUnits(allowed)} is left in ${periodText(budget)}`;
        throw new TacitError("budget-exhausted", `a charge of ${formatUnits(cost.amount)} was refused; ${left}.`);
      }
      await ready?.(stores);
      charges.add({ number: (tip?.number ?? 0) + 1, subject, id, at, ...cost, total: total + cost.amount, content: null });
      return { fresh: true, stored: null };
    });
  }
  /** Keeps the bytes released for a charge, unless some are kept already. Returns the kept bytes: send those. */
  keep(subject, id, content) {
    return this.database.transact("readwrite", async (stores) => {
      const row = await chargeOf(stores, subject, id);
      if (row === void 0) throw conflict("cannot keep a release that was not charged.");
      if (row.content === null) stores("charges").put({ ...row, content });
      return row.content ?? content;
    });
  }
  /** Returns the bytes kept for a charge. Reading costs nothing. */
  stored(subject, id) {
    return this.database.transact("readonly", async (stores) => (await chargeOf(stores, subject, id))?.content ?? null);
  }
  /** Returns the newest bytes kept under an id with this ending. They are already paid for. */
  newest(subject, ending) {
    return this.database.transact("readonly", async (stores) => {
      const rows = await result(stores("charges").index("at").getAll(since(subject, -Infinity)));
      return rows.reverse().find((row) => row.content !== null && row.id.endsWith(ending))?.content ?? null;
    });
  }
  async statement(subject) {
    const now = moment(this.clock);
    return this.database.transact("readonly", async (stores) => {
      const { budget, spent, at } = await spentBy(stores, subject, now);
      const range = since(subject, windowOf(budget, at));
      const rows = await result(stores("charges").index("at").getAll(range));
      const renews = renewalOf(budget, at);
      return {
        budget,
        spent: formatUnits(spent),
        left: formatUnits(Math.max(0, unitsUp(budget.epsilon) - spent)),
        charges: rows.length,
        renews: renews === null ? null : new Date(renews),
        entries: rows.map((row) => ({ at: new Date(row.at), what: row.id, epsilon: formatUnits(row.amount) }))
      };
    });
  }
};
var chargeOf = (stores, subject, id) => result(stores("charges").index("id").get([subject, id]));
async function spentBy(stores, subject, now) {
  const agreed = await result(stores("terms").get(subject));
  if (agreed === void 0) throw new TacitError("unknown-subject", "the ledger has no terms for this subject.");
  const { budget } = JSON.parse(agreed.terms);
  const index = stores("charges").index("at");
  const newest = await last(index, since(subject, -Infinity));
  const at = Math.max(now, newest?.at ?? 0);
  const total = newest?.total ?? 0;
  const start = windowOf(budget, at);
  const before = start === -Infinity ? null : await last(index, IDBKeyRange.bound([subject, -Infinity], [subject, start], false, true));
  return { budget, at, total, spent: total - (before?.total ?? 0) };
}
var since = (subject, start) => IDBKeyRange.bound([subject, start], [subject, Infinity]);
var GRACE = 86400;
var CLAIMED = -1;
var CHOSEN = 0;
var SHOWN = 1;
var REPORTED = 2;
var Displays = class {
  constructor(database, server) {
    this.database = database;
    this.server = server;
  }
  /** Returns the choice made for this token, or null. */
  find(token) {
    return this.database.transact("readonly", async (stores) => {
      const display = await result(stores("displays").get([this.server, token]));
      return display === void 0 ? null : choiceOf(display);
    });
  }
  /**
   * Claims a token: true for the first call in any tab, which alone may write a choice. If that call fails, nobody writes one, because the
   * time that scoring takes must not decide which of two calls is shown.
   */
  claim(token, expires) {
    const key = `claim ${token}`;
    return this.#add({ token: key, expires, state: CLAIMED }).then((existing) => existing === void 0);
  }
  /** Writes a choice, unless there is one already. Returns the written choice: show only that. */
  choose(choice) {
    return this.#add({ ...choice, state: CHOSEN }).then((existing) => choiceOf(existing ?? choice));
  }
  /** Records that a choice is on screen (SHOWN) or that the server gave its final answer (REPORTED). */
  mark(token, state) {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const display = await result(table.get([this.server, token]));
      if (display === void 0) throw unknownName("there is no choice for this offer: call choose first.");
      if (state > display.state + 1) throw invalidParameter("a choice must be marked as shown before it is reported.");
      if (state > display.state) table.put({ ...display, state });
      return choiceOf(display);
    });
  }
  /** Returns the choices that were shown and not yet reported, ordered by token, an order that carries no information. */
  unreported() {
    const range = IDBKeyRange.bound([this.server, SHOWN], [this.server, SHOWN, []]);
    return this.database.transact("readonly", async (stores) => {
      return (await result(stores("displays").index("state").getAll(range))).map(choiceOf);
    });
  }
  /** Deletes displays whose offers expired more than 24 hours before `now` (milliseconds), so that servers cannot fill the database. */
  forget(now) {
    const lapsed = IDBKeyRange.upperBound(Math.ceil(now / 1e3) - GRACE, true);
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      for (const key of await result(table.index("expires").getAllKeys(lapsed))) table.delete(key);
    });
  }
  /** Adds a row unless its key exists. Returns the existing row, if any. */
  #add(row) {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const existing = await result(table.get([this.server, row.token]));
      if (existing === void 0) table.add({ ...row, server: this.server });
      return existing;
    });
  }
};
var choiceOf = ({ server: _, state: __, ...choice }) => Object.freeze(choice);
function setConsent(database, granted, now) {
  return database.transact("readwrite", async (stores) => {
    const table = stores("consents");
    const current = await last(table);
    if (granted && current?.granted) return;
    const today = Math.max(Math.floor(now / DAY), current?.day ?? 0);
    const day = current?.granted === granted ? current.day : today;
    await result(table.add({ number: (current?.number ?? 0) + 1, granted, day }));
  });
}
async function consentOf(stores) {
  const { number, granted } = await last(stores("consents")) ?? { number: 0, granted: false };
  return { granted, revoked: number - Number(granted) };
}
var VERSION = 1;
var STORES = ["terms", "charges", "displays", "consents"];
var Database = class _Database {
  constructor(db) {
    this.db = db;
    db.onversionchange = () => db.close();
  }
  static async open(name) {
    try {
      const request = indexedDB.open(name, VERSION);
      request.onupgradeneeded = () => createStores(request.result);
      return new _Database(await result(request));
    } catch (problem) {
      throw unavailable(problem);
    }
  }
  /**
   * Runs `work` in one transaction over all stores. When this returns, the transaction is on disk; if `work` throws, all of it is undone.
   * Write transactions run one after the other, in all tabs.
   */
  async transact(mode, work) {
    let transaction;
    try {
      const begun = transaction = this.db.transaction(STORES, mode, { durability: "strict" });
      const complete = new Promise((resolve, reject) => {
        begun.oncomplete = resolve;
        begun.onabort = () => reject(begun.error);
      });
      complete.catch(() => void 0);
      const value = await work((name) => begun.objectStore(name));
      await complete;
      return value;
    } catch (problem) {
      try {
        transaction?.abort();
      } catch {
      }
      throw unavailable(problem);
    }
  }
  close() {
    this.db.close();
  }
};
function createStores(db) {
  db.createObjectStore("terms", { keyPath: "subject" });
  const charges = db.createObjectStore("charges", { keyPath: "number" });
  charges.createIndex("id", ["subject", "id"], { unique: true });
  charges.createIndex("at", ["subject", "at"]);
  const displays = db.createObjectStore("displays", { keyPath: ["server", "token"] });
  displays.createIndex("state", ["server", "state", "token"]);
  displays.createIndex("expires", "expires");
  db.createObjectStore("consents", { keyPath: "number" });
}
function result(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
async function last(source, range) {
  const cursor = await result(source.openCursor(range, "prev"));
  return cursor === null ? null : cursor.value;
}
function unavailable(problem) {
  if (problem instanceof TacitError) return problem;
  const name = problem?.name;
  return new TacitError("ledger-unavailable", `the browser's database cannot be read or written now (${name}).`);
}

// src/noise.ts
var BUFFER_SIZE = 4096;
var SystemNoise = class {
  constructor() {
    this.caveat = null;
    this.#buffer = new Uint8Array(0);
  }
  #buffer;
  draw(count) {
    if (this.#buffer.length < count) {
      try {
        this.#buffer = crypto.getRandomValues(new Uint8Array(Math.max(BUFFER_SIZE, count)));
      } catch {
        throw new TacitError("system-noise-unavailable", "the platform returned no random bytes; nothing was released.");
      }
    }
    const bytes = this.#buffer.slice(0, count);
    this.#buffer.fill(0, 0, count);
    this.#buffer = this.#buffer.subarray(count);
    return bytes;
  }
};
var systemNoise = new SystemNoise();
function leadingBits(noise, count) {
  const size = Math.ceil(count / 8);
  let value = 0n;
  for (const byte of noise.draw(size)) value = value << 8n | BigInt(byte);
  return value >> BigInt(8 * size - count);
}

// src/mechanisms.ts
var SHIFT = BigInt(WEIGHT_BITS);
var WHOLE = 1n << 2n * SHIFT;
function topResponse(count, d, epsilon) {
  const weight = weightOf(epsilon);
  const best = BigInt(d) * weight;
  const total = best + (BigInt(count - d) << SHIFT);
  return (scores, noise) => {
    const order = rank(scores);
    const draw = below(total, noise);
    const other = Number(draw - best >> SHIFT);
    if (d > 1) return order[other < 0 ? Number(draw / weight) : d + other];
    return other < 0 ? order[0] : other + Number(other >= order[0]);
  };
}
function envelope(floors, epsilon) {
  const exact = floors.map(BigInt);
  const total = exact.reduce((sum, floor) => sum + floor, 0n);
  const weight = weightOf(epsilon);
  if (total << SHIFT > WHOLE || total * weight < WHOLE) {
    throw invalidParameter("the sum of floors must be at most 1, and e^epsilon times the sum at least 1.");
  }
  return (scores, noise) => {
    const weights = exact.map((floor) => floor << SHIFT);
    let spare = WHOLE - (total << SHIFT);
    for (const candidate of rank(scores)) {
      const most = exact[candidate] * (weight - (1n << SHIFT));
      const raise = most < spare ? most : spare;
      weights[candidate] += raise;
      spare -= raise;
    }
    let draw = leadingBits(noise, 2 * WEIGHT_BITS);
    return weights.findIndex((own) => (draw -= own) < 0n);
  };
}
function permuteAndFlip(count, epsilon) {
  const rate = rateOf("pf", count, epsilon);
  return (scores, noise) => {
    const coins = exponentsOf(scores, rate).map((exponent) => exponentialCoin(exponent, noise));
    const heads = coins.flatMap((head, candidate) => head ? [candidate] : []);
    return heads[indexBelow(heads.length, noise)];
  };
}
function gumbel(count, epsilon) {
  const rate = rateOf("gumbel", count, epsilon);
  return (scores, noise) => exponentialChoice(exponentsOf(scores, rate), noise);
}
function exponentsOf(scores, rate) {
  return scaleScores(scores).map((step) => ({ numerator: BigInt(STEPS - step) * rate.numerator, denominator: rate.denominator }));
}
function randomisedBit(clicked, epsilon, noise) {
  const weight = weightOf(epsilon);
  return Number(clicked === below(weight + (1n << SHIFT), noise) < weight);
}
function rank(scores) {
  const values = scores.map((score) => score > -Number.MAX_VALUE ? score : -Number.MAX_VALUE);
  return values.map((_, index) => index).sort((a, b) => values[a] === values[b] ? 0 : values[b] > values[a] ? 1 : -1);
}
var STEPS = 2 ** 20;
var LARGEST = Number.MAX_VALUE;
function scaleScores(scores) {
  const halves = scores.map((score) => 0.5 * Math.min(Math.max(score, -LARGEST), LARGEST));
  const numbers = halves.filter((half) => !Number.isNaN(half));
  const low = Math.min(...numbers);
  const width = Math.max(...numbers) - low;
  if (!(width > 0)) return halves.map(() => STEPS);
  return halves.map((half) => Number.isNaN(half) ? 0 : Math.floor((half - low) / width * STEPS));
}
var { exp, expm1, log, log1p, max } = Math;
var MARGIN = 2 ** -35;
function rateOf(rule, k, epsilon) {
  const loss = rule === "gumbel" ? gumbelLoss : flipLoss;
  const target = epsilon - MARGIN * max(1, epsilon);
  let [low, high] = [epsilon / 2, epsilon];
  for (let round2 = 0; round2 < 60; round2 += 1) {
    const middle = (low + high) / 2;
    if (loss(middle, k) <= target)
      low = middle;
    else high = middle;
  }
  const { numerator, denominator } = ofFloat(low);
  return fraction(numerator, denominator * BigInt(STEPS));
}
function gumbelLoss(lambda, k) {
  const others = log(k - 1);
  const gap = lambda - others;
  return 2 * lambda + log1p(exp(-lambda - others)) - (max(gap, 0) + log1p(exp(-Math.abs(gap))));
}
var flipLoss = (lambda, k) => 2 * lambda + logOneMinusExp(k * logOneMinusExp(-lambda));
var logOneMinusExp = (x) => x > -0.7 ? log(-expm1(x)) : log1p(-exp(x));
function discreteLaplace({ numerator, denominator }, noise) {
  for (; ; ) {
    const remainder = below(numerator, noise);
    if (!seriesCoin(remainder, numerator, noise)) continue;
    let rounds = 0n;
    while (seriesCoin(1n, 1n, noise)) rounds += 1n;
    const magnitude = (remainder + numerator * rounds) / denominator;
    const negative = leadingBits(noise, 1) === 1n;
    if (!negative) return magnitude;
    if (magnitude > 0n) return -magnitude;
  }
}
function seriesCoin(above, under, noise) {
  for (let round2 = 1n; ; round2 += 1n) {
    if (below(under * round2, noise) >= above) return round2 % 2n === 1n;
  }
}
var WORD = 64;
function exponentialCoin(exponent, noise) {
  const negated = { ...exponent, numerator: -exponent.numerator };
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    prefix = prefix << BigInt(WORD) | leadingBits(noise, WORD);
    const [low, high] = expBounds(negated, known);
    if (prefix < low) return true;
    if (prefix >= high) return false;
  }
}
function exponentialChoice(exponents, noise) {
  let prefix = 0n;
  for (let known = WORD; ; known += WORD) {
    prefix = prefix << BigInt(WORD) | leadingBits(noise, WORD);
    const bounds = exponents.map((exponent) => expBounds({ ...exponent, numerator: -exponent.numerator }, known + WORD));
    const [least, most] = bounds.reduce(([a, b], [low, high]) => [a + low, b + high], [0n, 0n]);
    const [start, end] = [prefix * least, (prefix + 1n) * most];
    let [lowSum, highSum] = [0n, 0n];
    for (const [item, [low, high]] of bounds.entries()) {
      const begins = highSum << BigInt(known);
      [lowSum, highSum] = [lowSum + low, highSum + high];
      const last2 = item === bounds.length - 1;
      if (begins <= start && (end <= lowSum << BigInt(known) || last2)) return item;
    }
  }
}
function below(bound, noise) {
  const size = bitLength(bound - 1n);
  for (; ; ) {
    const value = size === 0 ? 0n : leadingBits(noise, size);
    if (value < bound) return value;
  }
}
var indexBelow = (bound, noise) => Number(below(BigInt(bound), noise));

// src/multi_selection.ts
async function ask(eta, context) {
  const { ledger, subject, budget, dimension } = context;
  const cost = costFrom(guaranteeOf(eta, dimension).epsilon, context.noise);
  if (cost.amount > unitsUp(budget.epsilon)) {
    const price = `${formatUnits(cost.amount)} of ${budget.epsilon} in ${periodText(budget)}`;
    throw invalidParameter(`a signal with this eta never fits into the budget (${price}): use a larger eta.`);
  }
  const kind = `${context.version} ${eta.numerator}/${eta.denominator}`;
  const id = `${slotOf(moment(ledger.clock), context.refresh, context.perPeriod)} ${kind}`;
  const memo = await ledger.stored(subject, id);
  if (memo !== null) return { signal: Signal.fromBytes(memo), from: "memo" };
  try {
    return await runInTurn(`tacit ${ledger.database.db.name} ${subject} ${id}`, () => release(id, cost, eta, context));
  } catch (problem) {
    if (!(problem instanceof TacitError && problem.code === "budget-exhausted")) throw problem;
  }
  const older = await ledger.newest(subject, ` ${kind}`);
  return older === null ? { signal: Signal.nothing(dimension, eta), from: "nothing" } : { signal: Signal.fromBytes(older), from: "older" };
}
async function release(id, cost, eta, { ledger, subject, features, noise }) {
  let row = null;
  const receipt = await ledger.charge(subject, id, cost, async (stores) => row = await features(stores));
  if (receipt.stored !== null) return { signal: Signal.fromBytes(receipt.stored), from: "memo" };
  const drawn = drawSignal(row ?? await ledger.database.transact("readonly", features), eta, noise).toBytes();
  const kept = await ledger.keep(subject, id, drawn);
  return { signal: Signal.fromBytes(kept), from: kept === drawn ? "fresh" : "memo" };
}
function runInTurn(name, work) {
  const locks = globalThis.navigator?.locks;
  return locks === void 0 ? work() : locks.request(name, work);
}
function drawSignal(features, eta, noise) {
  const scale = fraction(eta.numerator << BigInt(GRID_BITS), eta.denominator);
  const most = BigInt(MOST_STEPS);
  const steps = Array.from(features, (feature) => {
    const noisy = BigInt(nearestEven(feature * 2 ** GRID_BITS)) + discreteLaplace(scale, noise);
    return Number(noisy > most ? most : noisy < -most ? -most : noisy);
  });
  return new Signal(steps, GRID_BITS, eta, noise.caveat !== null);
}
function pick(reply, features, t = 1) {
  const estimates = estimatorOf(reply, features.length)(features);
  const best = rank(estimates).slice(0, t);
  return { picked: best.map((index) => reply.items[index]), estimates };
}
function slateOf(reply, catalogue) {
  return reply.items.map((number) => {
    const index = catalogue.indexOfNumber(number);
    if (index === void 0) throw invalidMessage("the slate has an item that this catalogue lacks: load the server's catalogue again.");
    return index;
  });
}
function estimatorOf(reply, dimension) {
  if (reply.dimension !== dimension) {
    throw invalidMessage(`the reply's local model is for ${reply.dimension} features; this device has ${dimension}.`);
  }
  if (reply.kind === "network") throw invalidMessage("the reply needs a network on the device, which has none.");
  if (reply.kind === "none") return () => reply.items.map((_, index) => -index);
  const rows = reply.rows();
  const matrix = reply.kind === "principal-components" ? linearMapOf(rows, reply.items.length) : rows;
  if (!matrix.every((row) => row.every(Number.isFinite))) {
    throw invalidMessage("the reply's principal components give no finite estimates.");
  }
  return (features) => linearEstimates(matrix, features);
}
function linearMapOf(basis, items) {
  const above = basis.slice(0, basis.length - items);
  const below2 = basis.slice(basis.length - items);
  const inverse = pseudoinverse(above.map((row) => Array.from(row)));
  return below2.map((row) => above.map((_, column) => inverse.reduce((sum, own, component) => sum + row[component] * own[column], 0)));
}
var CUT = 1e-6;
var SWEEPS = 60;
var CLOSE = 1e-15;
function pseudoinverse(matrix) {
  const wide = matrix.length < matrix[0].length;
  const columns = wide ? matrix.map((row) => [...row]) : transpose(matrix);
  const rotations = columns.map((_, row) => columns.map((__, column) => Number(row === column)));
  for (let sweep = 0, moved = true; moved && sweep < SWEEPS; sweep += 1) {
    moved = false;
    for (let p = 0; p < columns.length; p += 1) {
      for (let q = p + 1; q < columns.length; q += 1) moved = rotate(columns, rotations, p, q) || moved;
    }
  }
  const squares = columns.map((column) => dot(column, column));
  const least = Math.max(...squares) * CUT * CUT;
  const inverse = columns.map(
    (_, row) => columns[0].map(
      (__, entry) => columns.reduce((sum, column, k) => squares[k] > least ? sum + rotations[k][row] * column[entry] / squares[k] : sum, 0)
    )
  );
  return wide ? transpose(inverse) : inverse;
}
function rotate(columns, rotations, p, q) {
  const [a, b, c] = [dot(columns[p], columns[p]), dot(columns[q], columns[q]), dot(columns[p], columns[q])];
  if (!(Math.abs(c) > CLOSE * Math.sqrt(a * b))) return false;
  const zeta = (b - a) / (2 * c);
  const tangent = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
  const cosine = 1 / Math.hypot(1, tangent);
  for (const table of [columns, rotations]) {
    const [first, second] = [table[p], table[q]];
    table[p] = first.map((value, entry) => cosine * (value - tangent * second[entry]));
    table[q] = second.map((value, entry) => cosine * (value + tangent * first[entry]));
  }
  return true;
}
var dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);
var transpose = (table) => table[0].map((_, column) => table.map((row) => row[column]));
var LEAST_RADIUS = 2 ** -20;
var SPARE = 1 + 2 ** -40;
function readingsOf(eta, space, ratings, protects) {
  const { epsilon, rounding } = guaranteeOf(eta, 2 * space.names.length);
  const at = (distance) => protects ? up(times(ofFloat(epsilon), plus(ofFloat(distance), ofFloat(rounding)))) : Infinity;
  const within = (radius) => at(Math.max(radius, LEAST_RADIUS) * SPARE);
  const blocks = blockSums(countsOf(space, ratings));
  const most = space.genres.reduce((largest, genres) => Math.max(largest, genres.length), 0);
  const added = Math.max(...blocks.map((count) => movedByOneRating(count, most)));
  let [removed, moved] = [0, 0];
  for (const [index, value] of ratings) {
    const size = space.genres[index]?.length ?? 0;
    const [own, other] = value >= space.likedFrom ? blocks : [blocks[1], blocks[0]];
    const distance = movedByOneRating(own - size, size);
    removed = Math.max(removed, distance);
    moved = Math.max(moved, distance + movedByOneRating(other, size));
  }
  const ofOwn = (distance) => ratings.size === 0 ? null : within(distance);
  const readings = {
    perUnit: protects ? epsilon : Infinity,
    oneRatingAdded: within(added),
    oneRatingRemoved: ofOwn(removed),
    oneRatingMoved: ofOwn(moved),
    anywhere: at(DIAMETER)
  };
  Object.defineProperty(readings, "toJSON", { value: () => refuseToSerialise("a reading") });
  return Object.freeze(readings);
}

// src/private_selection.ts
var MOST_AHEAD = 31 * 24 * 3600;
var LEAST_EPSILON = 1e-3;
async function choose(offer, context) {
  const { displays, ledger, noise } = context;
  const { token, expires, policy, candidates } = offer;
  const written = await displays.find(token);
  if (written !== null) return written;
  const ahead = expires - moment(ledger.clock) / 1e3;
  if (!(ahead > 0 && ahead <= MOST_AHEAD) || offer.batch !== null) return null;
  const publicScores = candidates.map((candidate) => candidate.public_score);
  const supported = supports(policy);
  try {
    if (supported) prepare(policy, publicScores);
  } catch {
    return null;
  }
  if (!await displays.claim(token, expires)) return displays.find(token);
  const consented = await ledger.database.transact("readonly", context.consented);
  const cost = costOf(policy);
  let [applied, scores] = [withoutCost(policy), null];
  if (consented && supported && cost === 0) applied = policy;
  else if (consented && supported && context.quality !== null && cost >= LEAST_EPSILON && cost <= context.limits.epsilon) {
    const charge = ledger.charge(context.subject, `choice ${token}`, costFrom(cost, noise), context.consented);
    const receipt = await charge.catch(nullIfRefused);
    if (receipt?.fresh) {
      const quality = context.quality;
      applied = policy;
      scores = privateScores(candidates, () => quality(candidates.map(({ item }) => item)));
    } else if (receipt !== null) return null;
  }
  const items = select(applied, scores, publicScores, noise).map((index) => candidates[index].item);
  return displays.choose({ token, items, expires, policy: applied, consented, epsilon: costOf(applied) });
}
function nullIfRefused(problem) {
  if (problem instanceof TacitError && (problem.code === "budget-exhausted" || problem.code === "conflict")) return null;
  throw problem;
}
var MICRO = 1e6;
var LARGEST2 = 1e300;
function privateScores(candidates, quality) {
  const publicScores = candidates.map((candidate) => candidate.public_score);
  try {
    const estimates = quality();
    if (!Array.isArray(estimates) || estimates.length !== candidates.length) return publicScores;
    return candidates.map(({ bid }, index) => {
      const estimate = estimates[index];
      const score = typeof estimate === "number" ? bid / MICRO * estimate : NaN;
      return Math.abs(score) <= LARGEST2 ? score : publicScores[index];
    });
  } catch {
    return publicScores;
  }
}
var MOST_COINS = 200;
var MOST_RANKED = 2e4;
var supports = ({ rule, bounding, m, slots }) => rule !== "laplace" && rule !== "greedy" && bounding !== "clipped" && m * slots <= (bounding === "none" ? MOST_RANKED : MOST_COINS);
function select(policy, scores, publicScores, noise) {
  const draw = prepare(policy, publicScores);
  if (draw === null) return selectPublicly(policy, noise);
  if (scores?.length !== policy.m) throw new TacitError("invalid-input", "expected one private score for each candidate.");
  return draw(scores, noise);
}
function prepare(policy, publicScores) {
  if (publicScores.length !== policy.m || !publicScores.every(Number.isFinite) || !(supports(policy) || policy.m === 1)) {
    throw invalidParameter(`this device does not support ${policy.rule} with these public scores.`);
  }
  if (costOf(policy) === 0) return null;
  const share = shareOf(policy);
  const draws = Array.from({ length: policy.slots }, (_, slot) => drawOf(policy, share, policy.m - slot));
  return (scores, noise) => {
    const left = scores.map((_, index) => index);
    return draws.map((draw) => {
      const picked = draw(
        left.map((index) => scores[index]),
        noise
      );
      return left.splice(picked, 1)[0];
    });
  };
}
function shareOf({ epsilon, slots }) {
  const { numerator, denominator } = ofFloat(epsilon);
  return down(fraction(numerator, denominator * BigInt(slots)));
}
function drawOf({ rule, d, floors }, epsilon, count) {
  if (count === 1) return () => 0;
  if (rule === "rr") return topResponse(count, d, epsilon);
  return rule === "envelope" ? envelope(floors ?? [], epsilon) : rule === "pf" ? permuteAndFlip(count, epsilon) : gumbel(count, epsilon);
}
function selectPublicly(policy, noise) {
  const left = Array.from({ length: policy.m }, (_, index) => index);
  const uniform = policy.rule === "uniform" || policy.rule === "rr" && policy.m > 1;
  return Array.from({ length: policy.slots }, () => left.splice(uniform ? indexBelow(left.length, noise) : 0, 1)[0]);
}

// src/device.ts
var TIDY_EVERY = 36e5;
var Delegate = class _Delegate {
  constructor(catalogue, client, signals, choices) {
    this.catalogue = catalogue;
    this.#client = client;
    this.#signals = signals;
    this.#choices = choices;
    this.#consent = new ConsentGuard(signals.ledger.database, this.#profile);
  }
  #profile = new Profile();
  #consent;
  #client;
  #signals;
  #choices;
  #scorer = null;
  #tidied = -Infinity;
  /** Loads the server's catalogue and opens the ledger. Throws `conflict` if the ledger was created with another budget or other slots. */
  static async open(options) {
    const { place = "tacit", refresh = "month", perPeriod = 1, noise = systemNoise, clock = Date.now } = options;
    const budget = checkBudget(options.budget);
    const limits = checkLimits(options.limits);
    checkSlots(refresh, perPeriod, budget.per);
    const client = new Client(options.server ?? globalThis.location.origin, options.fetch, options.onExchange);
    const catalogue = await client.catalogue();
    const version = await versionOf(catalogue);
    const { dimension } = catalogue;
    const database = await Database.open(place);
    const ledger = new Ledger(database, clock);
    const subject = `me ${refresh} ${perPeriod}`;
    const selection = `selection ${client.origin}`;
    try {
      const { rounding } = guaranteeOf(exactEta(1), dimension);
      await ledger.agree(subject, { budget, protects: `features by L1 distance, + ${rounding}`, caveat: noise.caveat }, "me ");
      await ledger.agree(selection, { budget: limits.budget, protects: "one profile", caveat: noise.caveat });
    } catch (problem) {
      database.close();
      throw problem;
    }
    const displays = new Displays(database, client.origin);
    return new _Delegate(
      catalogue,
      client,
      { ledger, subject, budget, refresh, perPeriod, noise, version, dimension },
      { ledger, subject: selection, displays, limits, noise }
    );
  }
  /** Adds a rating to the profile in memory. Nothing is sent or written. */
  rate(item, value) {
    const [index, first] = [this.#indexOf(item), this.#profile.size === 0];
    this.#profile.rate(index, value);
    if (first) this.#consent.startProfile();
  }
  /** Removes a rating. A signal that was already drawn does not change. */
  forget(item) {
    this.#profile.forget(this.#indexOf(item));
  }
  /** Removes all ratings. */
  wipe() {
    this.#profile.wipe();
  }
  /** A copy of the ratings, by item. */
  ratings() {
    return new Map([...this.#profile.ratings()].map(([index, value]) => [this.catalogue.ids[index], value]));
  }
  /** The features of the profile. They stay on the device. */
  features() {
    return checkFeatures(featuresOf(this.catalogue, this.#profile.ratings()), this.catalogue.dimension);
  }
  /**
   * Returns this slot's signal. The first call charges and draws it; later calls return the same bytes, in every tab. Let the user choose
   * eta, never a server: signals with two etas are two signals, and both are charged.
   */
  async ask(eta) {
    const exact = exactEta(eta);
    await this.#consent.check();
    const features = (stores) => this.#consent.checkIn(stores).then(() => this.features());
    return ask(exact, { ...this.#signals, features });
  }
  /** Sends this slot's signal for a slate of `k` items and picks `t` of them on the device. The server does not learn which. */
  async recommend({ k = 5, t = 1, eta }) {
    new Request(Signal.nothing(this.catalogue.dimension, eta), k, t);
    const started = performance.now();
    const asked = await this.ask(eta);
    const sent = new Request(asked.signal, k, t).toBytes();
    await nextTick(started);
    const received = await this.#client.slate(sent);
    const reply = Reply.fromBytes(received);
    if (reply.k !== k) throw invalidMessage("the reply is for another k than the request.");
    const slate = slateOf(reply, this.catalogue).map((index) => this.catalogue.ids[index]);
    const estimates = estimatorOf(reply, this.catalogue.dimension)(this.features());
    const best = rank(estimates).slice(0, t);
    return { picked: best.map((index) => slate[index]), slate, estimates, asked, sent, received };
  }
  /** What one signal reveals, in plain numbers. Draws and charges nothing. Show the result to the user only. */
  readings(eta) {
    return readingsOf(exactEta(eta), this.catalogue, this.#profile.ratings(), this.#signals.noise.caveat === null);
  }
  /** What signals have spent in the current period, and what is left. */
  statement() {
    return this.#signals.ledger.statement(this.#signals.subject);
  }
  /** Records the user's consent to private selection, with its date. Without consent, offers are answered from public data only. */
  consent() {
    return setConsent(this.#signals.ledger.database, true, this.#now());
  }
  /** Records that the user withdrew their consent and wipes the profile, in every tab. Spent budget stays spent. */
  async revoke() {
    this.#profile.wipe();
    await setConsent(this.#signals.ledger.database, false, this.#now());
  }
  /** Whether the user consents now. */
  consented() {
    return this.#consent.check();
  }
  /** Asks the server for an offer in a public context. Returns null (no fill) if there is none or the answer is not a valid offer. */
  async offer(context = "") {
    const request = offerRequest(context, await this.consented());
    await this.#loadScorer();
    return this.#client.offer(request);
  }
  /**
   * Chooses what to show for an offer. The cost is on disk before the draw, and the choice before it is returned; the same token returns the
   * same items again. Returns null for an expired offer, and while or after another call chooses for the same token. Fetch the content of
   * all candidates first: fetching only the chosen item's content would reveal the choice.
   */
  async choose(offer) {
    if (!isOffer(offer)) return null;
    const now = this.#now();
    if (!(now - this.#tidied >= 0 && now - this.#tidied < TIDY_EVERY)) {
      this.#tidied = now;
      await this.#choices.displays.forget(now);
    }
    const started = performance.now();
    const scorer = this.#scorer;
    const quality = scorer === null ? null : (items) => scorer(this.features(), items);
    const consented = (stores) => this.#consent.checkIn(stores);
    try {
      await this.#consent.check();
      return await choose(offer, { ...this.#choices, consented, quality });
    } finally {
      await nextTick(started);
    }
  }
  /** Records that the choice is on screen, then reports it. Returns "pending" if the server gave no final answer. */
  async shown(choice) {
    return this.#report(await this.#choices.displays.mark(choice.token, SHOWN));
  }
  /** Sends every report without a final answer again, with the same bytes. Returns how many are still pending. */
  async flush() {
    await this.#choices.displays.forget(this.#now());
    let pending = 0;
    for (const choice of await this.#choices.displays.unreported()) {
      if (await this.#report(choice) === "pending") pending += 1;
    }
    return pending;
  }
  /** What choices have spent for this server in the current period, and what is left. */
  selectionStatement() {
    return this.#choices.ledger.statement(this.#choices.subject);
  }
  /** Closes the database and wipes the profile, which was never written. */
  close() {
    this.wipe();
    this.#signals.ledger.database.close();
  }
  toJSON() {
    return refuseToSerialise("a delegate holds a profile, which");
  }
  async #report({ token, items }) {
    const outcome = await this.#client.report(token, items);
    if (outcome !== "pending") await this.#choices.displays.mark(token, REPORTED).catch(() => void 0);
    return outcome;
  }
  /** Loads the public scorer. If that fails, offers are answered publicly, and the next offer tries again. */
  async #loadScorer() {
    if (this.#scorer !== null) return;
    try {
      const parts = await this.#client.scorer() ?? await this.#client.scorer();
      this.#scorer = parts && scorerOf(parts, this.catalogue);
    } catch {
      this.#scorer = null;
    }
  }
  #indexOf(item) {
    const index = this.catalogue.indexOf(item);
    if (index === void 0) throw unknownName("no such item in this catalogue: look it up with catalogue.find(text).");
    return index;
  }
  #now() {
    return moment(this.#signals.ledger.clock);
  }
};
var ConsentGuard = class {
  constructor(database, profile) {
    this.database = database;
    this.profile = profile;
  }
  #lastRevocation = 0;
  // when the profile was started
  #reading = Promise.resolve();
  /** Notes that an empty profile got its first rating: earlier revocations do not apply to it. */
  startProfile() {
    const read2 = async (stores) => void (this.#lastRevocation = (await consentOf(stores)).revoked);
    this.#reading = this.database.transact("readonly", read2).catch(() => void 0);
  }
  /** Returns whether the user consents now. Wipes a profile that was started before their last revocation. */
  async check() {
    await this.#reading;
    return this.database.transact("readonly", (stores) => this.checkIn(stores));
  }
  /** The same within a transaction. */
  async checkIn(stores) {
    const { granted, revoked } = await consentOf(stores);
    if (revoked > this.#lastRevocation) this.profile.wipe();
    return granted;
  }
};
var TICK = 100;
function nextTick(started) {
  return new Promise((resolve) => setTimeout(resolve, TICK - (performance.now() - started) % TICK));
}
export {
  Catalogue,
  Delegate,
  Reply,
  Request,
  Signal,
  TacitError,
  costOf,
  exactEta,
  featuresOf,
  offerFromJSON,
  pick,
  policyFromJSON,
  randomisedBit,
  select,
  slotOf,
  systemNoise
};
