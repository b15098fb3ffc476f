/** A text field with suggestions below it: arrows to move, Enter to take, Escape to close; the focus stays in the field. */

import { element, fill } from "./elements.js";

/**
 * @template Item
 * @param {HTMLInputElement} field
 * @param {HTMLUListElement} list
 * @param {{ find: (text: string) => Item[], label: (item: Item) => string, note: (item: Item) => string, taken: (item: Item) => void }} how
 */
export function combobox(field, list, how) {
  /** @type {Item[]} */
  let found = [];
  let active = -1;

  const close = () => {
    list.hidden = true;
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };

  /** @param {number} place */
  const mark = (place) => {
    active = place;
    [...list.children].forEach((option, other) => option.setAttribute("aria-selected", String(other === place)));
    const option = list.children[place];
    if (!option) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };

  /** @param {Item} item */
  const take = (item) => {
    field.value = "";
    close();
    how.taken(item);
  };

  const open = () => {
    const text = field.value.trim();
    found = text ? how.find(text) : [];
    if (!text) return close();
    // Options have ids by their place in the list: an id that named a film would be one more thing to keep private.
    fill(
      list,
      ...found.map((item, place) =>
        element(
          "li",
          {
            role: "option",
            id: `${list.id}-${place}`,
            "aria-selected": "false",
            "data-testid": "option",
            // Not on click: the field would lose the focus first, and the list be gone.
            onmousedown: (/** @type {Event} */ event) => {
              event.preventDefault();
              take(item);
            },
          },
          element("span", {}, how.label(item)),
          " ",
          element("span", { class: "quiet" }, how.note(item)),
        ),
      ),
    );
    if (!found.length)
      fill(list, element("li", { class: "quiet", role: "option", "aria-disabled": "true" }, "No title like that."));
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    mark(found.length ? 0 : -1);
  };

  field.addEventListener("input", open);
  field.addEventListener("focus", open);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !list.hidden) close();
    else if (event.key === "Enter" && active >= 0) take(found[active]);
    else if (["ArrowDown", "ArrowUp"].includes(event.key)) {
      if (list.hidden) open();
      else if (found.length) mark((active + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length);
    } else return;
    event.preventDefault();
  });
}
