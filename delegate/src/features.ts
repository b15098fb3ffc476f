/** Features: the numeric vector that a device computes from a profile, in a public domain that bounds every distance. */
import { TacitError } from "./errors.js";

export const KIND = "genre-profile/1";
export const DIAMETER = 4; // two simplices, each of L1 diameter 2
const TOLERANCE = 1e-6; // of a block's sum

/** What features are made of. All of it is public. */
export interface FeatureSpace {
  readonly names: readonly string[]; // of genres
  readonly likedFrom: number; // a rating from here on is a like
  readonly genres: readonly (readonly number[])[]; // of each item: places in `names`, each once
}

/** How often each genre was liked, then how often each was disliked. An item with g genres adds 1 to each of g counts. */
export function countsOf(space: FeatureSpace, ratings: ReadonlyMap<number, number>): Float64Array {
  const counts = new Float64Array(2 * space.names.length);
  for (const [place, value] of ratings) {
    const block = value >= space.likedFrom ? 0 : space.names.length;
    for (const genre of space.genres[place] ?? []) counts[block + genre]! += 1;
  }
  return counts;
}

/** The genre profile of ratings, given by the items' places: two blocks of shares, each summing to 1, or all 0 without a rating. */
export function featuresOf(space: FeatureSpace, ratings: ReadonlyMap<number, number>): Float64Array {
  const counts = countsOf(space, ratings);
  const totals = blockSums(counts);
  return counts.map((count, place) => count / (totals[place < counts.length / 2 ? 0 : 1]! || 1));
}

/** The sums of the two halves. */
export function blockSums(row: Float64Array): [number, number] {
  const sum = (part: Float64Array): number => part.reduce((total, one) => total + one, 0);
  return [sum(row.subarray(0, row.length / 2)), sum(row.subarray(row.length / 2))];
}

/** `features`, if they lie in the domain: outside it the stated distances would be false. The error shows no value. */
export function checkedFeatures(features: Float64Array, dimension: number): Float64Array {
  const inside = features.length === dimension && features.every((one) => one >= 0 && one <= 1); // also refuses NaN
  if (!inside || !blockSums(features).every((sum) => sum <= TOLERANCE || Math.abs(sum - 1) <= TOLERANCE)) {
    throw new TacitError(
      "invalid-features",
      "each of the two blocks of features must have shares of at least 0 that sum to 1, or be all 0.",
    );
  }
  return features;
}

/** The most L1 distance that adding an item with `genres` genres moves a block that holds `count` genre counts: 2g/(N + g). */
export function movedByOneRating(count: number, genres: number): number {
  if (genres === 0) return 0; // an item without genres moves nothing
  return count === 0 ? 1 : (2 * genres) / (count + genres);
}

/**
 * A digest of all that features are made from: public, so that it tells nothing about a profile. Features from other genres are
 * another release, with a charge of their own.
 */
export async function versionOf(space: FeatureSpace): Promise<string> {
  const [items, width] = [space.genres.length, space.names.length];
  const header = `${KIND}\n${2 * width}\nflags\n|u1\n(${items}, ${width})\n`;
  const between = "liked_from\n<f8\n(1,)\n";
  const flags = new Uint8Array(items * width);
  space.genres.forEach((own, item) => own.forEach((genre) => (flags[item * width + genre] = 1)));
  const liked = new DataView(new ArrayBuffer(8));
  liked.setFloat64(0, space.likedFrom, true);
  const encoder = new TextEncoder();
  const parts = [encoder.encode(header), flags, encoder.encode(between), new Uint8Array(liked.buffer)];
  return (await sha256(await new Blob(parts as BlobPart[]).arrayBuffer())).slice(0, 32);
}

async function sha256(content: ArrayBuffer): Promise<string> {
  if (globalThis.crypto?.subtle === undefined) {
    throw new TacitError("system-noise-unavailable", "WebCrypto is there on https and on loopback addresses only: open the page so.");
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
