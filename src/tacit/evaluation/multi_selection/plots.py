"""The paper's figures 2 to 13, drawn from the rows of a result, with the paper's own points. Needs the extra `report`."""

from pathlib import Path

from tacit.errors import MissingExtra
from tacit.evaluation.multi_selection.panels import Panel, against_draws, against_eta, cumulative, smallest
from tacit.evaluation.multi_selection.plan import DRAWS, Q1_ETA, SIZES
from tacit.evaluation.result import Result


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise MissingExtra('plots need matplotlib: pip install "tacit[report]".') from missing


def draw(result: Result, folder: Path) -> list[Path]:
    """A PNG file for each figure that the result has rows for."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = []
    for name, (title, panels) in _figures(result).items():
        figure = Figure(figsize=(4.6 * len(panels) + 1.6, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        lines = [panel(result, axis) for panel, axis in zip(panels, axes, strict=True)]
        if not any(lines):
            continue
        named = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(named.values(), named.keys(), loc="outside right center", fontsize=7)
        figure.suptitle(f"{title} ({result.data})", fontsize=11, x=0.01, horizontalalignment="left")
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=140)
        drawn.append(path)
    return drawn


def _figures(result: Result) -> dict[str, tuple[str, list[Panel]]]:
    published = ("nopost", "nopost-realuser", "sat-realuser", "exact")
    with_sat = (*published[:2], "sat", *published[2:])
    with_avg = ("avg", "avg-realuser", "sat", "sat-realuser", "exact")
    tried = sorted({int(row.setting["draws"]) for row in result.select("d_i", "sat") if "model" not in row.setting})

    def over_draws(methods: tuple[str, ...]) -> list[Panel]:
        return [against_eta("d_i", methods, 5, draws) for draws in tried or [DRAWS]]

    return {
        "figure-02-best-utility": ("Figure 2: utility of everybody's best item", [cumulative("best utility", "stars")]),
        "figure-03-neighbours": (
            "Figure 3: a user's rating of her own top 5 less that of her neighbour's",
            [cumulative("neighbour difference", "difference of mean ratings, stars")],
        ),
        "figure-04-duplication": (
            "Figure 4: repeated items among the top 5 of 5 near users",
            [cumulative("duplication", "1 - different items / 25")],
        ),
        "figure-05-clusters": ("Figure 5: diameters of clusters", [cumulative("cluster diameter", "L1 diameter")]),
        "figure-06-slates": ("Figure 6: d_i against noise, k = 5, by draws q1", over_draws(published)),
        "figure-07-draws": ("Figure 7: d_i against draws q1", [against_draws(Q1_ETA, k) for k in (2, 5)]),
        "figure-08-smallest-k": ("Figure 8: smallest k for a level of d_i", [smallest("sat-realuser"), smallest("exact")]),
        "figure-09-slates-sat": ("Figure 9: d_i with sat, k = 5, by draws q1", over_draws(with_sat)),
        "figure-10-slates-avg": ("Figure 10: d_i with avg, k = 5, by draws q1", over_draws(with_avg)),
        "figure-11-draws-eta": ("Figure 11: d_i against draws q1, k = 5", [against_draws(e, 5) for e in (0.05, 0.1, 0.2)]),
        "figure-12-smallest-k-sat": ("Figure 12: smallest k for a level of d_i", [smallest("sat"), smallest("sat-realuser")]),
        "figure-13-picks": (
            "Figure 13: d_f of the pick against noise",
            [against_eta("d_f", (*with_avg, *with_sat[:2]), k) for k in SIZES[1:]],
        ),
    }  # fmt: skip
