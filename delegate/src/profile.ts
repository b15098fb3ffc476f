/**
 * The profile of one user and the features computed from it. The profile lives in the page's memory and is never written, copied or sent.
 * Features lie in a public domain that bounds the distance between any two users.
 */
import { invalidParameter, refuseToSerialise, TacitError } from "./errors.js";

const MOST_RATING = 1e6; // far larger ratings could overflow the features

/** A user's ratings, by index in the catalogue. */
export class Profile {
  readonly #ratings = new Map<number, number>();

  /** Adds a rating, or replaces an earlier rating of the same item. The error shows no value. */
  rate(index: number, value: number): void {
    if (typeof value !== "number" || !(Math.abs(value) <= MOST_RATING)) {
      throw invalidParameter(`a rating must be a finite number from ${-MOST_RATING} to ${MOST_RATING}.`);
    }
    this.#ratings.set(index, value);
  }

  /** Removes a rating, if there is one. */
  forget(index: number): void {
    this.#ratings.delete(index);
  }

  /** Removes all ratings. */
  wipe(): void {
    this.#ratings.clear();
  }

  get size(): number {
    return this.#ratings.size;
  }

  /** A copy of the ratings, in catalogue order. */
  ratings(): Map<number, number> {
    return new Map([...this.#ratings].sort(([a], [b]) => a - b));
  }

  toJSON(): never {
    return refuseToSerialise("a profile");
  }
}

export const KIND = "genre-profile/1";
export const DIAMETER = 4; // two simplices, each of L1 diameter 2
const TOLERANCE = 1e-6; // of a block's sum

/** The public data that features are computed with. */
export interface FeatureSpace {
  readonly names: readonly string[]; // of genres
  readonly likedFrom: number; // this rating and higher ones are likes
  readonly genres: readonly (readonly number[])[]; // for each item, indices into `names`, each once
}

/** Counts how often each genre was liked, then how often each was disliked. An item with g genres adds 1 to each of g counts. */
export function countsOf(space: FeatureSpace, ratings: ReadonlyMap<number, number>): Float64Array {
  const counts = new Float64Array(2 * space.names.length);
  for (const [index, value] of ratings) {
    const block = value >= space.likedFrom ? 0 : space.names.length;
    for (const genre of space.genres[index] ?? []) counts[block + genre]! += 1;
  }
  return counts;
}

/**
 * Computes the genre profile of ratings, which are given by the items' indices: two blocks of shares, liked and disliked. Each block sums
 * to 1, or is all 0 if it has no rating.
 */
export function featuresOf(space: FeatureSpace, ratings: ReadonlyMap<number, number>): Float64Array {
  const counts = countsOf(space, ratings);
  const totals = blockSums(counts);
  return counts.map((count, index) => count / (totals[index < counts.length / 2 ? 0 : 1]! || 1));
}

/** The sums of the two halves. */
export function blockSums(row: Float64Array): [number, number] {
  const sum = (block: Float64Array): number => block.reduce((total, value) => total + value, 0);
  return [sum(row.subarray(0, row.length / 2)), sum(row.subarray(row.length / 2))];
}

/** Returns `features` if they lie in the domain; outside it the stated distances would be wrong. The error shows no value. */
export function checkFeatures(features: Float64Array, dimension: number): Float64Array {
  const inside = features.length === dimension && features.every((share) => share >= 0 && share <= 1); // NaN fails too
  if (!inside || !blockSums(features).every((sum) => sum <= TOLERANCE || Math.abs(sum - 1) <= TOLERANCE)) {
    throw new TacitError(
      "invalid-features",
      "each of the two blocks of features must consist of non-negative shares that sum to 1, or be all 0.",
    );
  }
  return features;
}

/** The largest L1 distance by which one more item with `genres` genres moves a block of `count` genre counts: 2g/(N + g). */
export function movedByOneRating(count: number, genres: number): number {
  if (genres === 0) return 0; // an item without genres moves nothing
  return count === 0 ? 1 : (2 * genres) / (count + genres);
}

/**
 * Digests everything that features are computed from. All of it is public, so the digest says nothing about a profile. Features from other
 * genres are another release, with a charge of their own.
 */
export async function versionOf(space: FeatureSpace): Promise<string> {
  const [items, width] = [space.genres.length, space.names.length];
  const header = `${KIND}\n${2 * width}\nflags\n|u1\n(${items}, ${width})\n`;
  const between = "liked_from\n<f8\n(1,)\n";
  const flags = new Uint8Array(items * width);
  space.genres.forEach((genres, item) => genres.forEach((genre) => (flags[item * width + genre] = 1)));
  const likedFrom = new DataView(new ArrayBuffer(8));
  likedFrom.setFloat64(0, space.likedFrom, true);
  const encoder = new TextEncoder();
  const parts = [encoder.encode(header), flags, encoder.encode(between), new Uint8Array(likedFrom.buffer)];
  const content = await new Blob(parts as BlobPart[]).arrayBuffer();
  if (globalThis.crypto?.subtle === undefined) {
    throw new TacitError("system-noise-unavailable", "WebCrypto needs https or a loopback address: open the page from one of them.");
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content)).subarray(0, 16);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
