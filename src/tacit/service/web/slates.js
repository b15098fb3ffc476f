/** Slates from what a curator released once: any number of them, for anybody, at no further cost. */

import { byId, fill } from "./elements.js";
import { notice } from "./problems.js";
import { epsilonOf } from "./server.js";
import { means, option, showSlate } from "./slate_view.js";
import { showPlot } from "./slates_plot.js";

/** @typedef {import("./page.js").App} App */
/** @typedef {{ name: string, items: number, guarantee: import("./server.js").Guarantee }} ReleaseInfo */
/**
 * @typedef {object} Answer
 * @property {{ items: (number | string)[], route: string, guarantee: import("./server.js").Guarantee }} slate
 * @property {string[] | null} titles
 * @property {number | null} diversity
 * @property {number | null} liking
 */
/** @typedef {{ release: string, epsilon: number, alpha: string, diversity: number, liking: number }} Point */

const ALPHAS = ["0", "0.5", "1", "3", "10", "30"];
const [FIRST_ALPHA, FIRST_K, LEAST_K, MOST_K] = ["3", 10, 3, 30];
const PAUSE = 200; // milliseconds without a move before a slider asks

/** @param {App} app */
export function startSlates(app) {
  const [kSlider, alphaSlider, drawnButton, greedyButton] = ["slates-k", "slates-alpha", "slates-drawn", "slates-greedy"].map(byId);
  /** @type {ReleaseInfo[]} */
  let releases = [];
  /** @type {ReleaseInfo} */
  let release;
  /** @type {import("./server.js").Guarantee | null} what all releases promise together */
  let together = null;
  let turn = 0; // of answers that come late only the newest counts
  let timer = 0;
  /** @type {Map<string, Answer>} greedy slates, which are always the same */
  const known = new Map();

  const k = () => Number(kSlider.value);
  const alpha = () => ALPHAS[Number(alphaSlider.value)];

  /** @param {string} name @param {string} weight @returns {Promise<Answer>} */
  const greedy = async (name, weight) => {
    const path = `/v1/slates/${encodeURIComponent(name)}?k=${k()}&alpha=${weight}`;
    const found = known.get(path) ?? (await app.server.get(path));
    known.set(path, found);
    return found;
  };

  const points = async (/** @type {number} */ mine) => {
    /** @type {Point[]} */
    const found = [];
    for (const one of releases) {
      for (const weight of ALPHAS) {
        const { diversity, liking } = await greedy(one.name, weight);
        if (mine !== turn) return;
        if (diversity !== null && liking !== null)
          found.push({ release: one.name, epsilon: epsilonOf(one.guarantee), alpha: weight, diversity, liking });
      }
      if (found.length) showPlot(byId("slates-plot"), found, { release: release.name, alpha: alpha() });
    }
  };

  /** @param {boolean} drawn */
  const make = async (drawn) => {
    const mine = ++turn;
    byId("slates-k-shown").textContent = String(k());
    byId("slates-alpha-shown").textContent = alpha();
    greedyButton.hidden = !drawn;
    try {
      const answer = drawn
        ? await app.server.get(`/v1/slates/${encodeURIComponent(release.name)}?k=${k()}&alpha=${alpha()}&drawn=true`)
        : await greedy(release.name, alpha());
      if (mine !== turn) return;
      showSlate(answer, drawn);
      await points(mine);
    } catch (error) {
      if (mine !== turn) return;
      const tooMany = drawn && /** @type {any} */ (error)?.code === "invalid-parameter";
      fill(
        byId("slates-said"),
        tooMany
          ? "A slate of so many films cannot be drawn: drawn ones are different by their genres, and hold no more " +
              "films than there are genres. Choose a smaller k."
          : notice(error),
      );
    }
  };

  /** @param {ReleaseInfo} one */
  const choose = (one) => {
    release = one;
    means(one, together);
    void make(false);
  };

  const begin = async () => {
    try {
      const found = await app.server.get("/v1/slates");
      releases = [...found.releases].sort((one, other) => epsilonOf(one.guarantee) - epsilonOf(other.guarantee));
      together = found.together;
    } catch (error) {
      fill(byId("slates-said"), notice(error, begin));
      return;
    }
    if (!releases.length) return fill(byId("slates-said"), "This server was given no release to make slates from.");
    const last = releases[releases.length - 1];
    byId("slates-release").append(...releases.map((one) => option(one, one === last, () => choose(one))));
    Object.assign(kSlider, {
      min: LEAST_K,
      max: Math.min(MOST_K, ...releases.map((one) => one.items)),
      value: FIRST_K,
      disabled: false,
    });
    Object.assign(alphaSlider, { min: 0, max: ALPHAS.length - 1, value: ALPHAS.indexOf(FIRST_ALPHA), disabled: false });
    drawnButton.disabled = false;
    choose(last);
  };

  for (const slider of [kSlider, alphaSlider]) {
    slider.addEventListener("input", () => {
      byId("slates-k-shown").textContent = String(k());
      byId("slates-alpha-shown").textContent = alpha();
      alphaSlider.setAttribute("aria-valuetext", `alpha ${alpha()}`);
      clearTimeout(timer);
      timer = setTimeout(() => void make(false), PAUSE);
    });
  }
  drawnButton.addEventListener("click", () => void make(true));
  greedyButton.addEventListener("click", () => void make(false));
  let begun = false;
  const open = () => {
    if (app.tab !== "slates" || begun) return;
    begun = true; // asked for when somebody looks, not before
    void begin();
  };
  app.on("tab", open);
  open();
}
