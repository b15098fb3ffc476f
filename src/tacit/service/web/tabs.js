/** Tabs as the ARIA practices have them: one stop for Tab, arrows, Home and End between them, and a deep link for each. */

import { byId } from "./elements.js";

const NAMES = ["recommend", "choose", "slates"];

/** @param {(name: string) => void} opened called when a tab is shown, also the first one */
export function startTabs(opened) {
  const tabs = NAMES.map((name) => byId(`tab-${name}`));

  /** @param {string} name @param {boolean} focus */
  const show = (name, focus) => {
    NAMES.forEach((other, place) => {
      const chosen = other === name;
      tabs[place].setAttribute("aria-selected", String(chosen));
      tabs[place].tabIndex = chosen ? 0 : -1;
      byId(other).hidden = !chosen;
      if (chosen && focus) tabs[place].focus();
    });
    opened(name);
  };

  tabs.forEach((tab, place) => {
    /** @param {number} other */
    const go = (other) => {
      const name = NAMES[(other + NAMES.length) % NAMES.length];
      // Without a jump to the panel, whose id is the name: the tabs stay where they are.
      history.replaceState(null, "", `#${name}`);
      show(name, true);
    };
    tab.addEventListener("click", () => go(place));
    tab.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: NAMES.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(to);
    });
  });

  const named = () => (NAMES.includes(location.hash.slice(1)) ? location.hash.slice(1) : NAMES[0]);
  addEventListener("hashchange", () => show(named(), false));
  show(named(), false);
  if (location.hash) scrollTo(0, 0); // the browser has jumped to the panel, past the header
}
