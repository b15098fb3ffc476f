// The contrast (WCAG 2) of every text that is to be read: its colour on whatever lies behind it, opacities included. What is hidden
// from screen readers is decoration, and what cannot be used now is meant to be faint.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [red, green, blue, alpha / 255]);
    }
    return known.get(colour);
  };
  const over = ([r, g, b, alpha], under) => [r, g, b].map((part, place) => alpha * part + (1 - alpha) * under[place]);
  const brightness = (colour) => {
    const [r, g, b] = colour.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const lineage = (element) => (element ? [...lineage(element.parentElement), element] : []);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    if (!text || !element.checkVisibility({ visibilityProperty: true }) || element.closest("[aria-hidden=true], :disabled, .skip")) continue;
    const all = lineage(element);
    let behind = [255, 255, 255];
    for (const one of all) behind = over(rgba(getComputedStyle(one).backgroundColor), behind);
    const style = getComputedStyle(element);
    const ink = [...rgba(element instanceof SVGElement ? style.fill : style.color)];
    ink[3] *= all.reduce((product, one) => product * Number(getComputedStyle(one).opacity), 1);
    const [one, other] = [brightness(over(ink, behind)), brightness(behind)].sort((a, b) => b - a);
    found.push({ text: text.slice(0, 60), in: element.className?.baseVal ?? element.className, ratio: (one + 0.05) / (other + 0.05) });
  }
  return found;
}
