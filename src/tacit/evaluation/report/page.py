"""The page: one HTML file with its pictures, its style and its few lines of script inside. It asks the network for nothing."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tacit.errors import MissingExtra
from tacit.evaluation import registry
from tacit.evaluation.curve import Curve
from tacit.evaluation.demonstration.demonstration import Demonstration
from tacit.evaluation.pictures.drawing import Drawn, draw_svgs
from tacit.evaluation.pictures.palette import css
from tacit.evaluation.report import words
from tacit.evaluation.report.audits import audited
from tacit.evaluation.report.charts import compared, overview, worlds
from tacit.evaluation.report.promises import promises
from tacit.evaluation.report.report import Report
from tacit.evaluation.report.tables import all_figures, beside_others
from tacit.evaluation.report.verdicts import standing, verdicts
from tacit.evaluation.result import Result

GENERATOR = f"tacit {version('tacit')}"
PROOFS = Path(__file__).parents[4] / "docs" / "proofs"  # in a checkout; an installed package has no pages


def require_report() -> None:
    """Says what to install where a report cannot be made."""
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        raise MissingExtra(f'a report needs {" and ".join(missing)}: pip install "tacit[report]".')


@dataclass(frozen=True)
class Part:
    """What the page has of one system."""

    name: str
    shown: Demonstration | None
    result: Result | None
    curves: tuple[Curve, ...]
    compared: tuple[Drawn, ...]
    charts: tuple[Drawn, ...]
    pictures: tuple[Drawn, ...]


def html(report: Report, proofs: str = "") -> str:
    """The whole page as text. ``proofs``: where the pages of proofs are, as the page would link them; without it they are named."""
    require_report()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("tacit.evaluation.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "figure": words.figure,
        "promise": words.promise,
        "setting": words.setting,
        "standing": standing,
    }
    environment.globals |= {"interval": words.interval, "at": words.at}
    parts = list(_parts(report))
    made: dict[str, Any] = {
        "report": report,
        "generator": GENERATOR,
        "palette": Markup(css()),
        "parts": parts,
        "overview": [Markup(one.svg) for one in _overview(report, parts)],
        "tables": {one.name: beside_others(one.result.rows) for one in parts if one.result},
        "figures": {one.name: all_figures(one.result.rows) for one in parts if one.result},
        "verdicts": {one.name: verdicts(one.result.claims) for one in parts if one.result},
        "promises": {one.name: promises(one.result.guarantees) for one in parts if one.result},
        "audited": audited(report.audit) if report.audit else [],
        "proofs": proofs,
        "terms": words.WORDS,
        "svg": Markup,
    }
    return environment.get_template("page.html").render(made)


def write_html(report: Report, path: str | os.PathLike[str], proofs: str | None = None) -> None:
    """The page into a file, whole or not at all. Proofs are linked where they lie in a checkout, unless ``proofs`` says where."""
    place = Path(path).absolute()
    text = html(report, _proofs_beside(place) if proofs is None else proofs)
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a report of tacit's, which a newer one may replace."""
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return '<meta name="generator" content="tacit ' in file.read(1000)


def _proofs_beside(place: Path) -> str:
    """Only within one checkout: a path from elsewhere would tell where that is, and would break when the page is moved."""
    inside = PROOFS.is_dir() and place.is_relative_to(PROOFS.parents[1])
    return Path(os.path.relpath(PROOFS, place.parent)).as_posix() if inside else ""


def _parts(report: Report) -> Iterator[Part]:
    shown = {one.system: one for one in report.demonstrations}
    results = {one.system: one for one in report.results}
    for name in registry.SYSTEMS:
        if name not in shown and name not in results:
            continue
        result = results.get(name)
        curves: tuple[Curve, ...] = ()
        charts: Sequence[Drawn] = ()
        pictures: Sequence[Drawn] = ()
        if result is not None:
            curves = tuple(registry.curves(result))
            charts = draw_svgs(result, [worlds(curves)] if curves else [])
            pictures = draw_svgs(result, registry.pictures(name, result))
        beside: Sequence[Drawn] = ()
        if name in shown:
            beside = draw_svgs(_nothing_measured(name), [compared(shown[name])])
        yield Part(name, shown.get(name), result, curves, tuple(beside), tuple(charts), tuple(pictures))


def _overview(report: Report, parts: Sequence[Part]) -> list[Drawn]:
    curves = [curve for part in parts for curve in part.curves]
    return draw_svgs(report.results[0], [overview(curves)]) if curves else []


def _nothing_measured(system: str) -> Result:
    """What a picture of a demonstration is drawn with, whose figures are its own."""
    return Result(system, "", (), (), {}, 0)
