/** The catalogue: what a device must know of a server's items and features. All of it is public. */
import { invalidMessage } from "./errors.js";
import { KIND, type FeatureSpace } from "./features.js";
import * as fields from "./fields.js";
import { GRID_BITS, MOST_DIMENSION } from "./signal.js";

export type ItemId = number | string;

const text = fields.text(0, 2000);
const number = fields.whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

const read = fields.record({
  version: fields.VERSION_1,
  name: text,
  model: text,
  features: fields.record({
    kind: fields.oneOf(KIND),
    dimension: fields.whole(2, MOST_DIMENSION),
    names: fields.list(text),
    liked_from: fields.real(),
    low: fields.oneOf(0),
    high: fields.oneOf(1),
    grid_bits: fields.oneOf(GRID_BITS),
  }),
  ids: fields.list<ItemId>((value, path) => (typeof value === "string" ? text : number)(value, path)),
  titles: fields.orNull(fields.list(text)),
  genres: fields.list(fields.list(fields.whole(0, MOST_DIMENSION))),
});

export class Catalogue implements FeatureSpace {
  readonly #places: ReadonlyMap<ItemId, number>;
  readonly #numbered: boolean;
  #plain: string[] | null = null; // titles as they are searched

  private constructor(
    readonly name: string,
    readonly model: string,
    readonly names: readonly string[],
    readonly likedFrom: number,
    readonly ids: readonly ItemId[],
    readonly titles: readonly string[] | null,
    readonly genres: readonly (readonly number[])[],
  ) {
    this.#places = new Map(ids.map((id, place) => [id, place]));
    this.#numbered = ids.every((id) => typeof id === "number" && id >= 0);
  }

  static fromJSON(value: unknown): Catalogue {
    const { name, model, features, ids, titles, genres } = read(value);
    const { names, liked_from, dimension } = features;
    const fits =
      dimension === 2 * names.length &&
      genres.length === ids.length &&
      (titles ?? ids).length === ids.length &&
      new Set(ids).size === ids.length &&
      ids.every((id) => typeof id === typeof ids[0]) &&
      genres.every((own) => new Set(own).size === own.length && own.every((genre) => genre < names.length));
    if (!fits) throw invalidMessage("a catalogue has a title and genres for each id, and two features for each genre.");
    return new Catalogue(name, model, names, liked_from, ids, titles, genres);
  }

  /** How many features there are: two for each genre. */
  get dimension(): number {
    return 2 * this.names.length;
  }

  /** The ids of at most `most` items whose title (or id, where there are no titles) contains `text`; the earlier in it, the earlier here. */
  find(text: string, most = 10): ItemId[] {
    this.#plain ??= (this.titles ?? this.ids.map(String)).map(plain);
    const wanted = plain(text);
    const at = this.#plain.map((title) => title.indexOf(wanted));
    const found = at.flatMap((start, place) => (wanted === "" || start < 0 ? [] : [place]));
    found.sort((a, b) => at[a]! - at[b]!); // titles that begin so come first
    return found.slice(0, most).map((place) => this.ids[place] as ItemId);
  }

  /** The title of an item; its id as a text where there is none. */
  title(id: ItemId): string {
    return this.titles?.[this.#places.get(id) ?? -1] ?? String(id);
  }

  /** The place of an item in `ids`. */
  place(id: ItemId): number | undefined {
    return this.#places.get(id);
  }

  /** The place of the item that has this number on the wire: its id where ids are whole numbers of at least 0, else its place. */
  placeOfNumber(number: bigint): number | undefined {
    if (this.#numbered) return this.#places.get(Number(number)); // ids are exact: all of them are below 2^53
    return number < BigInt(this.ids.length) ? Number(number) : undefined;
  }

  /** The place of an item by its id as a text, as offers name it. */
  placeOfText(item: string): number | undefined {
    if (typeof this.ids[0] === "string") return this.#places.get(item);
    return String(Number(item)) === item ? this.#places.get(Number(item)) : undefined;
  }
}

/** Case and accents do not matter to who searches. */
const plain = (title: string): string => title.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();
