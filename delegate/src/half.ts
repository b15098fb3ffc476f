/** Numbers of half precision (IEEE 754 binary16), which browsers do not all have. */

/** The half that sixteen bits stand for. */
export function fromHalf(code: number): number {
  const sign = code & 0x8000 ? -1 : 1;
  const exponent = (code >> 10) & 31;
  const mantissa = code & 1023;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24);
}

/** The nearest whole number; of two equally near ones the even one. */
export function nearestEven(value: number): number {
  const up = Math.round(value); // a tie goes up
  return up - value === 0.5 && up % 2 !== 0 ? up - 1 : up;
}
