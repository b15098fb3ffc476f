"""The pictures of multi-selection: the paper's figures 2 to 13, from the rows of a result, with the paper's own points."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tacit.evaluation.multi_selection.baseline import BASELINE, FREE
from tacit.evaluation.multi_selection.plan import DRAWS, IG_SIG_EXACT, Q1_ETA, SIZES
from tacit.evaluation.pictures.lines import LEVEL, Value, finish, given, rows_along, steps
from tacit.evaluation.pictures.palette import GREY, INK, Style, ramp, series
from tacit.evaluation.pictures.panels import against, each, levels, together
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.result import PAPER, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {
    "nopost": series(5), "nopost-realuser": series(4), "avg": series(7), "avg-realuser": series(2), "sat": series(6),
    "sat-realuser": series(1), "exact": series(3), BASELINE: Style(GREY, "s"), IG_SIG_EXACT: Style(GREY, "v", ":"),
}  # fmt: skip
_STARS = "stars below the best item"


def pictures(result: Result) -> list[Picture]:
    published = ("nopost", "nopost-realuser", "sat-realuser", "exact")
    with_sat = (*published[:2], "sat", *published[2:])
    with_avg = ("avg", "avg-realuser", "sat", "sat-realuser", "exact")
    picked = (*with_avg, *with_sat[:2])
    tried = sorted({int(row.setting["draws"]) for row in result.select("d_i", "sat") if "model" not in row.setting})

    def over_draws(methods: tuple[str, ...]) -> tuple[Panel, ...]:
        return tuple(_against_eta("d_i", methods, 5, draws) for draws in tried or [DRAWS])

    def named(name: str, title: str, *panels: Panel, across: int = 3) -> Picture:
        return Picture(name, f"{title} ({result.data})", panels, across)

    return [
        named("figure-02-best-utility", "Figure 2: utility of everybody's best item", _shares("best utility", "stars")),
        named(
            "figure-03-neighbours",
            "Figure 3: a user's rating of her own top 5 less that of her neighbour's",
            _shares("neighbour difference", "difference of mean ratings, stars"),
        ),
        named(
            "figure-04-duplication",
            "Figure 4: repeated items among the top 5 of 5 near users",
            _shares("duplication", "1 - different items / 25"),
        ),
        named("figure-05-clusters", "Figure 5: diameters of clusters", _shares("cluster diameter", "L1 diameter")),
        named("figure-06-slates", "Figure 6: d_i against noise, k = 5, by draws q1", *over_draws(published)),
        named("figure-07-draws", "Figure 7: d_i against draws q1", *(_against_draws(Q1_ETA, k) for k in (2, 5))),
        named(
            "figure-08-smallest-k",
            "Figure 8: smallest k for a level of d_i",
            *(_smallest(result, one) for one in ("sat-realuser", "exact")),
        ),
        named("figure-09-slates-sat", "Figure 9: d_i with sat, k = 5, by draws q1", *over_draws(with_sat)),
        named("figure-10-slates-avg", "Figure 10: d_i with avg, k = 5, by draws q1", *over_draws(with_avg)),
        named(
            "figure-11-draws-eta",
            "Figure 11: d_i against draws q1, k = 5",
            *(_against_draws(eta, 5) for eta in (0.05, 0.1, 0.2)),
        ),
        named(
            "figure-12-smallest-k-sat",
            "Figure 12: smallest k for a level of d_i",
            *(_smallest(result, one) for one in ("sat", "sat-realuser")),
        ),
        named(
            "figure-13-picks",
            "Figure 13: d_f of the pick against noise, by the kind of local model",
            *(_against_eta("d_f", picked, k, model=model) for model in ("pca", "ridge") for k in SIZES[1:]),
        ),
    ]


def _against_eta(metric: str, methods: Iterable[str], k: int, draws: int = DRAWS, model: str = "") -> Panel:
    """One line for each method; what ignores the signal, and so does not depend on eta, as the level to beat."""
    setting: Mapping[str, Value] = {"k": k, "draws": draws, **({"local_model": model} if model else {})}
    title = f"k = {k}, q1 = {draws}" + (f", {model}" if model else "")
    return together(
        levels(metric, dict.fromkeys(FREE, setting), STYLES, labels={one: f"{one}: to beat" for one in FREE}),
        against(
            metric, "eta", dict.fromkeys(methods, setting), STYLES, x="noise scale eta", y=f"{metric}, {_STARS}", title=title,
            from_zero=True,
        ),
    )  # fmt: skip


def _against_draws(eta: float, k: int) -> Panel:
    methods: dict[str, dict[str, Value]] = {"sat-realuser": {"eta": eta, "k": k}, BASELINE: {"k": k}}
    drawn = against(
        "d_i", "draws", methods, STYLES, x="draws from the posterior, q1", y=f"d_i, {_STARS}", title=f"eta = {eta:g}, k = {k}",
        log=True, from_zero=True,
    )  # fmt: skip

    def panel(result: Result, axes: "Axes") -> int:
        if len(rows_along(result, "d_i", "sat-realuser", "draws", methods["sat-realuser"])) < 2:
            return 0  # one number of draws is no line
        axes.axvline(DRAWS, color=GREY.light, linewidth=0.8, linestyle=":", label="draws by default", gid=LEVEL)
        return drawn(result, axes)

    return panel


def _smallest(result: Result, method: str) -> Panel:
    found = sorted({float(row.setting["level"]) for row in result.select("smallest k", method) if "eta" in row.setting})
    settings = {f"d_i <= {level:g}": {"level": level} for level in found}
    return each("smallest k", "eta", method, settings, ramp(len(found)), x="noise scale eta", title=method)


def _shares(metric: str, unit: str) -> Panel:
    def panel(result: Result, axes: "Axes") -> int:
        rows = result.select(f"{metric}, cumulative")
        sizes = list(dict.fromkeys(row.setting.get("size") for row in rows))
        for size, style in zip(sizes, ramp(len(sizes)) if len(sizes) > 1 else [series(1)] * len(sizes), strict=True):
            label = f"clusters of {size}" if len(sizes) > 1 else "here"
            steps(axes, [row for row in rows if row.setting.get("size") == size], label, style)
            if metric == "cluster diameter":
                for row in result.select("clusters within", PAPER + "users", size=size or 0):
                    given(axes, PAPER, [float(row.setting["radius"])], [row.value], style)
        for row in result.select(metric) if len(sizes) == 1 else []:
            whose, colour, dash = (" (the paper's own)", GREY, ":") if row.is_papers else ("", INK, "--")
            axes.axvline(row.value, color=colour.light, linestyle=dash, label=f"mean {row.value:.2f}{whose}", gid=LEVEL)
        finish(axes, unit, "share of users up to here")
        axes.set_ylim(0.0, 1.02)
        return len(sizes)

    return panel
