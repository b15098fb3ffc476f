/** Exact arithmetic: fractions, directed rounding to floats, and enclosures of the exponential in integers. */

export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint; // above 0, in lowest terms
}

export function fraction(numerator: bigint, denominator: bigint): Fraction {
  let [divisor, rest] = [numerator < 0n ? -numerator : numerator, denominator];
  while (rest !== 0n) [divisor, rest] = [rest, divisor % rest];
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

/** Converts a float to its exact binary fraction. */
export function ofFloat(value: number): Fraction {
  let [mantissa, shift] = [value, 0];
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2; // exact
    shift += 1;
  }
  return fraction(BigInt(mantissa), 1n << BigInt(shift));
}

/** Converts a decimal such as "0.05" or "1e-3" to the fraction it denotes; null for any other text. */
export function ofDecimal(text: string): Fraction | null {
  const match = /^\s*\+?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?\s*$/.exec(text);
  const [, whole = "", part = "", exponent = "0"] = match ?? [];
  if (match === null || text.length > 400 || whole + part === "") return null;
  const decimals = BigInt(part.length) - BigInt(exponent);
  const digits = BigInt(whole + part);
  return decimals > 0n ? fraction(digits, 10n ** decimals) : fraction(digits * 10n ** -decimals, 1n);
}

export const times = (first: Fraction, second: Fraction): Fraction =>
  fraction(first.numerator * second.numerator, first.denominator * second.denominator);

export const plus = (first: Fraction, second: Fraction): Fraction =>
  fraction(first.numerator * second.denominator + second.numerator * first.denominator, first.denominator * second.denominator);

/** The smallest float at or above a positive fraction. */
export const up = (value: Fraction): number => round(value, true);

/** The largest float at or below a positive fraction. */
export const down = (value: Fraction): number => round(value, false);

/** Keeps the first 53 bits of a positive fraction and, upwards, adds one to the last of them if more bits follow. */
function round({ numerator, denominator }: Fraction, upwards: boolean): number {
  const shift = 54 - (bitLength(numerator) - bitLength(denominator));
  const [above, below] = shift > 0 ? [numerator << BigInt(shift), denominator] : [numerator, denominator << BigInt(-shift)];
  const quotient = above / below; // 54 or 55 bits
  const spare = BigInt(bitLength(quotient) - 53);
  const kept = quotient >> spare;
  const exact = kept << spare === quotient && above % below === 0n;
  return Number(upwards && !exact ? kept + 1n : kept) * 2 ** (Number(spare) - shift);
}

/** The quotient of two non-negative integers, rounded up. */
export const ceiling = (numerator: bigint, denominator: bigint): bigint => (numerator + denominator - 1n) / denominator;

/** The number of bits of a non-negative integer. */
export const bitLength = (value: bigint): number => (value === 0n ? 0 : value.toString(2).length);

/** Rounds to the nearest integer, ties to even. */
export function nearestEven(value: number): number {
  const nearest = Math.round(value); // rounds ties up
  return nearest - value === 0.5 && nearest % 2 !== 0 ? nearest - 1 : nearest;
}

const REDUCED = 8; // the series is summed at exponents below 2^-8

/** Returns integers (low, high) with low <= 2^bits e^exponent <= high. Their difference stays small as `bits` grows. */
export function expBounds(exponent: Fraction, bits: number): [bigint, bigint] {
  const { numerator, denominator } = exponent;
  const negative = numerator < 0n;
  const size = negative ? -numerator : numerator;
  if (size === 0n) return [1n << BigInt(bits), 1n << BigInt(bits)];
  if (negative && size >= BigInt(bits) * denominator) return [0n, 1n]; // e^-bits is below 2^-bits
  // e^x = (e^(x / 2^halvings))^(2^halvings). Each squaring loses a bit; a negative exponent loses twice as many bits as e^|x| has.
  const halvings = REDUCED + (size / denominator).toString(2).length;
  const precision = BigInt(bits + 64 + 2 * halvings + 4 * Number(size / denominator));
  let [low, high] = expSeries(size, denominator << BigInt(halvings), precision);
  for (let left = halvings; left > 0; left -= 1) {
    low = (low * low) >> precision;
    high = ((high * high) >> precision) + 1n;
  }
  if (negative) {
    const unit = 1n << (2n * precision);
    [low, high] = [unit / high, unit / low + 1n];
  }
  const spare = precision - BigInt(bits);
  return [low >> spare, ceiling(high, 1n << spare)];
}

/** Encloses 2^precision e^(size/denominator), for an exponent above 0 and below 2^-8, by the series rounded to both sides. */
function expSeries(size: bigint, denominator: bigint, precision: bigint): [bigint, bigint] {
  const unit = 1n << precision;
  let [term, sum, terms] = [unit, unit, 1n];
  while (term > 0n) {
    term = (term * size) / (denominator * terms);
    sum += term;
    terms += 1n;
  }
  // Each term is too small by less than 2, because earlier errors shrink with the terms. The rest of the series is below 2.
  return [sum, sum + 2n * terms + 2n];
}

export const WEIGHT_BITS = 32;

/** 2^32 e^epsilon rounded down, but at least 2^32, so its ratio to 2^32 never exceeds e^epsilon. Takes the float `epsilon` exactly. */
export function weightOf(epsilon: number): bigint {
  const exact = ofFloat(epsilon);
  for (let more = 96; ; more *= 2) {
    const [low, high] = expBounds(exact, WEIGHT_BITS + more).map((end) => end >> BigInt(more)) as [bigint, bigint];
    const least = 1n << BigInt(WEIGHT_BITS);
    if (low === high) return low > least ? low : least;
  }
}
