/** The places from the highest number to the lowest; of equal ones the first is the better one, what is no number is the lowest. */
export function ranked(scores: readonly number[]): number[] {
  const values = scores.map((one) => (one > -Number.MAX_VALUE ? one : -Number.MAX_VALUE));
  return values.map((_, place) => place).sort((a, b) => (values[a] === values[b] ? 0 : values[b]! > values[a]! ? 1 : -1));
}
