"""From the SVG that matplotlib writes to one that fits into a page: colours of the page's theme, few digits, ids of its own."""

import re
from html import escape

from tacit.evaluation.pictures.palette import COLOURS, TEXT

_PIXELS = 96 / 72  # of CSS in a point, the unit of what is drawn
_VALUES = {colour.light: f"var(--{colour.name}, {colour.light})" for colour in COLOURS} | {TEXT.light: "currentColor"}


def inline(text: str, prefix: str, label: str) -> str:
    """An SVG element as wide as its place, but no wider than it was drawn; ``label`` is what a reader of screens says.

    Ids begin with ``prefix`` and end with a hash of what they name: two pictures on one page share none, or mean the same by it.
    """
    root = re.search(r"<svg\b[^>]*>", text)
    box = re.search(r'viewBox="([^"]+)"', text)
    if root is None or box is None:
        raise ValueError("expected an SVG element with a viewBox.")
    body = text[root.end() :]
    # Its style would hold for all of the page: it is said at the root instead.
    body = re.sub(r"<metadata>.*?</metadata>|<style\b.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r"<defs>\s*</defs>", "", body)
    body = _with_own_ids(body.replace("xlink:href", "href"), prefix)
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r'\bstyle="([^"]*)"', lambda found: f'style="{_themed(found[1])}"', body)
    body = re.sub(r'\b(d|x|y|transform)="([^"]*)"', lambda found: f'{found[1]}="{_rounded(found[2])}"', body)
    body = _hoisted(_flat(re.sub(r"\s*\n\s*", "", body)))
    width = float(box[1].split()[2]) * _PIXELS
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" viewBox="{_rounded(box[1])}" '
        f'width="100%" style="max-width: {width:.0f}px; height: auto; stroke-linejoin: round; stroke-linecap: butt">{body}'
    )


def _with_own_ids(body: str, prefix: str) -> str:
    """Ids that something refers to, with the prefix; the others go."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))
    body = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}{found[1]}"' if found[1] in used else "", body)
    return re.sub(r'(url\(#|href="#)', lambda found: found[1] + prefix, body)


def _themed(style: str) -> str:
    """Colours as variables of the page, the colour of text as the page's own, and the page's font."""
    style = re.sub(r"font-family: [^;]*(; |$)", "", style)
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda found: _VALUES.get(found[0].lower(), found[0]), style)


def _rounded(numbers: str) -> str:
    """Coordinates to a tenth of a point, those of markers to a hundredth."""
    short = re.sub(r"-?\d+\.\d+", lambda found: f"{_few_digits(float(found[0])):g}", numbers)
    return re.sub(r"\s+", " ", short).strip()


def _few_digits(number: float) -> float:
    return round(number, 1 if abs(number) >= 10.0 else 2) + 0.0  # + 0.0: no -0


def _flat(body: str) -> str:
    """Without groups that say nothing, which are most."""
    kept: list[bool] = []

    def of(found: re.Match[str]) -> str:
        if found[0] == "</g>":
            return found[0] if kept.pop() else ""
        kept.append(found[0] != "<g>")
        return found[0] if kept[-1] else ""

    body = re.sub(r"<g\b[^>]*/>", "", body)  # an axis without ticks
    return re.sub(r"<g\b[^>]*>|</g>", of, body)


def _hoisted(body: str) -> str:
    """The style that all marks of a line have, said once."""

    def of(found: re.Match[str]) -> str:
        styles = set(re.findall(r'style="([^"]*)"', found[2]))
        if len(styles) != 1 or found[2].count("style=") != found[2].count("<use "):
            return found[0]
        return f'<g{found[1]} style="{styles.pop()}">' + re.sub(r' style="[^"]*"', "", found[2]) + "</g>"

    return re.sub(r"<g((?: clip-path=\"[^\"]*\")?)>((?:<use [^>]*/>)+)</g>", of, body)
