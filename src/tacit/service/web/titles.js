/**
 * Titles and genres of items, from the catalogue that every device has. Showing one fetches nothing, so that no request tells which
 * item is on the screen.
 */

/** @typedef {import("../../../../delegate/src/index.js").ItemId} ItemId */
/** @typedef {import("../../../../delegate/src/index.js").Catalogue} Catalogue */

/**
 * The place of an item; -1 where there is no such item. Offers write ids as texts, also where they are numbers.
 * @param {Catalogue} catalogue
 * @param {ItemId} item
 */
export function placeOf(catalogue, item) {
  return catalogue.indexOf(item) ?? catalogue.indexOfText(String(item)) ?? -1;
}

/** @param {Catalogue} catalogue @param {ItemId} item */
export function titleOf(catalogue, item) {
  const place = placeOf(catalogue, item);
  return place < 0 ? String(item) : catalogue.title(catalogue.ids[place]);
}

/** @param {Catalogue} catalogue @param {ItemId} item */
export function genresOf(catalogue, item) {
  const place = placeOf(catalogue, item);
  return (catalogue.genres[place] ?? []).map((genre) => catalogue.names[genre]);
}

/** @param {Catalogue} catalogue @param {ItemId} item */
export function known(catalogue, item) {
  return placeOf(catalogue, item) >= 0;
}
