/** Variety against popularity, for all releases and several alphas: a line for each release, the chosen slate ringed; and a table. */

import { drawn, element, fill, table } from "./elements.js";
import { percent, roundedUp } from "./words.js";

/** @typedef {import("./slates.js").Point} Point */

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [400, 310, 66, 14, 14, 44];
const SHAPES = ["circle", "square", "triangle", "diamond"]; // with the colours: a line is told by either

/** @param {Element} place @param {Point[]} points @param {{ release: string, alpha: string }} chosen */
export function showPlot(place, points, chosen) {
  const x = axis(
    points.map((one) => one.diversity),
    LEFT,
    WIDTH - RIGHT,
  );
  const y = axis(
    points.map((one) => one.liking),
    HEIGHT - BOTTOM,
    TOP,
  );
  const names = [...new Set(points.map((one) => one.release))];
  const lines = names.map((name, series) => {
    const mine = points.filter((one) => one.release === name);
    const kind = `series-${series % SHAPES.length}`;
    return drawn(
      "g",
      { class: kind },
      drawn("polyline", { points: mine.map((one) => `${x.at(one.diversity)},${y.at(one.liking)}`).join(" ") }),
      ...mine.map((one) => mark(series, x.at(one.diversity), y.at(one.liking), `${words(one)}`)),
    );
  });
  const now = points.find((one) => one.release === chosen.release && one.alpha === chosen.alpha);
  fill(
    place,
    element(
      "div",
      { class: "plot" },
      element(
        "figure",
        {},
        element(
          "ul",
          { class: "key" },
          ...names.map((name, series) => {
            const epsilon = points.find((one) => one.release === name)?.epsilon ?? NaN;
            return element(
              "li",
              { class: `series-${series % SHAPES.length}` },
              drawn("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" }, mark(series, 7, 7)),
              `epsilon ${roundedUp(epsilon)}`,
            );
          }),
        ),
        drawn(
          "svg",
          {
            viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
            role: "img",
            "aria-label":
              "Variety of slates against their popularity, for each release and alpha; a table with the same numbers follows.",
          },
          ...grid(x, y),
          ...lines,
          now ? drawn("circle", { class: "ring", cx: x.at(now.diversity), cy: y.at(now.liking), r: 9.5 }) : null,
          now ? ringLabel(x.at(now.diversity), y.at(now.liking), `alpha ${now.alpha}`) : null,
        ),
        element(
          "figcaption",
          {},
          "To the right more variety, upwards more popularity; the ring is the slate above. All are measured by " +
            "the counts of the release that tells most, the one with the largest epsilon: the less a release tells, " +
            "the less popular the films that it takes for popular.",
        ),
      ),
      table(
        "Variety and popularity of slates",
        ["Release", "alpha", "Variety", "Popularity"],
        points
          .toReversed()
          .map((one) => [
            element(
              "span",
              {},
              `epsilon ${roundedUp(one.epsilon)} `,
              one === now ? element("span", { class: "tag" }, "chosen") : null,
            ),
            one.alpha,
            percent(one.diversity),
            percent(one.liking),
          ]),
      ),
    ),
  );
}

/** @param {Point} one */
function words(one) {
  return `epsilon ${roundedUp(one.epsilon)}, alpha ${one.alpha}: variety ${percent(one.diversity)}, popularity ${percent(one.liking)}`;
}

/** @param {number} series @param {number} x @param {number} y @param {string} [title] */
function mark(series, x, y, title) {
  const named = title ? [drawn("title", {}, title)] : [];
  const shape = SHAPES[series % SHAPES.length];
  if (shape === "circle") return drawn("circle", { class: "mark", cx: x, cy: y, r: 4.5 }, ...named);
  if (shape === "square") return drawn("rect", { class: "mark", x: x - 4, y: y - 4, width: 8, height: 8 }, ...named);
  const path = shape === "triangle" ? `M${x},${y - 5.2}l5,9h-10z` : `M${x},${y - 5.6}l5.6,5.6l-5.6,5.6l-5.6,-5.6z`;
  return drawn("path", { class: "mark", d: path }, ...named);
}

/** @param {number} x @param {number} y @param {string} text */
function ringLabel(x, y, text) {
  const beyond = x > WIDTH - 90;
  return drawn(
    "text",
    { class: "ring-label", x: x + (beyond ? -14 : 14), y: y + (y < TOP + 20 ? 16 : -8), "text-anchor": beyond ? "end" : "start" },
    text,
  );
}

/** @typedef {{ at: (value: number) => number, ticks: number[] }} Axis */

/**
 * Round ticks around the values, for shares from 0 to 1.
 * @param {number[]} values
 * @param {number} start
 * @param {number} end
 * @returns {Axis}
 */
function axis(values, start, end) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const step = [0.01, 0.02, 0.05, 0.1, 0.2].find((one) => high - low <= 5 * one) ?? 0.25;
  const from = Math.floor(low / step + 1e-9) * step;
  const to = Math.max(Math.ceil(high / step - 1e-9) * step, from + step);
  const ticks = Array.from({ length: Math.round((to - from) / step) + 1 }, (_, place) => from + place * step);
  return {
    at: (value) =>
      start + 12 * Math.sign(end - start) + ((value - from) / (to - from)) * (end - start - 24 * Math.sign(end - start)),
    ticks,
  };
}

/** @param {Axis} x @param {Axis} y */
function grid(x, y) {
  const bottom = HEIGHT - BOTTOM;
  return [
    ...x.ticks.map((value) =>
      drawn(
        "g",
        {},
        drawn("line", { class: "grid", x1: x.at(value), x2: x.at(value), y1: TOP, y2: bottom }),
        drawn("text", { class: "tick", x: x.at(value), y: bottom + 16 }, percent(value)),
      ),
    ),
    ...y.ticks.map((value) =>
      drawn(
        "g",
        {},
        drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y.at(value), y2: y.at(value) }),
        drawn("text", { class: "label", x: LEFT - 6, y: y.at(value) }, percent(value)),
      ),
    ),
    drawn("text", { class: "title", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6 }, "variety"),
    drawn(
      "text",
      { class: "title", x: 11, y: (TOP + bottom) / 2, transform: `rotate(-90 11 ${(TOP + bottom) / 2})` },
      "popularity",
    ),
  ];
}
