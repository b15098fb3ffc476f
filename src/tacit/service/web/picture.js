/** The true profile against the noisy one that the server saw: two bars for each genre, liked and disliked; and the same as a table. */

import { drawn, element, folded, table } from "./elements.js";
import { plain } from "./words.js";

const [WIDTH, LABELS, ROW, TOP, BOTTOM] = [380, 98, 23, 4, 24];
const PLACE = { liked: 0, disliked: 1 };

/**
 * @param {readonly string[]} names of the genres
 * @param {ArrayLike<number>} truth
 * @param {ArrayLike<number>} noisy
 */
export function picture(names, truth, noisy) {
  const ends = [...Array.from(truth), ...Array.from(noisy), 0];
  const scale = scaled(Math.min(...ends), Math.max(...ends));
  const blocks = /** @type {const} */ (["liked", "disliked"]).map((block) => {
    const from = PLACE[block] * names.length;
    const [here, seen] = [truth, noisy].map((all) => Array.from(all).slice(from, from + names.length));
    return { block, here, seen };
  });
  return element(
    "figure",
    { class: "picture", "data-testid": "picture" },
    element(
      "ul",
      { class: "key" },
      element("li", {}, swatch("true"), "true profile: stays here"),
      element("li", {}, swatch("noisy"), "noisy profile: what the server saw"),
    ),
    element(
      "div",
      { class: "blocks" },
      ...blocks.map(({ block, here, seen }) =>
        element("div", {}, element("h3", {}, `Genres of ${block} films`), bars(block, names, here, seen, scale)),
      ),
    ),
    element("figcaption", {}, caption(names, blocks[0].here, blocks[0].seen, truth, noisy)),
    folded(
      "The same as a table",
      ...blocks.map(({ block, here, seen }) =>
        table(
          `Genres of ${block} films: shares`,
          ["Genre", "True (stays here)", "Noisy (seen by the server)"],
          names.map((name, place) => [name, plain(here[place], 2), plain(seen[place], 2)]),
        ),
      ),
    ),
  );
}

/**
 * @param {readonly string[]} names
 * @param {number[]} here liked films, truly
 * @param {number[]} seen liked films, as they left
 * @param {ArrayLike<number>} truth
 * @param {ArrayLike<number>} noisy
 */
function caption(names, here, seen, truth, noisy) {
  const moved = Array.from(truth).reduce((sum, value, place) => sum + Math.abs(value - noisy[place]), 0) / truth.length;
  const [mine, theirs] = [here, seen].map((block) => names[block.indexOf(Math.max(...block))]);
  const away = `On average the server's number for a genre is ${plain(moved, 2)} away from the true one. `;
  if (!seen.some(Boolean)) return "What left has no bars: all of it is 0, the same for everybody.";
  if (!here.some(Boolean)) return `${away}You have no liked films, and the noisy profile does not say so.`;
  return (
    away +
    (mine === theirs
      ? `Your strongest genre, ${mine}, is also the strongest in the noisy profile: this much noise does not hide it.`
      : `Your strongest genre is ${mine}; in the noisy profile it would be ${theirs}.`)
  );
}

/** @param {string} block @param {readonly string[]} names @param {number[]} here @param {number[]} seen @param {Scale} scale */
function bars(block, names, here, seen, scale) {
  const height = TOP + names.length * ROW + BOTTOM;
  const rows = names.map((name, place) => {
    const y = TOP + place * ROW;
    return drawn(
      "g",
      {},
      drawn("text", { x: LABELS - 8, y: y + ROW / 2 + 1, class: "label" }, name),
      bar("true", scale, here[place], y + 3),
      bar("noisy", scale, seen[place], y + 12, block),
    );
  });
  const ticks = scale.ticks.map((value) =>
    drawn(
      "g",
      {},
      drawn("line", {
        x1: scale.x(value),
        x2: scale.x(value),
        y1: TOP,
        y2: height - BOTTOM + 4,
        class: value === 0 ? "axis" : "grid",
      }),
      drawn("text", { x: scale.x(value), y: height - 6, class: "tick" }, plain(value, 2)),
    ),
  );
  return drawn(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: "img",
      "aria-label": `Bars of the true and the noisy shares of genres of ${block} films; a table with the same numbers follows.`,
    },
    hatch(block),
    ...ticks,
    ...rows,
  );
}

/**
 * @param {"true" | "noisy"} kind
 * @param {Scale} scale
 * @param {number} value
 * @param {number} y
 * @param {string} [block] whose stripes fill it
 */
function bar(kind, scale, value, y, block) {
  const [zero, end] = [scale.x(0), scale.x(value)];
  return drawn("rect", {
    class: `bar-${kind}`,
    fill: block && `url(#hatch-${block})`,
    x: Math.min(zero, end),
    y,
    width: Math.max(Math.abs(end - zero), value === 0 ? 0 : 0.75),
    height: 8,
  });
}

/** Stripes, so that the two bars differ without their colours. @param {string} block */
function hatch(block) {
  return drawn(
    "defs",
    {},
    drawn(
      "pattern",
      { id: `hatch-${block}`, width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      drawn("rect", { width: 5, height: 5, class: "hatch-ground" }),
      drawn("rect", { width: 2.2, height: 5, class: "hatch-line" }),
    ),
  );
}

/** @param {"true" | "noisy"} kind */
function swatch(kind) {
  return drawn(
    "svg",
    { class: "swatch", viewBox: "0 0 22 10", "aria-hidden": "true" },
    drawn("rect", { class: `bar-${kind}`, fill: kind === "noisy" && "url(#hatch-liked)", x: 0.5, y: 0.5, width: 21, height: 9 }),
  );
}

/** @typedef {{ x: (value: number) => number, ticks: number[] }} Scale */

/** One scale for both blocks, with round ticks. @param {number} low @param {number} high @returns {Scale} */
function scaled(low, high) {
  const span = Math.max(high - low, 0.1);
  const rough = span / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10);
  const [from, to] = [Math.floor(low / step) * step, Math.max(Math.ceil(high / step) * step, step)];
  const ticks = Array.from({ length: Math.round((to - from) / step) + 1 }, (_, place) =>
    Number((from + place * step).toPrecision(6)),
  );
  return { x: (value) => LABELS + ((value - from) / (to - from)) * (WIDTH - LABELS - 14), ticks };
}
