/** A profile: what one user rated. It lives in the memory of her page, and has no way out of it. */
import { invalidParameter, refuseToBeWritten } from "./errors.js";

const MOST_RATING = 1e6; // on whatever scale: far beyond it features could overflow

/** Ratings by the places of items. */
export class Profile {
  readonly #ratings = new Map<number, number>();

  /** Adds a rating, or replaces an earlier one of the same item. The error shows no value. */
  rate(place: number, value: number): void {
    if (typeof value !== "number" || !(Math.abs(value) <= MOST_RATING)) {
      throw invalidParameter(`a rating is a finite number from ${-MOST_RATING} to ${MOST_RATING}.`);
    }
    this.#ratings.set(place, value);
  }

  /** Removes a rating, if there is one. */
  forget(place: number): void {
    this.#ratings.delete(place);
  }

  /** Removes all of it. */
  wipe(): void {
    this.#ratings.clear();
  }

  get size(): number {
    return this.#ratings.size;
  }

  /** A copy, in ascending order of places. */
  ratings(): Map<number, number> {
    return new Map([...this.#ratings].sort(([a], [b]) => a - b));
  }

  toJSON(): never {
    return refuseToBeWritten("a profile");
  }
}
