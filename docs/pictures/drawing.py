"""Lines, boxes and words as SVG: light by day, dark where the reader's screen is dark, no font or script from elsewhere."""

from html import escape

STYLE = """
  svg { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; }
  text { fill: #1c2733; } .soft { fill: #5b6875; } .bold { font-weight: 600; } .small { font-size: 11.5px; }
  .on { fill: #fff; } .warm-text { fill: #a3390f; }
  .box { fill: #f3f6f9; stroke: #8795a3; } .home { fill: #e2effa; stroke: #3b78b0; } .away { fill: #fbeee2; stroke: #b5713a; }
  .line { stroke: #5b6875; fill: none; } .axis { stroke: #9aa6b2; fill: none; } .wall { stroke: #b5713a; stroke-dasharray: 5 4; }
  .cool { fill: #3b78b0; } .warm { fill: #c9742f; } .cool-line { stroke: #3b78b0; fill: none; stroke-width: 2.2; }
  .warm-line { stroke: #c9742f; fill: none; stroke-width: 2.2; } .third-line { stroke: #4c8a4a; fill: none; stroke-width: 2.2; }
  .ball { fill: #3b78b0; fill-opacity: .13; stroke: #3b78b0; stroke-opacity: .5; }
  .refused { fill: none; stroke: #a3390f; stroke-dasharray: 4 3; }
  .head { fill: #5b6875; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e3e8ee; } .soft { fill: #9eabb8; } .on { fill: #10161c; } .warm-text { fill: #f0a27a; }
    .box { fill: #232b34; stroke: #6b7885; } .home { fill: #1c3044; stroke: #6aa5da; } .away { fill: #3a2a1c; stroke: #dd9a5f; }
    .line { stroke: #9eabb8; } .axis { stroke: #66727e; } .wall { stroke: #dd9a5f; } .head { fill: #9eabb8; }
    .cool, .ball { fill: #6aa5da; } .warm { fill: #e59a58; } .cool-line, .ball { stroke: #6aa5da; }
    .warm-line { stroke: #e59a58; } .third-line { stroke: #7dbb7a; } .refused { stroke: #f0a27a; }
  }
"""


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    """A whole SVG file; the title is what a reader hears who does not see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def words(x: float, y: float, text: str, look: str = "", at: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{at}" class="{look}">{escape(text)}</text>'


def lines(x: float, y: float, text: str, look: str = "", at: str = "middle", apart: float = 16) -> list[str]:
    """Several lines of words, centred on y as a whole."""
    rows = text.split("\n")
    top = y - apart * (len(rows) - 1) / 2 + 4.5
    return [words(x, top + apart * place, row, look, at) for place, row in enumerate(rows)]


def box(x: float, y: float, width: float, height: float, look: str = "box") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" class="{look}"/>'


def bar(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{look}"/>'


def line(x: float, y: float, to_x: float, to_y: float, look: str = "line") -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" class="{look}"/>'


def curve(points: list[tuple[float, float]], look: str) -> str:
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="{look}"/>'


def circle(x: float, y: float, radius: float, look: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="{look}"/>'


def arrow(x: float, y: float, to_x: float, look: str = "line") -> list[str]:
    """A level arrow; its head points to where it goes."""
    back = -9 if to_x > x else 9
    head = f'<path d="M{to_x:.1f} {y:.1f} l{back} -5 v10 z" class="head"/>'
    return [line(x, y, to_x + back, y, look), head]
