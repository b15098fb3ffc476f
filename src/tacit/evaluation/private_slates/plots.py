"""The pictures of private slates: privacy against popularity, coverage and diversity; epsilon against the catalogue."""

from typing import TYPE_CHECKING

from tacit.evaluation.pictures.lines import drawn_as, errors, finish, rows_along
from tacit.evaluation.pictures.palette import GREY, INK, Style, series
from tacit.evaluation.pictures.panels import against, levels, together
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.private_slates import growth, names
from tacit.evaluation.private_slates.measures import COVERAGE, DISTANCE, GENRES, NOVELTY, POPULARITY
from tacit.evaluation.private_slates.signal import SLOTS
from tacit.evaluation.private_slates.stability import SCORE
from tacit.evaluation.private_slates.tries import INF
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRIVATE = {
    names.NATURAL: series(1), names.PUBLISHED: series(7, "--"), names.TEMPERED: series(2), names.SEARCHED: series(8, "--"),
    names.GUMBEL: series(5), names.TWO_STAGE: series(3), names.SPARSE: series(6), names.LAPLACE: series(10),
    names.KERNEL_GREEDY: series(11), names.KERNEL_K_DPP: series(4),
}  # fmt: skip
LEVELS = {
    names.UNIFORM: Style(GREY, "s", ":"), names.K_DPP: Style(INK, "D", "-."), names.GREEDY: Style(INK, "^", "--"),
    names.TOP: Style(INK, "*"),
}  # fmt: skip
STYLES = {**PRIVATE, **LEVELS, growth.TIGHT: series(9), growth.BASIC: series(12)}


def pictures(result: Result) -> list[Picture]:
    both = (names.NATURAL, names.PUBLISHED)

    def named(name: str, title: str, *panels: Panel) -> Picture:
        return Picture(name, f"{title} ({result.data})", panels)

    return [
        named("privacy-utility", "Privacy against utility", *map(_against_epsilon, (POPULARITY, COVERAGE))),
        named("privacy-diversity", "Privacy against diversity", *map(_against_epsilon, (GENRES, DISTANCE, NOVELTY))),
        named(
            "utility-diversity",
            "Popularity against diversity, one point for each epsilon",
            *(_each_other(POPULARITY, one) for one in (GENRES, DISTANCE)),
        ),
        named(
            "epsilon-catalogue",
            "The theorem and the paper's bound as the catalogue grows",
            _along(growth.COST, both, "items", log_y=True),
            _along(growth.JITTER, both, "items", log_y=True),
            _along(SLOTS, both, "epsilon"),
        ),
        named(
            "many-slates",
            f"Many slates at epsilon {growth.EACH:g} each, delta {growth.DELTA:g}",
            _along(growth.TOGETHER, (growth.TIGHT, growth.BASIC), "slates", log_y=True),
        ),
        named(
            "tempered-stability",
            "Tempered slates up to the limit of floats",
            _along(SCORE, (names.TEMPERED,), "nats", log=False),
        ),
    ]


def _against_epsilon(metric: str) -> Panel:
    """Lines over epsilon; slates without privacy, or without data, as levels."""
    settings = {one: {"epsilon": INF if one != names.UNIFORM else 0.0} for one in LEVELS}
    return together(levels(metric, settings, STYLES), _along(metric, tuple(PRIVATE), "epsilon"))


def _along(metric: str, methods: tuple[str, ...], name: str, *, log: bool = True, log_y: bool = False) -> Panel:
    return against(metric, name, {method: {} for method in methods}, STYLES, log=log, log_y=log_y)


def _each_other(first: str, second: str) -> Panel:
    """Two figures of the same slates against each other; a method is one line, by epsilon."""

    def panel(result: Result, axes: "Axes") -> int:
        count = 0
        for method in (*PRIVATE, *LEVELS):
            rows = rows_along(result, first, method, "epsilon", {})
            rows += [row for row in result.select(first, method, epsilon=INF) if len(row.setting) == 1]
            pairs = [(row, result.find(second, method, **row.setting)) for row in rows]
            found = [(one, other) for one, other in pairs if other is not None]
            if found:
                ours, others = [one for one, _ in found], [other for _, other in found]
                axes.errorbar(
                    [one.value for one in ours], [other.value for other in others], xerr=errors(ours), yerr=errors(others),
                    label=method, **drawn_as(STYLES[method]),
                )  # fmt: skip
                count += 1
        finish(axes, first, second)
        return count

    return panel
