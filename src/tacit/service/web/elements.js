/**
 * Elements of the page, made in one line. Texts become text nodes and never markup: titles come from a catalogue that others wrote.
 * Styles are set through the object model, because the page's policy forbids style attributes.
 */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Attributes */

/**
 * An HTML element. Attributes that are null, undefined or false are left out, `true` is an attribute without a value, functions
 * under "onclick" and the like are listeners.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  dress(made, attributes, children);
  return made;
}

/**
 * An SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  dress(made, attributes, children);
  return /** @type {SVGElementTagNameMap[Tag]} */ (made);
}

/**
 * The element of the page with this id; a page without it is broken, and says so at once.
 * @param {string} id
 * @returns {any} of the kind that index.html gives it
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found;
}

/**
 * Puts these children in the place of those there were.
 * @param {Element} parent
 * @param {...Child} children
 */
export function fill(parent, ...children) {
  parent.replaceChildren(...kept(children));
}

/** @param {Child[]} children */
function kept(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * @param {Element} made
 * @param {Attributes} attributes
 * @param {Child[]} children
 */
function dress(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...kept(children));
}

/**
 * A table with a caption for those who do not see the picture beside it.
 * @param {string} caption
 * @param {string[]} heads
 * @param {Child[][]} rows the first cell of a row is its head
 */
export function table(caption, heads, rows) {
  const body = rows.map(([head, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, head), ...cells.map((cell) => element("td", {}, cell))),
  );
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...body),
    ),
  );
}

/**
 * @param {Child} summary
 * @param {...Child} children
 */
export function folded(summary, ...children) {
  return element("details", {}, element("summary", {}, summary), ...children);
}
