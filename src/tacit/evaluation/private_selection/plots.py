"""The paper's figures 2 to 13 drawn from the rows of a result, and one more for `auto`. Needs the extra `report`."""

from pathlib import Path

from tacit.evaluation.multi_selection.plots import require_matplotlib
from tacit.evaluation.private_selection.automatic import AUTO, HALF, TUNED, TWICE
from tacit.evaluation.private_selection.mixing import ALPHAS, APART, CLIPPED, GROUPS, SIZES
from tacit.evaluation.private_selection.panels import Panel, bars, lines, shares
from tacit.evaluation.private_selection.rules import PF_SCALED, RR, SWEPT, WIDTHS, clipped_name
from tacit.evaluation.private_selection.single import METRIC as SINGLE
from tacit.evaluation.private_selection.single import RULES
from tacit.evaluation.private_selection.synthetic import BERNOULLI, UNIFORM
from tacit.evaluation.private_selection.synthetic import METRIC as SCORE
from tacit.evaluation.result import Result

_WORLDS = ("display", "search", "trained")
_MEASURES = ("CTR", "surplus", "revenue")
Figure = tuple[str, list[Panel], int]  # its title, its panels, how many stand in a row


def draw(result: Result, folder: Path) -> list[Path]:
    """A PNG file for each figure that the result has rows for."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawn

    drawn = []
    for name, (title, panels, wide) in _figures().items():
        high = -(-len(panels) // wide)
        inches = (4.2 * wide + 2.2, 3.4 * high + 0.6)
        figure = Drawn(figsize=inches)  # laid out by hand: the automatic layout takes a second for each figure
        FigureCanvasAgg(figure)
        figure.subplots_adjust(
            left=0.7 / inches[0], right=1.0 - 2.3 / inches[0], bottom=0.55 / inches[1], top=1.0 - 0.75 / inches[1],
            wspace=0.28, hspace=0.42,
        )  # fmt: skip
        axes = figure.subplots(high, wide, squeeze=False).ravel()
        if not sum(panel(result, axis) for panel, axis in zip(panels, axes, strict=False)):
            continue
        named = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(named.values(), named.keys(), loc="center right", fontsize=7)
        figure.suptitle(title, fontsize=11, x=0.01, horizontalalignment="left")
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        drawn.append(path)
    return drawn


def _figures() -> dict[str, Figure]:
    found: dict[str, Figure] = {
        "figure-02-06-prices": (
            "Figures 2 and 6: prices that know less, against prices from private scores; selection is greedy",
            [
                bars(f"{metric} lift", pay, _WORLDS, f"{metric}, pay per {pay}")
                for pay in ("impression", "click")
                for metric in ("revenue", "surplus")
            ],
            2,
        )
    }
    for number, world in (("03", "display"), ("07", "search"), ("03b", "trained")):
        found[f"figure-{number}-epsilon-{world}"] = (
            f"Figure {number.lstrip('0')}: lift over the public choice against epsilon, {world} (dotted: epsilon infinite)",
            [
                lines(f"{one} lift", (RR, PF_SCALED, clipped_name(2.0)), "epsilon", one, world=world)
                for one in _MEASURES
            ],
            3,
        )
        widths = tuple(clipped_name(width) for width in WIDTHS)
        found[f"figure-05-widths-{world}"] = (
            f"Figure 5 (and 7 d-f): the width of clipping, in median public scores, {world}",
            [lines(f"{one} lift", widths, "epsilon", one, world=world) for one in _MEASURES],
            3,
        )
    for number, world in (("04", "display"), ("08", "search"), ("04b", "trained")):
        found[f"figure-{number}-cutoff-{world}"] = (
            f"Figure {number.lstrip('0')}: rr with a cutoff gamma, lift over the public choice, {world}",
            [
                lines(f"{one} lift", (RR,), "gamma", f"{one}, epsilon {epsilon:g}", world=world, epsilon=epsilon)
                for epsilon in (5.0, 2.0)
                for one in _MEASURES
            ],
            3,
        )
    return found | _more()


def _more() -> dict[str, Figure]:
    singles = [
        lines(SINGLE, RULES, "epsilon", f"{size} candidates, {kind}", world="display", candidates=size, auction=kind)
        for kind in ("common gap", "large gap", "no gap")
        for size in ("3", "10 or more")
    ]
    synthetic = [
        lines(SCORE, (RR, PF_SCALED), "epsilon", f"{law}, {size} candidates", scores=law, k=size)
        for law in (UNIFORM, BERNOULLI)
        for size in (15, 100)
    ]
    mixed = [
        lines("CTR lift", (RR, CLIPPED), "epsilon", f"alpha {alpha:g}, {group}", world="display", alpha=alpha, candidates=group)
        for alpha in ALPHAS
        for group in GROUPS
    ]  # fmt: skip
    rivals = (RR, TUNED, AUTO, HALF, TWICE, *(name for name in SWEPT if name in ("pf clipped 0.5", "pf clipped 2")))
    beyond = [
        lines(f"{judged} lift", rivals, "epsilon", f"{world}, score: {score}", world=world, score=score)
        for score, judged in (("click", "CTR"), ("value", "value"))
        for world in _WORLDS
    ]
    apart = [(f"alpha {alpha:g}", "display", {"alpha": alpha}) for alpha in ALPHAS]
    return {
        "figure-09-single": ("Figure 9: six single auctions of display, expected score", singles, 2),
        "figure-10-synthetic": ("Figure 10: synthetic scores", synthetic, 2),
        "figure-11-candidates": (
            "Figure 11: candidates per auction",
            [shares(SIZES, [(world, world, {}) for world in _WORLDS], "candidates")],
            1,
        ),
        "figure-12-apart": ("Figure 12: |private - public|, display", [shares(APART, apart, "|private - public|")], 1),
        "figure-13-mixing": ("Figure 13: CTR lift over the public choice by candidates and alpha", mixed, 3),
        "figure-14-auto": ("Beyond the paper: auto against rr, tuned rr and clipped noisy max", beyond, 3),
    }
