"""The pictures of cross-domain: the cost of honesty, and sweeps over overlap, k, the price of one draw and the number of users."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.measures import MAE
from tacit.evaluation.cross_domain.reference import PLAIN
from tacit.evaluation.pictures.lines import Value, level
from tacit.evaluation.pictures.palette import GREY, INK, Style, series
from tacit.evaluation.pictures.panels import Settings, against, together
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Twelve colours for more methods: a colour is shared only by methods that are never in one picture, and their dashes differ.
PRIVATE = {
    names.OFFSETS: series(10), names.B1: series(2), names.B2: series(3), names.B2_CAREFUL: series(9),
    names.B3_OFFSETS: series(7), names.B3: series(1), names.B3_OWN: series(6), names.TABLE: series(8),
}  # fmt: skip
LEVELS = {
    names.NX_SOURCE: Style(INK, "D", (0, (5, 1))), names.NX: Style(INK), names.ITEM_AVERAGE: Style(GREY, "s", "--"),
    names.PRS_TOP_NOISY: series(4, ":"), names.PRS_VALID_NOISY: series(5, "-."),
}  # fmt: skip
STYLES = {
    **PRIVATE, **LEVELS, names.NX_UB: series(12), names.REMOTE_USER: series(11), names.KNN: series(4), names.ALS: series(5),
    names.NX_PUBLISHED: series(2, "--"), names.PRS_TOP_RATED: series(4, "--"), names.PRS_VALID_RATED: series(5, "--"),
    names.POSITIVE_RATED: series(12, "--"), names.NX_NOISY: series(11, "--"), names.NX_NOISY_USER: series(10, "--"),
}  # fmt: skip
_NOT_PRIVATE = (names.NX, names.NX_SOURCE, names.ITEM_AVERAGE)
_DEFAULT_DRAW = 0.3  # epsilon a draw: of the published form, the one that the cost of honesty is told for


def pictures(result: Result) -> list[Picture]:
    worlds = _worlds(result, {"world", "epsilon"}, set(PRIVATE) - {names.TABLE})
    cut = dict.fromkeys(str(row.setting["world"]) for row in result.rows if "linked" in row.setting)
    compared = (names.ITEM_AVERAGE, names.NX, names.NX_UB, names.REMOTE_USER, names.KNN, names.ALS)
    drawn = (names.PRS_TOP_RATED, names.PRS_VALID_RATED, names.POSITIVE_RATED)
    grown = (names.ITEM_AVERAGE, names.NX, names.B2, names.B3_OFFSETS, names.B3)
    endless: dict[str, Value] = {"epsilon": names.INF}
    return [
        Picture(
            "cost-of-honesty",
            "The cost of honesty: MAE against epsilon of the whole system, delta 1e-6",
            tuple(map(_honesty, worlds)),
        ),
        Picture("overlap", "Users in both domains", (_along("overlap", {one: {} for one in compared}, PLAIN),)),
        Picture(
            "links-cut",
            "Of the users in both domains so many stay one",
            tuple(_along("linked", {one: {} for one in compared}, world) for world in cut),
        ),
        Picture(
            "k",
            "Similar items taken",
            tuple(
                _along("k", {one: {} for one in (names.NX_PUBLISHED, names.NX)}, world)
                for world in _worlds(result, {"world", "k"})
            ),
        ),
        Picture(
            "draws",
            "What one draw would have to cost (nothing here has a finite epsilon)",
            (
                _along("epsilon a draw", dict.fromkeys(drawn, endless), PLAIN),
                _along("epsilon of PNSA + PNCF", dict.fromkeys((names.NX_NOISY, names.NX_NOISY_USER), endless), PLAIN),
            ),
        ),
        Picture(
            "users",
            "The number of users, at epsilon 2",
            (
                _along(
                    "users",
                    {one: endless if one in LEVELS else {"epsilon": 2.0} for one in grown},
                    "synthetic, 200 + 200 items",
                ),
            ),
        ),
    ]  # fmt: skip


def _worlds(result: Result, setting: set[str], methods: set[str] | None = None) -> list[str]:
    """The worlds of rows with these settings, in their order."""
    return list(
        dict.fromkeys(
            str(row.setting["world"])
            for row in result.rows
            if set(row.setting) == setting and (methods is None or row.method in methods)
        )
    )


def _along(name: str, methods: Settings, world: str) -> Panel:
    settings: dict[str, Mapping[str, Value]] = {one: {"world": world, **more} for one, more in methods.items()}
    return against(MAE, name, settings, STYLES, title=world, log=True)


def _honesty(world: str) -> Panel:
    def beside(result: Result, axes: "Axes") -> int:
        for method, style in LEVELS.items():
            for row in result.select(MAE, method, world=world, epsilon=names.INF):
                if "k" in row.setting or row.setting.get("epsilon a draw", _DEFAULT_DRAW) != _DEFAULT_DRAW:
                    continue
                told = "no privacy" if method in _NOT_PRIVATE else "epsilon = inf"
                level(axes, row.value, row.stderr, style, label=f"{method} ({told})")
        return 0

    return together(beside, _along("epsilon", {one: {} for one in PRIVATE}, world))
