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
    body = re.sub(r'\bstyle="([^"]*)"', lambda found: f'style="{_themed(found[1])}"', body)
    body = re.sub(r'\b(d|x|y|transform)="([^"]*)"', lambda found: f'{found[1]}="{_rounded(found[2])}"', body)
    body = re.sub(r"\s*\n\s*", "\n", body).strip()
    width = float(box[1].split()[2]) * _PIXELS
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" viewBox="{_rounded(box[1])}" width="100%" '
        f'style="max-width: {width:.0f}px; height: auto; stroke-linejoin: round; stroke-linecap: butt">\n{body}\n'
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
    return re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), 2) + 0.0:g}", numbers)
