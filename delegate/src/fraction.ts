/** Exact fractions, and the roundings to floats that never understate a cost. */

export interface Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint; // above 0, in lowest terms
}

export function fraction(numerator: bigint, denominator: bigint): Fraction {
  const divisor = gcd(numerator < 0n ? -numerator : numerator, denominator);
  return { numerator: numerator / divisor, denominator: denominator / divisor };
}

/** A float as the binary fraction that it is. */
export function ofFloat(value: number): Fraction {
  let [mantissa, shift] = [value, 0];
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2; // exact
    shift += 1;
  }
  return fraction(BigInt(mantissa), 1n << BigInt(shift));
}

/** A decimal such as "0.05" or "1e-3" as the fraction that was meant; null for any other text. */
export function ofDecimal(text: string): Fraction | null {
  const found = /^\s*\+?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?\s*$/.exec(text);
  const [, whole = "", part = "", exponent = "0"] = found ?? [];
  if (found === null || text.length > 400 || whole + part === "") return null;
  const places = BigInt(part.length) - BigInt(exponent);
  const digits = BigInt(whole + part);
  return places > 0n ? fraction(digits, 10n ** places) : fraction(digits * 10n ** -places, 1n);
}

export const times = (first: Fraction, second: Fraction): Fraction =>
  fraction(first.numerator * second.numerator, first.denominator * second.denominator);

export const plus = (first: Fraction, second: Fraction): Fraction =>
  fraction(first.numerator * second.denominator + second.numerator * first.denominator, first.denominator * second.denominator);

/** The smallest float that is not below a fraction above 0. */
export const up = (value: Fraction): number => rounded(value, true);

/** The largest float that is not above a fraction above 0. */
export const down = (value: Fraction): number => rounded(value, false);

/** A quotient of whole numbers of at least 0, rounded up. */
export const ceiling = (numerator: bigint, denominator: bigint): bigint => (numerator + denominator - 1n) / denominator;

/** The first 53 bits of a fraction above 0, or one more in the last of them where more follow. For what lies within the floats. */
function rounded({ numerator, denominator }: Fraction, upwards: boolean): number {
  const shift = 54 - (bits(numerator) - bits(denominator));
  const [above, below] = shift > 0 ? [numerator << BigInt(shift), denominator] : [numerator, denominator << BigInt(-shift)];
  const quotient = above / below; // 54 or 55 bits
  const spare = BigInt(bits(quotient) - 53);
  const kept = quotient >> spare;
  const exact = kept << spare === quotient && above % below === 0n;
  return Number(upwards && !exact ? kept + 1n : kept) * 2 ** (Number(spare) - shift);
}

/** How many bits a whole number of at least 0 has. */
export const bits = (value: bigint): number => (value === 0n ? 0 : value.toString(2).length);

function gcd(first: bigint, second: bigint): bigint {
  while (second !== 0n) [first, second] = [second, first % second];
  return first;
}
