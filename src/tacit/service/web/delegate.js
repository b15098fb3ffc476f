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
function refuseToBeWritten(what) {
  throw invalidParameter(`${what} is private and is not written, copied or sent.`);
}

// src/features.ts
var KIND = "genre-profile/1";
var DIAMETER = 4;
var TOLERANCE = 1e-6;
function countsOf(space, ratings) {
  const counts = new Float64Array(2 * space.names.length);
  for (const [place, value] of ratings) {
    const block = value >= space.likedFrom ? 0 : space.names.length;
    for (const genre of space.genres[place] ?? []) counts[block + genre] += 1;
  }
  return counts;
}
function featuresOf(space, ratings) {
  const counts = countsOf(space, ratings);
  const totals = blockSums(counts);
  return counts.map((count, place) => count / (totals[place < counts.length / 2 ? 0 : 1] || 1));
}
function blockSums(row) {
  const sum = (part) => part.reduce((total, one) => total + one, 0);
  return [sum(row.subarray(0, row.length / 2)), sum(row.subarray(row.length / 2))];
}
function checkedFeatures(features, dimension) {
  const inside = features.length === dimension && features.every((one) => one >= 0 && one <= 1);
  if (!inside || !blockSums(features).every((sum) => sum <= TOLERANCE || Math.abs(sum - 1) <= TOLERANCE)) {
    throw new TacitError(
      "invalid-features",
      "each of the two blocks of features must have shares of at least 0 that sum to 1, or be all 0."
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
  space.genres.forEach((own, item) => own.forEach((genre) => flags[item * width + genre] = 1));
  const liked = new DataView(new ArrayBuffer(8));
  liked.setFloat64(0, space.likedFrom, true);
  const encoder = new TextEncoder();
  const parts = [encoder.encode(header), flags, encoder.encode(between), new Uint8Array(liked.buffer)];
  return (await sha256(await new Blob(parts).arrayBuffer())).slice(0, 32);
}
async function sha256(content) {
  if (globalThis.crypto?.subtle === void 0) {
    throw new TacitError("system-noise-unavailable", "WebCrypto is there on https and on loopback addresses only: open the page so.");
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// src/fields.ts
function reader(what, fits) {
  return (value, path = "$") => {
    if (!fits(value)) throw invalidMessage(`expected ${what} at ${path}.`);
    return value;
  };
}
var whole = (least, most) => reader(`a whole number from ${least} to ${most}`, (value) => Number.isInteger(value) && value >= least && value <= most);
var real = (most = Infinity) => reader("a finite number", (value) => Number.isFinite(value) && Math.abs(value) <= most);
var oneOf = (...allowed) => reader(`one of ${allowed.join(", ")}`, (value) => allowed.includes(value));
function matching(what, pattern) {
  const expression = new RegExp(`^${pattern}$`, "u");
  return reader(what, (value) => typeof value === "string" && expression.test(value));
}
var text = (least = 0, most = 200) => matching(`a text of ${least} to ${most} characters`, `\\P{Cs}{${least},${most}}`);
var printable = (most) => matching("printable characters", `( |[^\\p{C}\\p{Z}]){1,${most}}`);
var hexadecimal = (least, most) => matching("hexadecimal digits", `([0-9a-f]{2}){${least},${most}}`);
var orNull = (read4) => (value, path) => value === null ? null : read4(value, path);
var list = (read4) => {
  const listed = reader("a list", Array.isArray);
  return (value, path) => listed(value, path).map((one) => read4(one, path));
};
var record = (members) => {
  const names = Object.keys(members);
  const object = reader(`an object of ${names.join(", ")}`, (value) => {
    const found = typeof value === "object" && value !== null ? Object.keys(value) : [];
    return found.length === names.length && names.every((name) => found.includes(name));
  });
  return (value, path = "$") => {
    const found = object(value, path);
    return Object.fromEntries(names.map((name) => [name, members[name](found[name], `${path}.${name}`)]));
  };
};
var VERSION_1 = whole(1, 1);

// src/fraction.ts
function fraction(numerator, denominator) {
  const divisor = gcd(numerator < 0n ? -numerator : numerator, denominator);
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
  const found = /^\s*\+?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?\s*$/.exec(text3);
  const [, whole2 = "", part = "", exponent = "0"] = found ?? [];
  if (found === null || text3.length > 400 || whole2 + part === "") return null;
  const places = BigInt(part.length) - BigInt(exponent);
  const digits = BigInt(whole2 + part);
  return places > 0n ? fraction(digits, 10n ** places) : fraction(digits * 10n ** -places, 1n);
}
var times = (first, second) => fraction(first.numerator * second.numerator, first.denominator * second.denominator);
var plus = (first, second) => fraction(first.numerator * second.denominator + second.numerator * first.denominator, first.denominator * second.denominator);
var up = (value) => rounded(value, true);
var down = (value) => rounded(value, false);
var ceiling = (numerator, denominator) => (numerator + denominator - 1n) / denominator;
function rounded({ numerator, denominator }, upwards) {
  const shift = 54 - (bits(numerator) - bits(denominator));
  const [above, below2] = shift > 0 ? [numerator << BigInt(shift), denominator] : [numerator, denominator << BigInt(-shift)];
  const quotient = above / below2;
  const spare = BigInt(bits(quotient) - 53);
  const kept = quotient >> spare;
  const exact = kept << spare === quotient && above % below2 === 0n;
  return Number(upwards && !exact ? kept + 1n : kept) * 2 ** (Number(spare) - shift);
}
var bits = (value) => value === 0n ? 0 : value.toString(2).length;
function gcd(first, second) {
  while (second !== 0n) [first, second] = [second, first % second];
  return first;
}

// src/eta.ts
var MOST_U32 = (1n << 32n) - 1n;
function exactEta(eta) {
  const written = typeof eta === "number" || typeof eta === "string" ? String(eta) : "";
  const [, above, under] = /^\s*(\d{1,40})\/(\d{1,40})\s*$/.exec(written) ?? [];
  const exact = above === void 0 || under === void 0 ? ofDecimal(written) : BigInt(under) === 0n ? null : fraction(BigInt(above), BigInt(under));
  if (exact === null || !inRange(exact)) {
    throw invalidParameter("eta must be a number from 0.001 to 10 of at most nine decimals, or a fraction of two numbers below 2^32.");
  }
  return exact;
}
var inRange = ({ numerator, denominator }) => 1000n * numerator >= denominator && numerator <= 10n * denominator && numerator <= MOST_U32 && denominator <= MOST_U32;

// src/signal.ts
var NO_SIGNAL = "this is no signal or request, or one of another version: steps within 2^30 of 0, eta from 0.001 to 10 in lowest terms.";
var VERSION = 21249;
var HEADER = 16;
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
    const fitting = listed.length >= 1 && listed.length <= MOST_DIMENSION && listed.every((step) => Number.isInteger(step) && Math.abs(step) <= MOST_STEPS) && Number.isInteger(gridBits) && gridBits >= 0 && gridBits <= MOST_GRID_BITS && inRange(eta) && (!empty || !(simulated || listed.some(Boolean)));
    if (!fitting) throw invalidMessage(NO_SIGNAL);
    this.steps = Int32Array.from(listed);
  }
  /** Tells nothing about the user: for a device whose budget is spent. */
  static nothing(dimension, eta, gridBits = GRID_BITS) {
    return new _Signal(new Int32Array(dimension), gridBits, typeof eta === "object" ? eta : exactEta(eta), false, true);
  }
  get dimension() {
    return this.steps.length;
  }
  /** The noisy features. They may lie outside the domain of features: that is normal. */
  get values() {
    return Float64Array.from(this.steps, (step) => step * 2 ** -this.gridBits);
  }
  /** What the sender was promised: epsilon per unit of (L1 distance + rounding); null where noise was simulated. */
  get guarantee() {
    if (this.simulated) return null;
    if (this.empty) return { epsilon: 0, rounding: 0 };
    return promised(this.eta, this.dimension, this.gridBits);
  }
  /** The message as a device keeps it. */
  toBytes() {
    return packed(this, 0, 0);
  }
  static fromBytes(content) {
    const { signal, k, t } = unpacked(content);
    if (k !== 0 || t !== 0) throw invalidMessage(NO_SIGNAL);
    return signal;
  }
};
function promised(eta, dimension, gridBits = GRID_BITS) {
  return {
    epsilon: up({ numerator: eta.denominator, denominator: eta.numerator }),
    rounding: up(fraction(BigInt(dimension), 1n << BigInt(gridBits)))
  };
}
function packed(signal, k, t) {
  const view = new DataView(new ArrayBuffer(HEADER + 4 * signal.dimension));
  view.setUint16(0, VERSION, true);
  view.setUint8(2, (signal.simulated ? SIMULATED : 0) | (signal.empty ? EMPTY : 0));
  view.setInt8(3, -signal.gridBits);
  view.setUint32(4, Number(signal.eta.numerator), true);
  view.setUint32(8, Number(signal.eta.denominator), true);
  view.setUint16(12, signal.dimension, true);
  view.setUint8(14, k);
  view.setUint8(15, t);
  signal.steps.forEach((step, place) => view.setInt32(HEADER + 4 * place, step, true));
  return new Uint8Array(view.buffer);
}
function unpacked(content) {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const dimension = content.length < HEADER ? -1 : view.getUint16(12, true);
  const flags = dimension < 0 ? 0 : view.getUint8(2);
  if (content.length !== HEADER + 4 * dimension || view.getUint16(0, true) !== VERSION || flags > (SIMULATED | EMPTY)) {
    throw invalidMessage(NO_SIGNAL);
  }
  const steps = Int32Array.from({ length: dimension }, (_, place) => view.getInt32(HEADER + 4 * place, true));
  const eta = lowest(view.getUint32(4, true), view.getUint32(8, true));
  const signal = new Signal(steps, 0 - view.getInt8(3), eta, (flags & SIMULATED) !== 0, (flags & EMPTY) !== 0);
  return { signal, k: view.getUint8(14), t: view.getUint8(15) };
}
function lowest(above, under) {
  const found = fraction(BigInt(above), BigInt(under || 1));
  if (found.denominator !== BigInt(under)) throw invalidMessage(NO_SIGNAL);
  return found;
}

// src/catalogue.ts
var text2 = text(0, 2e3);
var number = whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
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
  ids: list((value, path) => (typeof value === "string" ? text2 : number)(value, path)),
  titles: orNull(list(text2)),
  genres: list(list(whole(0, MOST_DIMENSION)))
});
var Catalogue = class _Catalogue {
  // titles as they are searched
  constructor(name, model, names, likedFrom, ids, titles, genres) {
    this.name = name;
    this.model = model;
    this.names = names;
    this.likedFrom = likedFrom;
    this.ids = ids;
    this.titles = titles;
    this.genres = genres;
    this.#places = new Map(ids.map((id, place) => [id, place]));
    this.#numbered = ids.every((id) => typeof id === "number" && id >= 0);
  }
  #places;
  #numbered;
  #plain = null;
  static fromJSON(value) {
    const { name, model, features, ids, titles, genres } = read(value);
    const { names, liked_from, dimension } = features;
    const fits = dimension === 2 * names.length && genres.length === ids.length && (titles ?? ids).length === ids.length && new Set(ids).size === ids.length && ids.every((id) => typeof id === typeof ids[0]) && genres.every((own) => new Set(own).size === own.length && own.every((genre) => genre < names.length));
    if (!fits) throw invalidMessage("a catalogue has a title and genres for each id, and two features for each genre.");
    return new _Catalogue(name, model, names, liked_from, ids, titles, genres);
  }
  /** How many features there are: two for each genre. */
  get dimension() {
    return 2 * this.names.length;
  }
  /** The ids of at most `most` items whose title (or id, where there are no titles) contains `text`; the earlier in it, the earlier here. */
  find(text3, most = 10) {
    this.#plain ??= (this.titles ?? this.ids.map(String)).map(plain);
    const wanted = plain(text3);
    const at = this.#plain.map((title) => title.indexOf(wanted));
    const found = at.flatMap((start, place) => wanted === "" || start < 0 ? [] : [place]);
    found.sort((a, b) => at[a] - at[b]);
    return found.slice(0, most).map((place) => this.ids[place]);
  }
  /** The title of an item; its id as a text where there is none. */
  title(id) {
    return this.titles?.[this.#places.get(id) ?? -1] ?? String(id);
  }
  /** The place of an item in `ids`. */
  place(id) {
    return this.#places.get(id);
  }
  /** The place of the item that has this number on the wire: its id where ids are whole numbers of at least 0, else its place. */
  placeOfNumber(number2) {
    if (this.#numbered) return this.#places.get(Number(number2));
    return number2 < BigInt(this.ids.length) ? Number(number2) : void 0;
  }
  /** The place of an item by its id as a text, as offers name it. */
  placeOfText(item) {
    if (typeof this.ids[0] === "string") return this.#places.get(item);
    return String(Number(item)) === item ? this.#places.get(Number(item)) : void 0;
  }
};
var plain = (title) => title.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

// src/exp.ts
var WEIGHT_BITS = 32;
var REDUCED = 8;
function expBounds(exponent, count) {
  const { numerator, denominator } = exponent;
  const negative = numerator < 0n;
  const size = negative ? -numerator : numerator;
  if (size === 0n) return [1n << BigInt(count), 1n << BigInt(count)];
  if (negative && size >= BigInt(count) * denominator) return [0n, 1n];
  const halvings = REDUCED + (size / denominator).toString(2).length;
  const precision = BigInt(count + 64 + 2 * halvings + 4 * Number(size / denominator));
  let [low, high] = series(size, denominator << BigInt(halvings), precision);
  for (let left = halvings; left > 0; left -= 1) {
    low = low * low >> precision;
    high = (high * high >> precision) + 1n;
  }
  if (negative) {
    const one = 1n << 2n * precision;
    [low, high] = [one / high, one / low + 1n];
  }
  const spare = precision - BigInt(count);
  return [low >> spare, ceiling(high, 1n << spare)];
}
function series(size, denominator, precision) {
  const one = 1n << precision;
  let [term, sum, terms] = [one, one, 1n];
  while (term > 0n) {
    term = term * size / (denominator * terms);
    sum += term;
    terms += 1n;
  }
  return [sum, sum + 2n * terms + 2n];
}
function weightOf(epsilon) {
  const exact = ofFloat(epsilon);
  for (let more = 96; ; more *= 2) {
    const [low, high] = expBounds(exact, WEIGHT_BITS + more).map((end) => end >> BigInt(more));
    const least = 1n << BigInt(WEIGHT_BITS);
    if (low === high) return low > least ? low : least;
  }
}

// src/noise.ts
var BUFFER = 4096;
var SystemNoise = class {
  constructor() {
    this.caveat = null;
    this.#buffer = new Uint8Array(0);
  }
  #buffer;
  draw(count) {
    if (this.#buffer.length < count) {
      try {
        this.#buffer = crypto.getRandomValues(new Uint8Array(Math.max(BUFFER, count)));
      } catch {
        throw new TacitError("system-noise-unavailable", "the platform gave no random bytes; nothing was released.");
      }
    }
    const given = this.#buffer.slice(0, count);
    this.#buffer.fill(0, 0, count);
    this.#buffer = this.#buffer.subarray(count);
    return given;
  }
};
var systemNoise = new SystemNoise();
function leadingBits(noise, count) {
  const size = Math.ceil(count / 8);
  let value = 0n;
  for (const byte of noise.draw(size)) value = value << 8n | BigInt(byte);
  return value >> BigInt(8 * size - count);
}

// src/uniform.ts
function below(bound, noise) {
  const size = bits(bound - 1n);
  for (; ; ) {
    const value = size === 0 ? 0n : leadingBits(noise, size);
    if (value < bound) return value;
  }
}
var placeBelow = (bound, noise) => Number(below(BigInt(bound), noise));

// src/clicks.ts
function randomisedBit(clicked, epsilon, noise) {
  const weight = weightOf(epsilon);
  return Number(clicked === below(weight + (1n << BigInt(WEIGHT_BITS)), noise) < weight);
}

// src/periods.ts
var PERIODS = ["day", "month", "lifetime"];
var DAY = 864e5;
var END_OF_TIME = 29e5 * DAY;
function moment(clock) {
  const at = Math.floor(clock());
  if (!(at >= 0 && at <= END_OF_TIME)) {
    throw new TacitError("ledger-unavailable", "the clock's time is in no calendar: mend it.");
  }
  return at;
}
var startOf = (per, at) => edgeOf(per, at, 0) ?? -Infinity;
var endOf = (per, at) => edgeOf(per, at, 1);
function edgeOf(per, at, later) {
  const date = new Date(at);
  if (per === "day") return at - at % DAY + later * DAY;
  return per === "month" ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + later, 1) : null;
}
function checkedPeriod(what, period) {
  const found = PERIODS.find((one) => one === period);
  if (found === void 0) throw invalidParameter(`${what} must be one of ${PERIODS.join(", ")}.`);
  return found;
}
function requireWithin(refresh, per) {
  if (PERIODS.indexOf(refresh) > PERIODS.indexOf(per)) {
    throw invalidParameter(`a slot must not be longer than the budget's period: say refresh "${per}", or a budget per "${refresh}".`);
  }
}

// src/budgets.ts
var LENGTHS = { day: DAY, month: 31 * DAY, lifetime: 0 };
var windowOf = ({ per, sliding }, at) => sliding ? at - LENGTHS[per] + 1 : startOf(per, at);
var renewalOf = ({ per, sliding }, at) => sliding ? null : endOf(per, at);
var spanOf = ({ per, sliding }) => (sliding ? "a sliding " : "each ") + per;
var DIGITS = 9;
var UNITS = 10n ** BigInt(DIGITS);
function unitsUp(epsilon) {
  const { numerator, denominator } = ofDecimal(String(epsilon));
  return Number(ceiling(numerator * UNITS, denominator));
}
function shown(units) {
  const digits = String(units).padStart(DIGITS + 1, "0");
  return `${digits.slice(0, -DIGITS)}.${digits.slice(-DIGITS)}`.replace(/\.?0+$/, "");
}
var costFrom = (epsilon, noise) => noise.caveat === null ? { amount: unitsUp(epsilon), unprotected: 0 } : { amount: 0, unprotected: 1 };
function checkedBudget(budget) {
  const { epsilon, per, sliding = false } = budget;
  const { numerator, denominator } = epsilon > 0 && ofDecimal(String(epsilon)) || { numerator: 0n, denominator: 1n };
  if (numerator === 0n || numerator * UNITS % denominator !== 0n || !Number.isSafeInteger(unitsUp(epsilon))) {
    throw invalidParameter("the epsilon of a budget is a number above 0 of at most nine decimals, and below 9 million.");
  }
  const found = { epsilon, per: checkedPeriod("per", per) };
  if (!sliding) return found;
  if (sliding !== true || per === "lifetime") throw invalidParameter("sliding is true or false, and a lifetime does not slide.");
  return { ...found, sliding };
}

// src/discrete_laplace.ts
function discreteLaplace(scale, noise) {
  const { numerator, denominator } = scale;
  for (; ; ) {
    const remainder = below(numerator, noise);
    if (!coin(remainder, numerator, noise)) continue;
    let rounds = 0n;
    while (coin(1n, 1n, noise)) rounds += 1n;
    const magnitude = (remainder + numerator * rounds) / denominator;
    const negative = leadingBits(noise, 1) === 1n;
    if (!negative) return magnitude;
    if (magnitude > 0n) return -magnitude;
  }
}
function coin(above, under, noise) {
  for (let round = 1n; ; round += 1n) {
    if (below(under * round, noise) >= above) return round % 2n === 1n;
  }
}

// src/half.ts
function fromHalf(code) {
  const sign = code & 32768 ? -1 : 1;
  const exponent = code >> 10 & 31;
  const mantissa = code & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24);
}
function nearestEven(value) {
  const up2 = Math.round(value);
  return up2 - value === 0.5 && up2 % 2 !== 0 ? up2 - 1 : up2;
}

// src/local_models.ts
var CUT = 1e-6;
var SWEEPS = 60;
var CLOSE = 1e-15;
var linearEstimates = (matrix, features) => matrix.map((row) => {
  let total = row[0];
  for (let place = 1; place < row.length; place += 1) total += row[place] * features[place - 1];
  return total;
});
function mapOf(basis, items) {
  const above = basis.slice(0, basis.length - items);
  const below2 = basis.slice(basis.length - items);
  const inverse = pseudoinverse(above.map((row) => Array.from(row)));
  return below2.map((row) => above.map((_, column) => inverse.reduce((sum, own, place) => sum + row[place] * own[column], 0)));
}
function pseudoinverse(matrix) {
  const wide = matrix.length < matrix[0].length;
  const columns = wide ? matrix.map((row) => [...row]) : transposed(matrix);
  const turns = columns.map((_, row) => columns.map((__, column) => Number(row === column)));
  for (let sweep = 0, moved = true; moved && sweep < SWEEPS; sweep += 1) {
    moved = false;
    for (let p = 0; p < columns.length; p += 1) {
      for (let q = p + 1; q < columns.length; q += 1) moved = rotate(columns, turns, p, q) || moved;
    }
  }
  const squares = columns.map((column) => dot(column, column));
  const least = Math.max(...squares) * CUT * CUT;
  const inverse = columns.map(
    (_, row) => columns[0].map(
      (__, place) => columns.reduce((sum, column, k) => squares[k] > least ? sum + turns[k][row] * column[place] / squares[k] : sum, 0)
    )
  );
  return wide ? transposed(inverse) : inverse;
}
function rotate(columns, turns, p, q) {
  const [a, b, c] = [dot(columns[p], columns[p]), dot(columns[q], columns[q]), dot(columns[p], columns[q])];
  if (!(Math.abs(c) > CLOSE * Math.sqrt(a * b))) return false;
  const zeta = (b - a) / (2 * c);
  const tangent = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
  const cosine = 1 / Math.hypot(1, tangent);
  for (const table of [columns, turns]) {
    const [first, second] = [table[p], table[q]];
    table[p] = first.map((one, place) => cosine * (one - tangent * second[place]));
    table[q] = second.map((one, place) => cosine * (one + tangent * first[place]));
  }
  return true;
}
var dot = (a, b) => a.reduce((sum, one, place) => sum + one * b[place], 0);
var transposed = (table) => table[0].map((_, column) => table.map((row) => row[column]));

// src/order.ts
function ranked(scores) {
  const values = scores.map((one) => one > -Number.MAX_VALUE ? one : -Number.MAX_VALUE);
  return values.map((_, place) => place).sort((a, b) => values[a] === values[b] ? 0 : values[b] > values[a] ? 1 : -1);
}

// src/multi_selection.ts
function drawSignal(features, eta, noise) {
  const scale = fraction(eta.numerator << BigInt(GRID_BITS), eta.denominator);
  const most = BigInt(MOST_STEPS);
  const steps = Array.from(features, (feature) => {
    const noisy = BigInt(nearestEven(feature * 2 ** GRID_BITS)) + discreteLaplace(scale, noise);
    return Number(noisy > most ? most : noisy < -most ? -most : noisy);
  });
  return new Signal(steps, GRID_BITS, eta, noise.caveat !== null);
}
function placesOf(reply, catalogue) {
  return reply.items.map((number2) => {
    const place = catalogue.placeOfNumber(number2);
    if (place === void 0) throw invalidMessage("the slate has an item that is not among this device's: load the server's items.");
    return place;
  });
}
function estimator(reply, dimension) {
  if (reply.dimension !== dimension) {
    throw invalidMessage(`the reply's local model is for ${reply.dimension} features; this device has ${dimension}.`);
  }
  if (reply.kind === "network") throw invalidMessage("the reply leaves the scoring to the device, which has no such model.");
  if (reply.kind === "none") return () => reply.items.map((_, place) => -place);
  const rows = reply.rows();
  const matrix = reply.kind === "principal-components" ? mapOf(rows, reply.items.length) : rows;
  if (!matrix.every((row) => row.every(Number.isFinite))) {
    throw invalidMessage("the reply's principal components give no finite estimates.");
  }
  return (features) => linearEstimates(matrix, features);
}
function pick(reply, features, t = 1) {
  const estimates = estimator(reply, features.length)(features);
  return {
    picked: ranked(estimates).slice(0, t).map((place) => reply.items[place]),
    estimates
  };
}

// src/slots.ts
function slotOf(at, refresh = "month", perPeriod = 1) {
  checkedSlots(refresh, perPeriod);
  const now = moment(() => at);
  const end = endOf(refresh, now);
  if (end === null) return "ever";
  const name = new Date(now).toISOString().slice(0, refresh === "day" ? 10 : 7);
  const start = startOf(refresh, now);
  const part = Math.floor((now - start) * perPeriod / (end - start));
  return perPeriod === 1 ? name : `${name}.${part + 1}of${perPeriod}`;
}
function checkedSlots(refresh, perPeriod) {
  checkedPeriod("refresh", refresh);
  if (!Number.isInteger(perPeriod) || perPeriod < 1 || perPeriod > (refresh === "lifetime" ? 1 : 1e3)) {
    throw invalidParameter("perPeriod must be a whole number from 1 to 1000; a lifetime has no parts.");
  }
}

// src/turns.ts
var inTurn = (name, work) => {
  const locks = globalThis.navigator?.locks;
  return locks === void 0 ? work() : locks.request(name, work);
};

// src/asking.ts
async function ask(eta, by) {
  const { ledger, subject } = by;
  const cost = costFrom(promised(eta, by.dimension).epsilon, by.noise);
  if (cost.amount > unitsUp(by.budget.epsilon)) {
    const least = `${shown(cost.amount)} of ${by.budget.epsilon} in ${spanOf(by.budget)}`;
    throw invalidParameter(`a signal with this eta never fits into the budget (${least}): ask with a larger eta.`);
  }
  const kind = `${by.version} ${eta.numerator}/${eta.denominator}`;
  const id = `${slotOf(moment(ledger.clock), by.refresh, by.perPeriod)} ${kind}`;
  const memo = await ledger.stored(subject, id);
  if (memo !== null) return { signal: Signal.fromBytes(memo), from: "memo" };
  try {
    return await inTurn(`tacit ${ledger.database.db.name} ${subject} ${id}`, () => draw(id, cost, eta, by));
  } catch (problem) {
    if (!(problem instanceof TacitError && problem.code === "budget-exhausted")) throw problem;
  }
  const older = await ledger.newest(subject, ` ${kind}`);
  return older === null ? { signal: Signal.nothing(by.dimension, eta), from: "nothing" } : { signal: Signal.fromBytes(older), from: "older" };
}
async function draw(id, cost, eta, { ledger, subject, features, noise }) {
  let row = null;
  const receipt = await ledger.charge(subject, id, cost, async (stores) => row = await features(stores));
  if (receipt.stored !== null) return { signal: Signal.fromBytes(receipt.stored), from: "memo" };
  const drawn = drawSignal(row ?? await ledger.database.transact("readonly", features), eta, noise).toBytes();
  const kept = await ledger.keep(subject, id, drawn);
  return { signal: Signal.fromBytes(kept), from: kept === drawn ? "fresh" : "memo" };
}

// src/database.ts
var VERSION2 = 1;
var STORES = ["terms", "charges", "displays", "consents"];
var Database = class _Database {
  constructor(db) {
    this.db = db;
    db.onversionchange = () => db.close();
  }
  static async open(place) {
    try {
      const request = indexedDB.open(place, VERSION2);
      request.onupgradeneeded = () => create(request.result);
      return new _Database(await answer(request));
    } catch (problem) {
      throw unavailable(problem);
    }
  }
  /**
   * One transaction over all stores. It is on the disk when this returns, and undone as a whole where `work` throws. Transactions
   * that write come one after the other, whichever tab they are from.
   */
  async transact(mode, work) {
    let transaction;
    try {
      const begun = transaction = this.db.transaction(STORES, mode, { durability: "strict" });
      const over = new Promise((resolve, reject) => {
        begun.oncomplete = resolve;
        begun.onabort = () => reject(begun.error);
      });
      over.catch(() => void 0);
      const result = await work((name) => begun.objectStore(name));
      await over;
      return result;
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
function answer(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
async function last(source, range) {
  const cursor = await answer(source.openCursor(range, "prev"));
  return cursor === null ? null : cursor.value;
}
function create(db) {
  db.createObjectStore("terms", { keyPath: "subject" });
  const charges = db.createObjectStore("charges", { keyPath: "number" });
  charges.createIndex("id", ["subject", "id"], { unique: true });
  charges.createIndex("at", ["subject", "at"]);
  const displays = db.createObjectStore("displays", { keyPath: ["server", "token"] });
  displays.createIndex("state", ["server", "state", "token"]);
  displays.createIndex("expires", "expires");
  db.createObjectStore("consents", { keyPath: "number" });
}
function unavailable(problem) {
  if (problem instanceof TacitError) return problem;
  return new TacitError("ledger-unavailable", `the browser's database cannot be read or written now (${problem?.name}).`);
}

// src/displays.ts
var GRACE = 86400;
var CHOSEN = 0;
var SHOWN = 1;
var REPORTED = 2;
var CLAIMED = -1;
var Displays = class {
  constructor(database, server) {
    this.database = database;
    this.server = server;
  }
  /** What was chosen for this offer, and how far that has come, if it was. */
  find(token) {
    return this.database.transact("readonly", async (stores) => {
      return await answer(stores("displays").get([this.server, token])) ?? null;
    });
  }
  /**
   * Whether this call is the first for the token, in any tab: it alone may write what is shown. Where it dies, nobody does: the time
   * that scoring takes must not decide which of two calls is shown.
   */
  claim(token, expires) {
    const key = `claim ${token}`;
    return this.#first({ token: key, expires, state: CLAIMED }).then((found) => found === void 0);
  }
  /** Keeps a choice, durably; the first to do so wins. Returns what is kept: show that, and nothing else. */
  choose(choice) {
    return this.#first({ ...choice, state: CHOSEN }).then((found) => choiceOf(found ?? choice));
  }
  /** Notes, durably, that a choice is on the screen (SHOWN), or that the server has given its final answer (REPORTED). */
  mark(token, state) {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const found = await answer(table.get([this.server, token]));
      if (found === void 0) throw unknownName("there is no choice for this offer: choose first.");
      if (state > found.state + 1) throw invalidParameter("what was not marked as shown is not reported: mark it first.");
      if (state > found.state) table.put({ ...found, state });
      return choiceOf(found);
    });
  }
  /** Choices from one state to another, in the order of tokens: an order that says nothing. */
  between(least, most) {
    const range = IDBKeyRange.bound([this.server, least], [this.server, most, []]);
    return this.database.transact("readonly", async (stores) => {
      return (await answer(stores("displays").index("state").getAll(range))).map(choiceOf);
    });
  }
  /** Adds a row unless there is one, which is returned. */
  #first(row) {
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      const found = await answer(table.get([this.server, row.token]));
      if (found === void 0) table.add({ ...row, server: this.server });
      return found;
    });
  }
  /** Deletes what expired more than 24 hours before `now`, in milliseconds: else servers would decide how many rows there are. */
  forget(now) {
    const lapsed = IDBKeyRange.upperBound(Math.ceil(now / 1e3) - GRACE, true);
    return this.database.transact("readwrite", async (stores) => {
      const table = stores("displays");
      for (const key of await answer(table.index("expires").getAllKeys(lapsed))) table.delete(key);
    });
  }
};
var choiceOf = ({ server: _, state: __, ...choice }) => Object.freeze(choice);

// src/policy.ts
var MOST_EPSILON = 40;
var MOST_CANDIDATES = 1e4;
var MOST_SLOTS = 100;
var FLOORS_WHOLE = 2 ** 32;
var read2 = record({
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
  const { id: rule, version: _, ...parts } = read2(value, path);
  const { m, epsilon, d, slots, bounding, width, floors } = parts;
  const free = rule === "public" || rule === "uniform" || rule === "greedy";
  const noisy = rule === "gumbel" || rule === "pf" || rule === "laplace";
  const total = floors?.reduce((sum, floor) => sum + floor, 0) ?? 0;
  const floored = total <= FLOORS_WHOLE && total * Math.exp(epsilon) >= FLOORS_WHOLE && floors?.length === m && slots === 1;
  const together = free === (epsilon === 0) && epsilon >= 0 && slots <= m && d <= m && (d === 1 || rule === "rr" && slots === 1) && noisy === (bounding !== "none") && (width === null ? bounding !== "clipped" : bounding === "clipped" && width > 0) && (floors === null ? rule !== "envelope" : rule === "envelope" && floored);
  if (!together) throw invalidMessage("the parts of a policy do not go together.");
  return Object.freeze({ rule, ...parts });
};
function costOf({ rule, m, d, epsilon }) {
  if (rule === "greedy") return m > 1 ? Infinity : 0;
  return rule === "public" || rule === "uniform" || m === 1 || rule === "rr" && d === m ? 0 : epsilon;
}
var withoutCost = ({ m, slots }) => Object.freeze({ rule: "public", m, epsilon: 0, d: 1, slots, bounding: "none", width: null, floors: null });

// src/boxes.ts
var STEPS = 2 ** 20;
var LARGEST = Number.MAX_VALUE;
function scaled(scores) {
  const halves = scores.map((one) => 0.5 * Math.min(Math.max(one, -LARGEST), LARGEST));
  const known = halves.filter((one) => !Number.isNaN(one));
  const low = Math.min(...known);
  const width = Math.max(...known) - low;
  if (!(width > 0)) return halves.map(() => STEPS);
  return halves.map((one) => Number.isNaN(one) ? 0 : Math.floor((one - low) / width * STEPS));
}

// src/calibration.ts
var { exp, expm1, log, log1p, max } = Math;
var MARGIN = 2 ** -35;
function rateOf(rule, k, epsilon) {
  const loss = rule === "gumbel" ? gumbelLoss : flipLoss;
  const target = epsilon - MARGIN * max(1, epsilon);
  let [low, high] = [epsilon / 2, epsilon];
  for (let round = 0; round < 60; round += 1) {
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

// src/coins.ts
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
    const bounds = exponents.map((one) => expBounds({ ...one, numerator: -one.numerator }, known + WORD));
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

// src/private_selection.ts
var MOST_COINS = 200;
var MOST_RANKED = 2e4;
var SHIFT = BigInt(WEIGHT_BITS);
var WHOLE = 1n << 2n * SHIFT;
var supported = ({ rule, bounding, m, slots }) => rule !== "laplace" && rule !== "greedy" && bounding !== "clipped" && m * slots <= (bounding === "none" ? MOST_RANKED : MOST_COINS);
function select(policy, scores, publicScores, noise) {
  const draw2 = prepared(policy, publicScores);
  if (draw2 !== null && scores?.length !== policy.m) {
    throw new TacitError("invalid-input", "expected one private score for each candidate.");
  }
  return draw2 === null ? selectPublicly(policy, noise) : draw2(scores, noise);
}
function prepared(policy, publicScores) {
  if (publicScores.length !== policy.m || !publicScores.every(Number.isFinite) || !(supported(policy) || policy.m === 1)) {
    throw invalidParameter(`this device does not follow ${policy.rule} with these public scores.`);
  }
  if (costOf(policy) === 0) return null;
  const each = shareOf(policy);
  const draws = Array.from({ length: policy.slots }, (_, pick2) => oneOf2(policy, each, policy.m - pick2));
  return (scores, noise) => {
    const left = scores.map((_, place) => place);
    return draws.map(
      (draw2) => left.splice(
        draw2(
          left.map((place) => scores[place]),
          noise
        ),
        1
      )[0]
    );
  };
}
function shareOf({ epsilon, slots }) {
  const { numerator, denominator } = ofFloat(epsilon);
  return down(fraction(numerator, denominator * BigInt(slots)));
}
function selectPublicly(policy, noise) {
  const left = Array.from({ length: policy.m }, (_, place) => place);
  const uniform = policy.rule === "uniform" || policy.rule === "rr" && policy.m > 1;
  return Array.from({ length: policy.slots }, () => left.splice(uniform ? placeBelow(left.length, noise) : 0, 1)[0]);
}
function oneOf2({ rule, d, floors }, epsilon, count) {
  if (count === 1) return () => 0;
  if (rule === "rr") return topResponse(count, d, epsilon);
  return rule === "envelope" ? envelope(floors ?? [], epsilon) : rule === "pf" ? permuteAndFlip(count, epsilon) : gumbel(count, epsilon);
}
function topResponse(count, d, epsilon) {
  const weight = weightOf(epsilon);
  const best = BigInt(d) * weight;
  const total = best + (BigInt(count - d) << SHIFT);
  return (scores, noise) => {
    const order = ranked(scores);
    const draw2 = below(total, noise);
    const other = Number(draw2 - best >> SHIFT);
    if (d > 1) return order[other < 0 ? Number(draw2 / weight) : d + other];
    return other < 0 ? order[0] : other + Number(other >= order[0]);
  };
}
function envelope(floors, epsilon) {
  const exact = floors.map(BigInt);
  const total = exact.reduce((sum, floor) => sum + floor, 0n);
  const weight = weightOf(epsilon);
  if (total << SHIFT > WHOLE || total * weight < WHOLE) {
    throw invalidParameter("floors must add up to at most 1, and e^epsilon times as much to at least 1.");
  }
  return (scores, noise) => {
    const weights = exact.map((floor) => floor << SHIFT);
    let spare = WHOLE - (total << SHIFT);
    for (const place of ranked(scores)) {
      const most = exact[place] * (weight - (1n << SHIFT));
      const given = most < spare ? most : spare;
      weights[place] += given;
      spare -= given;
    }
    let draw2 = leadingBits(noise, 2 * WEIGHT_BITS);
    return weights.findIndex((one) => (draw2 -= one) < 0n);
  };
}
function permuteAndFlip(count, epsilon) {
  const rate = rateOf("pf", count, epsilon);
  return (scores, noise) => {
    const coins = exponentsOf(scores, rate).map((exponent) => exponentialCoin(exponent, noise));
    const heads = coins.flatMap((head, place) => head ? [place] : []);
    return heads[placeBelow(heads.length, noise)];
  };
}
function gumbel(count, epsilon) {
  const rate = rateOf("gumbel", count, epsilon);
  return (scores, noise) => exponentialChoice(exponentsOf(scores, rate), noise);
}
function exponentsOf(scores, rate) {
  return scaled(scores).map((one) => ({ numerator: BigInt(STEPS - one) * rate.numerator, denominator: rate.denominator }));
}

// src/client.ts
var BINARY = "application/vnd.tacit";
var JSON_TYPE = "application/json";
var PATIENCE = 3e4;
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
  get(path, accept) {
    return this.#send("GET", path, null, { headers: { Accept: accept }, cache: "no-store" });
  }
  post(path, body, type) {
    const headers = { "Content-Type": type, Accept: type };
    return this.#send("POST", path, body, { headers, body, cache: "no-store" });
  }
  async #send(method, path, sent, more) {
    let found = { status: 0, body: new Uint8Array(0), headers: new Headers() };
    try {
      const response = await this.#fetch(this.origin + path, {
        method,
        credentials: "omit",
        referrerPolicy: "no-referrer",
        redirect: "error",
        signal: AbortSignal.timeout(PATIENCE),
        ...more
      });
      found = { status: response.status, body: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
    } catch {
    }
    const { status, body, headers } = found;
    const received = status === 0 ? null : body.slice();
    this.#onExchange({ method, path, sent: sent?.slice() ?? null, received, status, contentType: headers.get("Content-Type") ?? "" });
    return found;
  }
};
var isTransient = (status) => status === 0 || status === 408 || status === 429 || status >= 500;
function codeOf({ body, headers }) {
  const code = /^application\/problem\+json *(;|$)/i.test(headers.get("Content-Type") ?? "") ? memberOf(body, "code") : null;
  return typeof code === "string" && /^[a-z-]{1,40}$/.test(code) ? code : null;
}
function bodyOf(answer2) {
  const { status } = answer2;
  if (status === 200) return answer2.body;
  const later = isTransient(status) ? " Try again later." : "";
  throw new TacitError(
    status === 0 ? "unreachable" : codeOf(answer2) ?? "refused-by-server",
    `the server answered with status ${status}.${later}`
  );
}
function jsonOf(body) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw invalidMessage("expected JSON in UTF-8.");
  }
}
function memberOf(body, name) {
  try {
    return jsonOf(body)[name];
  } catch {
    return void 0;
  }
}
var jsonBytes = (value) => new TextEncoder().encode(JSON.stringify(value));

// src/request.ts
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
    return packed(this.signal, this.k, this.t);
  }
  static fromBytes(content) {
    const { signal, k, t } = unpacked(content);
    return new _Request(signal, k, t);
  }
};

// src/reply.ts
var NO_REPLY = "this is no reply, or one of another version: 1 to k items, none twice, and as many finite numbers as its header says.";
var VERSION3 = 20993;
var HEADER2 = 8;
var SHORT = 128;
var KINDS = ["none", "linear-map", "linear-map-half", "principal-components", "network"];
var Reply = class _Reply {
  // the model as it is sent, row by row, filled up to k items
  constructor(kind, items, k, dimension, components, numbers) {
    this.kind = kind;
    this.k = k;
    this.dimension = dimension;
    this.components = components;
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const spare = k - items.length;
    this.items = [...items];
    this.numbers = Float64Array.from(numbers);
    const fits = spare >= 0 && items.length >= 1 && k <= MOST_K && dimension >= 1 && components > 0 === (kind === "principal-components") && new Set(items).size === items.length && numbers.length === rows * columns && this.numbers.every(Number.isFinite) && // a slate that is too short is filled up with its last item
    this.numbers.every((one, place) => place < (rows - spare) * columns || one === this.numbers[place - columns]);
    if (!fits) throw invalidMessage(NO_REPLY);
  }
  /** Whether there were fewer than k items to offer. */
  get short() {
    return this.items.length < this.k;
  }
  /** The rows of the local model that belong to items; none where there is no model in the reply. */
  rows() {
    const [rows, columns] = shapeOf(this.kind, this.k, this.dimension, this.components);
    const used = Math.max(0, rows - (this.k - this.items.length));
    return Array.from({ length: used }, (_, row) => this.numbers.subarray(row * columns, (row + 1) * columns));
  }
  static fromBytes(content) {
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    const marked = content.length < HEADER2 || view.getUint16(0, true) !== VERSION3 ? SHORT - 1 : view.getUint8(2);
    const kind = KINDS[marked & ~SHORT];
    if (kind === void 0) throw invalidMessage(NO_REPLY);
    const [k, dimension, components] = [view.getUint8(3), view.getUint16(4, true), view.getUint16(6, true)];
    const [rows, columns] = shapeOf(kind, k, dimension, components);
    const [start, width] = [HEADER2 + 8 * k, kind === "linear-map-half" ? 2 : 4];
    if (content.length !== start + width * rows * columns) throw invalidMessage(NO_REPLY);
    const items = Array.from({ length: k }, (_, place) => view.getBigUint64(HEADER2 + 8 * place, true));
    const numbers = Float64Array.from(
      { length: rows * columns },
      (_, place) => width === 2 ? fromHalf(view.getUint16(start + 2 * place, true)) : view.getFloat32(start + 4 * place, true)
    );
    return new _Reply(kind, slateOf(items, (marked & SHORT) !== 0), k, dimension, components, numbers);
  }
};
function shapeOf(kind, k, dimension, components) {
  if (kind === "principal-components") return [1 + dimension + k, components];
  return kind === "linear-map" || kind === "linear-map-half" ? [k, 1 + dimension] : [0, 0];
}
function slateOf(filled, short) {
  const items = [...new Set(filled)];
  const last2 = items[items.length - 1];
  if (short !== items.length < filled.length || !filled.every((item, place) => item === (items[place] ?? last2))) {
    throw invalidMessage(NO_REPLY);
  }
  return items;
}

// src/scoring.ts
var MOST_PARTS = 1e3;
var MICRO = 1e6;
var LARGEST2 = 1e300;
function privateScores(candidates, quality) {
  const publicly = candidates.map((one) => one.public_score);
  try {
    const found = quality();
    if (!Array.isArray(found) || found.length !== candidates.length) return publicly;
    return candidates.map(({ bid }, place) => {
      const liked = found[place];
      const score = typeof liked === "number" ? bid / MICRO * liked : NaN;
      return Math.abs(score) <= LARGEST2 ? score : publicly[place];
    });
  } catch {
    return publicly;
  }
}
async function partsOf(part) {
  const first = await part(0);
  const count = Number(first.headers.get("Tacit-Parts") ?? 1);
  if (!(Number.isInteger(count) && count >= 1 && count <= MOST_PARTS)) return null;
  const all = [first, ...await Promise.all(Array.from({ length: count - 1 }, (_, place) => part(place + 1)))];
  const versions = new Set(all.map(({ headers }) => headers.get("Tacit-Version")));
  return versions.size > 1 ? null : all.map((answer2) => Reply.fromBytes(bodyOf(answer2)));
}
function scorerOf(parts, catalogue) {
  const rows = /* @__PURE__ */ new Map();
  for (const part of parts) {
    if (!part.kind.startsWith("linear-map") || part.dimension !== catalogue.dimension) return null;
    const own = part.rows();
    part.items.forEach((number2, place) => {
      const code = catalogue.placeOfNumber(number2);
      if (code !== void 0) rows.set(code, own[place]);
    });
  }
  return (features, items) => items.map((item) => {
    const row = rows.get(catalogue.placeOfText(item) ?? -1);
    return row === void 0 ? null : linearEstimates([row], features)[0];
  });
}

// src/choosing.ts
var MOST_AHEAD = 31 * 24 * 3600;
var LEAST_EPSILON = 1e-3;
async function choose(offer, by) {
  const { displays, ledger, noise } = by;
  const stored = await displays.find(offer.token);
  if (stored !== null) return choiceOf(stored);
  const ahead = offer.expires - moment(ledger.clock) / 1e3;
  if (!(ahead > 0 && ahead <= MOST_AHEAD) || offer.batch !== null) return null;
  const publicScores = offer.candidates.map((one) => one.public_score);
  const follows = supported(offer.policy);
  try {
    if (follows) prepared(offer.policy, publicScores);
  } catch {
    return null;
  }
  if (!await displays.claim(offer.token, offer.expires)) {
    const written = await displays.find(offer.token);
    return written === null ? null : choiceOf(written);
  }
  const consented = await ledger.database.transact("readonly", by.consented);
  const cost = costOf(offer.policy);
  let [applied, scores] = [withoutCost(offer.policy), null];
  if (consented && follows && cost === 0) applied = offer.policy;
  else if (consented && follows && by.quality !== null && cost >= LEAST_EPSILON && cost <= by.limits.epsilon) {
    const receipt = await ledger.charge(by.subject, `choice ${offer.token}`, costFrom(cost, noise), by.consented).catch(refused);
    if (receipt?.fresh) {
      const quality = by.quality;
      applied = offer.policy;
      scores = privateScores(offer.candidates, () => quality(offer.candidates.map((one) => one.item)));
    } else if (receipt !== null) return null;
  }
  const items = select(applied, scores, publicScores, noise).map((place) => offer.candidates[place].item);
  const { token, expires } = offer;
  return displays.choose({ token, items, expires, policy: applied, consented, epsilon: costOf(applied) });
}
function refused(problem) {
  if (problem instanceof TacitError && (problem.code === "budget-exhausted" || problem.code === "conflict")) return null;
  throw problem;
}

// src/consent.ts
function setConsent(database, granted, now) {
  return database.transact("readwrite", async (stores) => {
    const table = stores("consents");
    const found = await last(table);
    if (granted && found?.granted) return;
    const today = Math.max(Math.floor(now / DAY), found?.day ?? 0);
    const day = found?.granted === granted ? found.day : today;
    await answer(table.add({ number: (found?.number ?? 0) + 1, granted, day }));
  });
}
async function standing(stores) {
  const { number: number2, granted } = await last(stores("consents")) ?? { number: 0, granted: false };
  return { granted, revoked: number2 - Number(granted) };
}

// src/impression.ts
var context = text();
var offerRequest = (said, consent) => ({
  version: 1,
  context: context(said, "context"),
  consent: Number(consent)
});
var impression = (token, items) => ({ version: 1, token, items });
var OUTCOMES = ["ok", "duplicate", "conflict", "unknown", "expired"];
function outcomeOf(answer2) {
  const said = memberOf(answer2.body, "outcome");
  if (answer2.status === 200) return OUTCOMES.find((one) => one === said) ?? "pending";
  return isTransient(answer2.status) || codeOf(answer2) === null ? "pending" : "refused";
}

// src/ledger.ts
var Ledger = class {
  constructor(database, clock) {
    this.database = database;
    this.clock = clock;
  }
  /** Agrees terms with a subject. `alone` is how the names of subjects begin of which there may be one: the first. */
  async agree(subject, terms, alone) {
    await this.database.transact("readwrite", async (stores) => {
      const table = stores("terms");
      const found = await answer(table.getAll());
      const other = found.find((one) => alone === void 0 ? one.subject === subject : one.subject.startsWith(alone));
      const written = JSON.stringify(terms);
      if (other === void 0) table.put({ subject, terms: written });
      else if (other.subject !== subject || other.terms !== written) {
        throw conflict("this database has another budget, refresh, perPeriod, noise or number of features: open it as it was made.");
      }
    });
  }
  /**
   * Checks and writes in one transaction. The same `id` again is no second charge. Refused charges have charged nothing. `ready` is called
   * where the charge fits, before it is written, in the same transaction: what it throws undoes the charge.
   */
  async charge(subject, id, cost, ready) {
    const now = moment(this.clock);
    return this.database.transact("readwrite", async (stores) => {
      const charges = stores("charges");
      const found = await answer(charges.index("id").get([subject, id]));
      if (found !== void 0) {
        if (found.amount !== cost.amount || found.unprotected !== cost.unprotected) {
          throw conflict("this id was charged before, for something else.");
        }
        return { fresh: false, stored: found.content };
      }
      const tip = await last(charges);
      const at = Math.max(now, tip?.at ?? 0);
      const { budget, total, spent } = await spentBy(stores, subject, at);
      const allowed = unitsUp(budget.epsilon);
      if (spent + cost.amount > allowed) {
        throw new TacitError(
          "budget-exhausted",
          `a charge of ${shown(cost.amount)} was refused; ${shown(allowed - spent)} of ${shown(allowed)} is left in ${spanOf(budget)}.`
        );
      }
      await ready?.(stores);
      charges.add({ number: (tip?.number ?? 0) + 1, subject, id, at, ...cost, total: total + cost.amount, content: null });
      return { fresh: true, stored: null };
    });
  }
  /** Keeps what was drawn for a charge; the first to do so wins. Returns what is kept: send that. */
  keep(subject, id, content) {
    return this.database.transact("readwrite", async (stores) => {
      const charges = stores("charges");
      const found = await answer(charges.index("id").get([subject, id]));
      if (found === void 0) throw conflict("what was not charged is not kept.");
      if (found.content === null) charges.put({ ...found, content });
      return found.content ?? content;
    });
  }
  /** What was kept for a charge. Reading charges nothing. */
  stored(subject, id) {
    return this.database.transact("readonly", async (stores) => {
      const found = await answer(stores("charges").index("id").get([subject, id]));
      return found?.content ?? null;
    });
  }
  /** The newest that was kept under an id that ends so. It was paid for. */
  newest(subject, ending) {
    return this.database.transact("readonly", async (stores) => {
      const rows = await answer(stores("charges").index("at").getAll(since(subject, -Infinity)));
      return rows.reverse().find((row) => row.content !== null && row.id.endsWith(ending))?.content ?? null;
    });
  }
  async statement(subject) {
    const now = moment(this.clock);
    return this.database.transact("readonly", async (stores) => {
      const { budget, spent, at } = await spentBy(stores, subject, now);
      const rows = await answer(
        stores("charges").index("at").getAll(since(subject, windowOf(budget, at)))
      );
      const renews = renewalOf(budget, at);
      return {
        budget,
        spent: shown(spent),
        left: shown(Math.max(0, unitsUp(budget.epsilon) - spent)),
        charges: rows.length,
        renews: renews === null ? null : new Date(renews),
        entries: rows.map((row) => ({ at: new Date(row.at), what: row.id, epsilon: shown(row.amount) }))
      };
    });
  }
};
async function spentBy(stores, subject, now) {
  const agreed = await answer(stores("terms").get(subject));
  if (agreed === void 0) throw new TacitError("unknown-subject", "the ledger knows no subject of that name.");
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

// src/limits.ts
function checkedLimits({ epsilon = 1, budget = { epsilon: 10, per: "day", sliding: true } } = {}) {
  if (!(epsilon > 0 && epsilon <= MOST_EPSILON)) throw invalidParameter(`limits.epsilon lies above 0 and is at most ${MOST_EPSILON}.`);
  return { epsilon, budget: checkedBudget(budget) };
}

// src/offer.ts
var MOST_SECONDS = 29e5 * 86400;
var MOST = 1e15;
var MOST_ITEM = 128;
var micros = whole(0, MOST);
var read3 = record({
  version: VERSION_1,
  token: hexadecimal(16, 16),
  expires: whole(0, MOST_SECONDS),
  policy: policyFromJSON,
  candidates: list(record({ item: printable(MOST_ITEM), bid: micros, public_score: real(MOST) })),
  batch: orNull(
    record({ id: text(1, 100), prices: list(micros), key: hexadecimal(0, 100) })
  )
});
var CHECKED = /* @__PURE__ */ new WeakSet();
function offerFromJSON(value) {
  const { version: _, ...offer } = read3(value);
  const { candidates, policy, batch } = offer;
  const fits = candidates.length === policy.m && new Set(candidates.map((one) => one.item)).size === policy.m && candidates.every((one, place) => place === 0 || one.public_score <= candidates[place - 1].public_score) && (batch === null || batch.prices.length === policy.m && policy.slots === 1);
  if (!fits) throw invalidMessage("the parts of an offer do not go together.");
  CHECKED.add(offer);
  return Object.freeze(offer);
}
var isOffer = (value) => CHECKED.has(value);

// src/profile.ts
var MOST_RATING = 1e6;
var Profile = class {
  #ratings = /* @__PURE__ */ new Map();
  /** Adds a rating, or replaces an earlier one of the same item. The error shows no value. */
  rate(place, value) {
    if (typeof value !== "number" || !(Math.abs(value) <= MOST_RATING)) {
      throw invalidParameter(`a rating is a finite number from ${-MOST_RATING} to ${MOST_RATING}.`);
    }
    this.#ratings.set(place, value);
  }
  /** Removes a rating, if there is one. */
  forget(place) {
    this.#ratings.delete(place);
  }
  /** Removes all of it. */
  wipe() {
    this.#ratings.clear();
  }
  get size() {
    return this.#ratings.size;
  }
  /** A copy, in ascending order of places. */
  ratings() {
    return new Map([...this.#ratings].sort(([a], [b]) => a - b));
  }
  toJSON() {
    return refuseToBeWritten("a profile");
  }
};

// src/readings.ts
var LEAST_RADIUS = 2 ** -20;
var SPARE = 1 + 2 ** -40;
function readingsOf(eta, space, ratings, protects) {
  const { epsilon, rounding } = promised(eta, 2 * space.names.length);
  const at = (distance) => protects ? up(times(ofFloat(epsilon), plus(ofFloat(distance), ofFloat(rounding)))) : Infinity;
  const within = (radius) => at(Math.max(radius, LEAST_RADIUS) * SPARE);
  const blocks = blockSums(countsOf(space, ratings));
  const most = space.genres.reduce((found, own) => Math.max(found, own.length), 0);
  const added = Math.max(...blocks.map((count) => movedByOneRating(count, most)));
  let [removed, moved] = [0, 0];
  for (const [place, value] of ratings) {
    const size = space.genres[place]?.length ?? 0;
    const [own, other] = value >= space.likedFrom ? blocks : [blocks[1], blocks[0]];
    const gone = movedByOneRating(own - size, size);
    removed = Math.max(removed, gone);
    moved = Math.max(moved, gone + movedByOneRating(other, size));
  }
  const ofHers = (distance) => ratings.size === 0 ? null : within(distance);
  const readings = {
    perUnit: protects ? epsilon : Infinity,
    oneRatingAdded: within(added),
    oneRatingRemoved: ofHers(removed),
    oneRatingMoved: ofHers(moved),
    anywhere: at(DIAMETER)
  };
  Object.defineProperty(readings, "toJSON", { value: () => refuseToBeWritten("a reading") });
  return Object.freeze(readings);
}

// src/revocations.ts
var Revocations = class {
  constructor(database, profile) {
    this.database = database;
    this.profile = profile;
  }
  #seen = 0;
  // the last revocation at the time when the profile was last begun
  #looking = Promise.resolve();
  /** The profile, which was empty, is begun now: revocations until now are none of its ratings. */
  begun() {
    const look = async (stores) => void (this.#seen = (await standing(stores)).revoked);
    this.#looking = this.database.transact("readonly", look).catch(() => void 0);
  }
  /** Whether she consents now. What was begun before her last revocation is wiped. */
  async heed(stores) {
    const { granted, revoked } = await standing(stores);
    if (revoked > this.#seen) this.profile.wipe();
    return granted;
  }
  /** The same in a transaction of its own. */
  async heeded() {
    await this.#looking;
    return this.database.transact("readonly", (stores) => this.heed(stores));
  }
};

// src/ticks.ts
var TICK = 100;
function nextTick(started) {
  return new Promise((resolve) => setTimeout(resolve, TICK - (performance.now() - started) % TICK));
}

// src/delegate.ts
var TIDY_EVERY = 36e5;
var Delegate = class _Delegate {
  constructor(catalogue, client, asking, choosing) {
    this.catalogue = catalogue;
    this.#client = client;
    this.#asking = asking;
    this.#choosing = choosing;
    this.#revocations = new Revocations(asking.ledger.database, this.#profile);
  }
  #profile = new Profile();
  #revocations;
  #client;
  #asking;
  #choosing;
  #scorer = null;
  #tidied = -Infinity;
  /** Loads the server's catalogue and opens the ledger. Refused where the ledger was made with another budget or other slots. */
  static async open(options) {
    const { place = "tacit", refresh = "month", perPeriod = 1, noise = systemNoise, clock = Date.now } = options;
    const budget = checkedBudget(options.budget);
    const limits = checkedLimits(options.limits);
    checkedSlots(refresh, perPeriod);
    requireWithin(refresh, budget.per);
    const fetching = (...given) => (options.fetch ?? globalThis.fetch)(...given);
    const client = new Client(options.server ?? globalThis.location.origin, fetching, options.onExchange ?? (() => void 0));
    const catalogue = Catalogue.fromJSON(jsonOf(bodyOf(await client.get("/v1/catalogue", JSON_TYPE))));
    const version = await versionOf(catalogue);
    const { dimension } = catalogue;
    const database = await Database.open(place);
    const ledger = new Ledger(database, clock);
    const subject = `me ${refresh} ${perPeriod}`;
    const selection = `selection ${client.origin}`;
    try {
      const { rounding } = promised(exactEta(1), dimension);
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
  /** Adds a rating, in memory only: nothing leaves, and nothing is written. */
  rate(item, value) {
    const [place, first] = [this.#place(item), this.#profile.size === 0];
    this.#profile.rate(place, value);
    if (first) this.#revocations.begun();
  }
  /** Removes a rating. A signal that is already drawn stays what it is. */
  forget(item) {
    this.#profile.forget(this.#place(item));
  }
  /** Removes all ratings. */
  wipe() {
    this.#profile.wipe();
  }
  /** A copy of the ratings, by item. */
  ratings() {
    return new Map([...this.#profile.ratings()].map(([place, value]) => [this.catalogue.ids[place], value]));
  }
  /** The features of the profile: they stay here. */
  features() {
    return checkedFeatures(featuresOf(this.catalogue, this.#profile.ratings()), this.catalogue.dimension);
  }
  /**
   * This slot's signal: drawn and charged the first time, after that the same bytes, in every tab. eta is the user's choice, never a
   * server's: signals with two etas are two signals, and both are charged.
   */
  async ask(eta) {
    const exact = exactEta(eta);
    await this.#revocations.heeded();
    const features = (stores) => this.#revocations.heed(stores).then(() => this.features());
    return ask(exact, { ...this.#asking, features });
  }
  /** Sends this slot's signal for a slate of `k` items and picks `t` of them here. The server does not learn which. */
  async recommend({ k = 5, t = 1, eta }) {
    new Request(Signal.nothing(this.catalogue.dimension, eta), k, t);
    const started = performance.now();
    const asked = await this.ask(eta);
    const sent = new Request(asked.signal, k, t).toBytes();
    await nextTick(started);
    const received = bodyOf(await this.#client.post("/v1/multi-selection", sent, BINARY));
    const reply = Reply.fromBytes(received);
    if (reply.k !== k) throw invalidMessage("the reply has another number of items than was asked for.");
    const slate = placesOf(reply, this.catalogue);
    const estimates = estimator(reply, this.catalogue.dimension)(this.features());
    const ids = slate.map((place) => this.catalogue.ids[place]);
    return {
      picked: ranked(estimates).slice(0, t).map((place) => ids[place]),
      slate: ids,
      estimates,
      asked,
      sent,
      received
    };
  }
  /** What one signal promises, in plain numbers. Draws nothing and charges nothing. Show it to the user only. */
  readings(eta) {
    return readingsOf(exactEta(eta), this.catalogue, this.#profile.ratings(), this.#asking.noise.caveat === null);
  }
  /** What signals have spent in the period under way, and what is left. */
  statement() {
    return this.#asking.ledger.statement(this.#asking.subject);
  }
  /** She agrees that offers are chosen from by what is private. Dated, durable, and not so before it is said. */
  consent() {
    return setConsent(this.#asking.ledger.database, true, this.#now());
  }
  /** She no longer does: from the next offer on nothing private is read. The profile is wiped; what was spent stays spent. */
  async revoke() {
    this.#profile.wipe();
    await setConsent(this.#asking.ledger.database, false, this.#now());
  }
  consented() {
    return this.#revocations.heeded();
  }
  /** Asks the server for an offer in a public context. null, no fill, where there is none or what came is none. */
  async offer(context2 = "") {
    const body = jsonBytes(offerRequest(context2, await this.consented()));
    await this.#loadScorer();
    const answer2 = await this.#client.post("/v1/private-selection/offers", body, JSON_TYPE);
    if (answer2.status === 204) return null;
    const content = bodyOf(answer2);
    try {
      return offerFromJSON(jsonOf(content));
    } catch {
      return null;
    }
  }
  /**
   * What to show for an offer; the same token again: the same items. It is on the disk when it is returned, and its cost before it was
   * drawn. null where it expired, and while or after another call was choosing for the same token. Fetch the content of all candidates
   * before: fetching that of the choice alone tells it.
   */
  async choose(offer) {
    if (!isOffer(offer)) return null;
    const now = this.#now();
    if (!(now - this.#tidied >= 0 && now - this.#tidied < TIDY_EVERY)) {
      this.#tidied = now;
      await this.#choosing.displays.forget(now);
    }
    const started = performance.now();
    const scorer = this.#scorer;
    const quality = scorer === null ? null : (items) => scorer(this.features(), items);
    const consented = (stores) => this.#revocations.heed(stores);
    try {
      await this.#revocations.heeded();
      return await choose(offer, { ...this.#choosing, consented, quality });
    } finally {
      await nextTick(started);
    }
  }
  /** Notes, durably, that the choice is on the screen; then sends that. "pending" where the server gave no final answer. */
  async shown(choice) {
    return this.#report(await this.#choosing.displays.mark(choice.token, SHOWN));
  }
  /** Sends what was shown and has no final answer, the same bytes as before. Returns how many are still waiting. */
  async flush() {
    await this.#choosing.displays.forget(this.#now());
    let waiting = 0;
    for (const choice of await this.#choosing.displays.between(SHOWN, SHOWN)) {
      if (await this.#report(choice) === "pending") waiting += 1;
    }
    return waiting;
  }
  /** What choices have spent for this server in the period under way, and what is left. */
  selectionStatement() {
    return this.#choosing.ledger.statement(this.#choosing.subject);
  }
  /** Closes the database. The profile, which was not written, is gone. */
  close() {
    this.wipe();
    this.#asking.ledger.database.close();
  }
  toJSON() {
    return refuseToBeWritten("a delegate holds a profile, which");
  }
  async #report({ token, items }) {
    const answer2 = await this.#client.post("/v1/private-selection/impressions", jsonBytes(impression(token, items)), JSON_TYPE);
    const outcome = outcomeOf(answer2);
    if (outcome !== "pending") await this.#choosing.displays.mark(token, REPORTED).catch(() => void 0);
    return outcome;
  }
  /** Without the public model offers are answered publicly, and it is tried again. */
  async #loadScorer() {
    if (this.#scorer !== null) return;
    const part = (number2) => this.#client.get(`/v1/private-selection/scorer?part=${number2}`, BINARY);
    try {
      const parts = await partsOf(part) ?? await partsOf(part);
      this.#scorer = parts && scorerOf(parts, this.catalogue);
    } catch {
      this.#scorer = null;
    }
  }
  #place(item) {
    const place = this.catalogue.place(item);
    if (place === void 0) throw unknownName("there is no such item in this catalogue: look it up with catalogue.find(text).");
    return place;
  }
  #now() {
    return moment(this.#asking.ledger.clock);
  }
};
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
