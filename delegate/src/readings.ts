/**
 * A metric guarantee in plain numbers: what one signal may tell about one rating, or about anybody. The readings of one rating use
 * this user's own counts: they are for her eyes and stay on the device.
 */
import { refuseToBeWritten } from "./errors.js";
import { blockSums, countsOf, DIAMETER, movedByOneRating, type FeatureSpace } from "./features.js";
import { ofFloat, plus, times, up, type Fraction } from "./fraction.js";
import { promised } from "./signal.js";

const LEAST_RADIUS = 2 ** -20; // a step of the grid: what is nearer is one point
const SPARE = 1 + 2 ** -40; // shares are floats: a distance of them may be off in its last digits

/** Epsilons, each rounded up. Infinite where the noise promises nothing. */
export interface Readings {
  /** Per unit of L1 distance between features. */
  readonly perUnit: number;
  /** Of a new rating of any item of the catalogue. */
  readonly oneRatingAdded: number;
  /** Of the one of her ratings that weighs most; null where she has none. */
  readonly oneRatingRemoved: number | null;
  /** Of the one of her ratings that weighs most, from liked to disliked or back: both blocks move. null where she has none. */
  readonly oneRatingMoved: number | null;
  /** Between any two users whatever. */
  readonly anywhere: number;
}

/** The readings of one signal for a user with these ratings, by the places of items. */
export function readingsOf(eta: Fraction, space: FeatureSpace, ratings: ReadonlyMap<number, number>, protects: boolean): Readings {
  const { epsilon, rounding } = promised(eta, 2 * space.names.length);
  const at = (distance: number): number => (protects ? up(times(ofFloat(epsilon), plus(ofFloat(distance), ofFloat(rounding)))) : Infinity);
  const within = (radius: number): number => at(Math.max(radius, LEAST_RADIUS) * SPARE);
  const blocks = blockSums(countsOf(space, ratings));
  const most = space.genres.reduce((found, own) => Math.max(found, own.length), 0);
  const added = Math.max(...blocks.map((count) => movedByOneRating(count, most))); // it grows with the genres of the item
  let [removed, moved] = [0, 0];
  for (const [place, value] of ratings) {
    const size = space.genres[place]?.length ?? 0;
    const [own, other] = value >= space.likedFrom ? blocks : [blocks[1], blocks[0]];
    const gone = movedByOneRating(own - size, size); // counted without the item
    removed = Math.max(removed, gone);
    moved = Math.max(moved, gone + movedByOneRating(other, size));
  }
  const ofHers = (distance: number): number | null => (ratings.size === 0 ? null : within(distance));
  const readings = {
    perUnit: protects ? epsilon : Infinity,
    oneRatingAdded: within(added),
    oneRatingRemoved: ofHers(removed),
    oneRatingMoved: ofHers(moved),
    anywhere: at(DIAMETER),
  };
  Object.defineProperty(readings, "toJSON", { value: () => refuseToBeWritten("a reading") });
  return Object.freeze(readings);
}
