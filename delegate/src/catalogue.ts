/** The server's catalogue: its items, the features they define, and the public scorer that rates them. All of it is public. */
import { invalidMessage } from "./errors.js";
import * as codec from "./messages/codec.js";
import { GRID_BITS, MOST_DIMENSION, type Reply } from "./messages/multi_selection.js";
import { KIND, type FeatureSpace } from "./profile.js";

export type ItemId = number | string;

const text = codec.text(0, 2000);
const integer = codec.whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

const read = codec.record({
  version: codec.VERSION_1,
  name: text,
  model: text,
  features: codec.record({
    kind: codec.oneOf(KIND),
    dimension: codec.whole(2, MOST_DIMENSION),
    names: codec.list(text),
    liked_from: codec.real(),
    low: codec.oneOf(0),
    high: codec.oneOf(1),
    grid_bits: codec.oneOf(GRID_BITS),
  }),
  ids: codec.list<ItemId>((value, path) => (typeof value === "string" ? text : integer)(value, path)),
  titles: codec.orNull(codec.list(text)),
  genres: codec.list(codec.list(codec.whole(0, MOST_DIMENSION))),
});

export class Catalogue implements FeatureSpace {
  readonly #indices: ReadonlyMap<ItemId, number>;
  readonly #numbered: boolean;
  #searchable: string[] | null = null; // titles in the form that `find` compares

  private constructor(
    readonly name: string,
    readonly model: string,
    readonly names: readonly string[],
    readonly likedFrom: number,
    readonly ids: readonly ItemId[],
    readonly titles: readonly string[] | null,
    readonly genres: readonly (readonly number[])[],
  ) {
    this.#indices = new Map(ids.map((id, index) => [id, index]));
    this.#numbered = ids.every((id) => typeof id === "number" && id >= 0);
  }

  static fromJSON(value: unknown): Catalogue {
    const { name, model, features, ids, titles, genres } = read(value);
    const { names, liked_from, dimension } = features;
    const consistent =
      dimension === 2 * names.length &&
      genres.length === ids.length &&
      (titles ?? ids).length === ids.length &&
      new Set(ids).size === ids.length &&
      ids.every((id) => typeof id === typeof ids[0]) &&
      genres.every((own) => new Set(own).size === own.length && own.every((genre) => genre < names.length));
    if (!consistent) throw invalidMessage("a catalogue needs a title and genres for each distinct id, and two features for each genre.");
    return new Catalogue(name, model, names, liked_from, ids, titles, genres);
  }

  /** The number of features: two for each genre. */
  get dimension(): number {
    return 2 * this.names.length;
  }

  /**
   * Returns the ids of at most `most` items whose title contains `text`, or whose id does if there are no titles. Case and accents do not
   * matter. Titles that contain the text earlier come first.
   */
  find(text: string, most = 10): ItemId[] {
    this.#searchable ??= (this.titles ?? this.ids.map(String)).map(normalise);
    const wanted = normalise(text);
    const starts = this.#searchable.map((title) => title.indexOf(wanted));
    const matches = starts.flatMap((start, index) => (wanted === "" || start < 0 ? [] : [index]));
    matches.sort((a, b) => starts[a]! - starts[b]!);
    return matches.slice(0, most).map((index) => this.ids[index] as ItemId);
  }

  /** The title of an item, or its id as a text if it has no title. */
  title(id: ItemId): string {
    return this.titles?.[this.#indices.get(id) ?? -1] ?? String(id);
  }

  /** The index of an item in `ids`. */
  indexOf(id: ItemId): number | undefined {
    return this.#indices.get(id);
  }

  /** The index of the item with this number on the wire. The number is the id if all ids are non-negative integers, else the index. */
  indexOfNumber(number: bigint): number | undefined {
    if (this.#numbered) return this.#indices.get(Number(number)); // exact: all ids are below 2^53
    return number < BigInt(this.ids.length) ? Number(number) : undefined;
  }

  /** The index of the item with this id as a text, as offers name it. */
  indexOfText(item: string): number | undefined {
    if (typeof this.ids[0] === "string") return this.#indices.get(item);
    return String(Number(item)) === item ? this.#indices.get(Number(item)) : undefined;
  }
}

const normalise = (title: string): string => title.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

/** Estimates how much a user with these features likes some items; null or NaN if an item is unknown. */
export type Scorer = (features: Float64Array, items: readonly string[]) => readonly (number | null)[];

/** Builds a scorer from the parts of the server's public model of all listed items. null if a part does not fit this device. */
export function scorerOf(parts: readonly Reply[], catalogue: Catalogue): Scorer | null {
  const rows = new Map<number, Float64Array>();
  for (const part of parts) {
    if (!part.kind.startsWith("linear-map") || part.dimension !== catalogue.dimension) return null;
    const own = part.rows();
    part.items.forEach((number, position) => {
      const index = catalogue.indexOfNumber(number);
      if (index !== undefined) rows.set(index, own[position]!);
    });
  }
  return (features, items) =>
    items.map((item) => {
      const row = rows.get(catalogue.indexOfText(item) ?? -1);
      return row === undefined ? null : linearEstimates([row], features)[0]!;
    });
}

export type Row = Float64Array | readonly number[];

/** matrix @ [1, features]: one estimate for each row. */
export const linearEstimates = (matrix: readonly Row[], features: Row): number[] =>
  matrix.map((row) => {
    let total = row[0]!;
    for (let column = 1; column < row.length; column += 1) total += row[column]! * features[column - 1]!;
    return total;
  });
