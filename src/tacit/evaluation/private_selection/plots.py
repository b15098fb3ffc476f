"""The pictures of private selection: the paper's figures 2 to 13, and one more for `auto`."""

from typing import TYPE_CHECKING

from tacit.evaluation.pictures.lines import Value, errors, finish, given, level
from tacit.evaluation.pictures.palette import GREY, INK, Style, ramp, series
from tacit.evaluation.pictures.panels import against, cumulative, levels, together
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.private_selection.automatic import AUTO, HALF, TUNED, TWICE
from tacit.evaluation.private_selection.mixing import ALPHAS, APART, CLIPPED, GROUPS, SIZES
from tacit.evaluation.private_selection.rules import GUMBEL_SCALED, PF_SCALED, RR, WIDTHS, clipped_name
from tacit.evaluation.private_selection.single import CLIPPED as GUMBEL_CLIPPED
from tacit.evaluation.private_selection.single import METRIC as SINGLE
from tacit.evaluation.private_selection.single import RULES
from tacit.evaluation.private_selection.synthetic import BERNOULLI, UNIFORM
from tacit.evaluation.private_selection.synthetic import METRIC as SCORE
from tacit.evaluation.result import REFERENCE, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {
    RR: series(1), PF_SCALED: series(2), clipped_name(0.5): series(3), clipped_name(1.0): series(9), clipped_name(2.0): series(5),
    clipped_name(8.0): series(10), GUMBEL_SCALED: series(7), GUMBEL_CLIPPED: series(8), TUNED: series(11), AUTO: series(6),
    HALF: series(4, "--"), TWICE: series(12, ":"), "greedy": Style(INK), "public": Style(GREY, dash="--"),
}  # fmt: skip
_IN_WORLDS = {"display": series(1), "search": series(2, "--"), "trained": series(3, ":")}
_WORLDS = tuple(_IN_WORLDS)
_MEASURES = ("CTR", "surplus", "revenue")
_PRICES = {"server": series(1), "global mean": series(5)}
_ENDLESS = "dotted: epsilon infinite"


def pictures(result: Result) -> list[Picture]:
    prices = tuple(
        _bars(f"{metric} lift", pay, f"{metric}, pay per {pay}")
        for pay in ("impression", "click")
        for metric in ("revenue", "surplus")
    )
    widths = tuple(clipped_name(width) for width in WIDTHS)
    found = [
        Picture(
            "figure-02-06-prices",
            "Figures 2 and 6: prices that know less, against prices from private scores; selection is greedy",
            prices,
            2,
        )
    ]
    for number, world in (("03", "display"), ("07", "search"), ("03b", "trained")):
        found.append(
            Picture(
                f"figure-{number}-epsilon-{world}",
                f"Figure {number.lstrip('0')}: lift over the public choice against epsilon, {world} ({_ENDLESS})",
                tuple(
                    _lines(f"{one} lift", (RR, PF_SCALED, clipped_name(2.0)), "epsilon", one, world=world)
                    for one in _MEASURES
                ),
            )
        )
        found.append(
            Picture(
                f"figure-05-widths-{world}",
                f"Figure 5 (and 7 d-f): the width of clipping, in median public scores, {world} ({_ENDLESS})",
                tuple(_lines(f"{one} lift", widths, "epsilon", one, world=world) for one in _MEASURES),
            )
        )
    for number, world in (("04", "display"), ("08", "search"), ("04b", "trained")):
        found.append(
            Picture(
                f"figure-{number}-cutoff-{world}",
                f"Figure {number.lstrip('0')}: rr with a cutoff gamma, lift over the public choice, {world}",
                tuple(
                    _lines(f"{one} lift", (RR,), "gamma", f"{one}, epsilon {epsilon:g}", world=world, epsilon=epsilon)
                    for epsilon in (5.0, 2.0)
                    for one in _MEASURES
                ),
            )
        )
    return found + _more()


def _more() -> list[Picture]:
    singles = tuple(
        _lines(SINGLE, tuple(RULES), "epsilon", f"{size} candidates, {kind}", world="display", candidates=size, auction=kind)
        for kind in ("common gap", "large gap", "no gap")
        for size in ("3", "10 or more")
    )  # fmt: skip
    synthetic = tuple(
        _lines(SCORE, (RR, PF_SCALED), "epsilon", f"{law}, {size} candidates", scores=law, k=size)
        for law in (UNIFORM, BERNOULLI)
        for size in (15, 100)
    )
    mixed = tuple(
        _lines("CTR lift", (RR, CLIPPED), "epsilon", f"alpha {alpha:g}, {group}", world="display", alpha=alpha, candidates=group)
        for alpha in ALPHAS
        for group in GROUPS
    )  # fmt: skip
    rivals = (RR, TUNED, AUTO, HALF, TWICE, clipped_name(0.5), clipped_name(2.0))
    beyond = tuple(
        _lines(f"{judged} lift", rivals, "epsilon", f"{world}, score: {score}", world=world, score=score)
        for score, judged in (("click", "CTR"), ("value", "value"))
        for world in _WORLDS
    )
    sizes = cumulative(
        SIZES, {world: (world, {}) for world in _WORLDS}, _IN_WORLDS,
        x="candidates", y="share of auctions up to here",
    )  # fmt: skip
    shades = [f"alpha {alpha:g}" for alpha in ALPHAS]
    apart = cumulative(
        APART, {label: ("display", {"alpha": alpha}) for label, alpha in zip(shades, ALPHAS, strict=True)},
        dict(zip(shades, ramp(len(shades)), strict=True)), x="|private - public|", y="share of candidates up to here",
    )  # fmt: skip
    return [
        Picture("figure-09-single", "Figure 9: six single auctions of display, expected score", singles, 2),
        Picture("figure-10-synthetic", "Figure 10: synthetic scores", synthetic, 2),
        Picture("figure-11-candidates", "Figure 11: candidates per auction", (sizes,)),
        Picture("figure-12-apart", "Figure 12: |private - public|, display", (apart,)),
        Picture("figure-13-mixing", f"Figure 13: CTR lift over the public choice by candidates and alpha ({_ENDLESS})", mixed),
        Picture(
            "figure-14-auto", f"Beyond the paper: auto against rr, tuned rr and clipped noisy max ({_ENDLESS})", beyond
        ),
    ]  # fmt: skip


def _lines(metric: str, methods: tuple[str, ...], along: str, title: str, **setting: Value) -> Panel:
    """One line for each method over ``along``; its value at an infinite epsilon, and what is not private, as levels."""
    lift = "lift" in metric
    scale = 100.0 if lift else 1.0

    def endless(result: Result, axes: "Axes") -> int:
        for method in methods:
            row = result.find(metric, method, **setting, **{along: "inf"})
            if row is not None:
                level(axes, row.value, None, Style(STYLES[method].colour, dash=":"), scale=scale)
        if lift:
            level(axes, 0.0, None, Style(GREY))
        return 0

    return together(
        endless,
        levels(metric, {"greedy": setting, "public": setting}, STYLES, scale=scale),
        against(
            metric, along, dict.fromkeys(methods, setting), STYLES, title=title, y=f"{metric}, %" if lift else metric,
            scale=scale,
        ),
    )  # fmt: skip


def _bars(metric: str, pay: str, title: str) -> Panel:
    """A lift for each world and kind of prices; the reference's as a cross."""

    def panel(result: Result, axes: "Axes") -> int:
        places: dict[float, str] = {}
        for middle, world in enumerate(_WORLDS):
            for aside, (prices, style) in zip((-0.2, 0.2), _PRICES.items(), strict=True):
                setting: dict[str, Value] = {"world": world, "prices": prices, "pay per": pay}
                row = result.find(metric, "greedy", **setting)
                if row is None:
                    continue
                axes.bar(
                    middle + aside, 100.0 * row.value, 0.36, yerr=errors([row], 100.0), color=style.colour.light,
                    ecolor=INK.light, label=f"{prices} prices" if prices not in places.values() else "_",
                )  # fmt: skip
                theirs = result.find(metric, REFERENCE + "greedy", **setting)
                if theirs is not None:
                    given(axes, REFERENCE, [middle + aside], [100.0 * theirs.value], Style(INK))
                places[middle + aside] = prices
        level(axes, 0.0, None, Style(GREY))
        finish(axes, "", f"{metric}, %", title)
        axes.set_xticks(range(len(_WORLDS)), labels=_WORLDS)
        axes.grid(visible=False, axis="x")
        return len(places)

    return panel
