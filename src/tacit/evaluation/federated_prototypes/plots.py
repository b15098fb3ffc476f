"""The paper's Figures 1 to 9 with our figures, and gains by epsilon beyond the paper. Needs the extra `report`."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.evaluation.federated_prototypes import counts, factored, names, ranking, rated
from tacit.evaluation.federated_prototypes.measures import NDCG, RANK, RMSE
from tacit.evaluation.federated_prototypes.reference import PREFIX
from tacit.evaluation.multi_selection.plots import require_matplotlib
from tacit.evaluation.result import Result, Row

Axes = Any
Value = int | float | str
Panel = Callable[[Result, Axes], int]  # draws on axes, says how many lines it drew

COLOURS = {
    names.CENTRAL: "#000000", names.INDIVIDUAL: "#7f7f7f", names.K_MEANS: "#1f77b4", names.K_RATERS: "#17becf",
    names.K_RANDOM: "#2ca02c", names.GRID: "#d62728", names.GRID_CLIPPED: "#ff7f0e", names.TREE: "#9467bd",
    names.COVARIANCE: "#8c564b", names.MOMENTS: "#e377c2", names.MOMENTS_APART: "#bcbd22", names.RANDOM_V: "#c7c7c7",
}  # fmt: skip


def draw(result: Result, folder: Path) -> list[Path]:
    """A PNG file for each figure that the result has rows for."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = []
    for name, (title, panels) in _figures(result).items():
        inches = (4.2 * len(panels) + 2.6, 4.0)
        figure = Figure(figsize=inches)
        FigureCanvasAgg(figure)
        figure.subplots_adjust(left=0.9 / inches[0], right=1.0 - 2.7 / inches[0], bottom=0.13, top=0.85, wspace=0.3)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        if not sum(panel(result, axis) for panel, axis in zip(panels, axes, strict=True)):
            continue
        named = {label: line for axis in axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        figure.legend(named.values(), named.keys(), loc="center right", fontsize=7)
        figure.suptitle(title, fontsize=11, x=0.01, horizontalalignment="left")
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        drawn.append(path)
    return drawn


def _figures(result: Result) -> dict[str, tuple[str, list[Panel]]]:
    users = next((row.setting["users"] for row in result.rows if row.setting.get("world") == names.SYNTHETIC), 0)
    made: dict[str, Value] = {"world": names.SYNTHETIC, "users": users}
    ks = sorted(
        {
            int(row.setting["k"])
            for row in result.rows
            if row.setting.get("world") == names.SYNTHETIC and "k" in row.setting
        }
    )
    ranks = sorted(
        {
            int(row.setting["rank"])
            for row in result.rows
            if row.setting.get("world") == names.SYNTHETIC and "rank" in row.setting
        }
    )
    k, rank = (ks or [10])[-1], (ranks or [10])[-1]
    exact, few = (names.K_MEANS, names.K_RANDOM), (ks or [10])[0]
    grids = [("rank", {"k": few}), ("k", {"rank": rank})]
    drugs: dict[str, Value] = {"world": names.REGIONS}
    private = {names.GRID: {"epsilon": 0.1, "k": 10}}
    films = {names.GRID: {"epsilon": rated.PAPER_EPSILON, "k": rated.K, "items each": rated.MANY}}
    plain = (names.CENTRAL, names.INDIVIDUAL)
    moments: dict[str, Mapping[str, Value]] = {names.MOMENTS: {}, names.MOMENTS_APART: {}}

    def film(metric: str, kind: str) -> Panel:
        methods = (*plain, names.K_MEANS, names.K_RATERS, names.K_RANDOM)
        more: dict[str, Mapping[str, Value]] = {one: {"regulariser": kind} for one in methods}
        return along(metric, "rank", {"world": names.ZIP1}, {**more, **films}, told=f"{metric}, {kind}")

    return {
        "figure-1": (
            "Figure 1: reconstruction of made-up counts",
            [
                along(RMSE, "rank", made, {names.CENTRAL: {}, **{one: {"k": k} for one in exact}}),
                along(RMSE, "k", made, {one: {"rank": rank} for one in exact}),
                *(by_epsilon(RMSE, name, made, fixed) for name, fixed in grids),
            ],
        ),
        "figure-2": (
            "Figure 2: drugs of patients (open demo, regions)",
            [along(one, "rank", drugs, {**{name: {} for name in plain}, **private}) for one in (factored.TRAIN, RMSE, RANK)],
        ),
        "figure-3": ("Figure 3: clustering loss by epsilon", [_loss(made, k)]),
        "figure-4": (
            "Figure 4: clustering loss of private prototypes",
            [by_k(counts.LOSS, made), by_epsilon(counts.LOSS, "k", made, {})],
        ),
        "figure-5": ("Figure 5: convergence by the number of entities", [_convergence(made)]),
        "figure-6": (
            "Figure 6: prototypes by their number",
            [along(RMSE, "k", made, {one: {"rank": each} for one in exact}, told=f"RMSE, rank {each}") for each in ranks],
        ),
        "figure-7": (
            "Figure 7: private prototypes by rank",
            [by_epsilon(RMSE, "rank", made, {"k": each}, told=f"RMSE, k = {each}") for each in ks],
        ),
        "figure-8": (
            "Figure 8: errors on films",
            [film(one, kind) for kind in rated.REGULARISERS for one in (factored.TRAIN, RMSE)],
        ),
        "figure-9": ("Figure 9: ranks on films", [film(RANK, kind) for kind in rated.REGULARISERS]),
        "moments": (
            "Gain of moments over individual models; crosses: reference",
            [
                along(ranking.GAIN, "epsilon", {"world": world}, moments, told=world, log=True)
                for world in (names.ZIP1, names.ZIP2, names.HOSPITALS, names.REGIONS)
            ],
        ),
        "lists": (
            "Lists by epsilon; crosses: reference",
            [
                along(NDCG, "epsilon", {"world": world}, moments, told=f"NDCG@20, {world}", log=True)
                for world in (names.ZIP1, names.ZIP2, names.HOSPITALS, names.REGIONS)
            ],
        ),
        "planted": ("Planted groups; crosses: reference", [_planted(users) for users in (20000, 2000)]),
    }  # fmt: skip


def rows_along(
    result: Result, metric: str, method: str, name: str, setting: Mapping[str, Value]
) -> list[tuple[float, Row]]:
    """The rows of a method with exactly this setting and one number more, by that number."""
    found = []
    for row in result.select(metric, method):
        rest = {key: value for key, value in row.setting.items() if key != name}
        if rest == dict(setting) and isinstance(row.setting.get(name), int | float):
            found.append((float(row.setting[name]), row))
    return sorted(found, key=lambda one: one[0])


def _line(axes: Axes, found: list[tuple[float, Row]], label: str, **style: Any) -> int:
    if not found:
        return 0
    errors = [row.stderr or 0.0 for _, row in found]
    axes.errorbar(
        [x for x, _ in found], [row.value for _, row in found], yerr=errors, label=label, marker="o", markersize=3, capsize=2,
        **style,
    )  # fmt: skip
    return 1


def along(
    metric: str, name: str, base: Mapping[str, Value], methods: Mapping[str, Mapping[str, Value]], *, told: str = "",
    log: bool = False,
) -> Panel:  # fmt: skip
    """One line for each method over ``name``, its setting being ``base`` and its own; reference figures as crosses."""

    def panel(result: Result, axes: Axes) -> int:
        count = 0
        for method, more in methods.items():
            setting = {**base, **more}
            count += _line(axes, rows_along(result, metric, method, name, setting), method, color=COLOURS.get(method))
            given = rows_along(result, metric, PREFIX + method, name, setting)
            axes.plot([x for x, _ in given], [row.value for _, row in given], "x", color=COLOURS.get(method))
        if log:
            axes.set_xscale("log")
        return _finish(axes, name, told or metric, count)

    return panel


def by_epsilon(
    metric: str, name: str, base: Mapping[str, Value], fixed: Mapping[str, Value], *, told: str = ""
) -> Panel:
    """Private prototypes, one line for each epsilon, and exact ones beside them."""

    def panel(result: Result, axes: Axes) -> int:
        tried = sorted(
            {
                float(row.setting["epsilon"])
                for row in result.select(metric, names.GRID, **base)
                if "epsilon" in row.setting
            }
        )
        count = 0
        for place, epsilon in enumerate(tried):
            shade = str(0.75 - 0.75 * place / max(1, len(tried)))
            setting = {**base, **fixed, "epsilon": epsilon}
            count += _line(
                axes, rows_along(result, metric, names.GRID, name, setting), f"grid, epsilon {epsilon:g}", color=shade
            )
        _line(
            axes,
            rows_along(result, metric, names.K_MEANS, name, {**base, **fixed}),
            names.K_MEANS,
            color=COLOURS[names.K_MEANS],
        )
        return _finish(axes, name, told or metric, count)

    return panel


def by_k(metric: str, base: Mapping[str, Value]) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        ks = sorted({int(row.setting["k"]) for row in result.select(metric, names.GRID, **base)})
        count = sum(
            _line(axes, rows_along(result, metric, names.GRID, "epsilon", {**base, "k": k}), f"grid, k = {k}")
            for k in ks
        )
        axes.set_xscale("log")
        return _finish(axes, "epsilon", metric, count)

    return panel


def _loss(base: Mapping[str, Value], k: int) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        count = _line(
            axes, rows_along(result, counts.LOSS, names.GRID, "epsilon", {**base, "k": k}), f"grid, k = {k}",
            color=COLOURS[names.GRID],
        )  # fmt: skip
        for row in result.select(counts.LOSS, names.K_MEANS, **base, k=k):
            axes.axhline(row.value, color=COLOURS[names.K_MEANS], label=names.K_MEANS)
        axes.set_xscale("log")
        axes.set_yscale("log")
        return _finish(axes, "epsilon", counts.LOSS, count)

    return panel


def _convergence(base: Mapping[str, Value]) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        count = sum(
            _line(axes, rows_along(result, RMSE, names.K_MEANS, "epochs", {**base, "entities": one}), f"{one} entities")
            for one in counts.JOINED
        )
        return _finish(axes, "epochs", RMSE, count)

    return panel


def _planted(users: int) -> Panel:
    methods: dict[str, Mapping[str, Value]] = {
        one: {} for one in (names.GRID, names.GRID_CLIPPED, names.TREE, names.COVARIANCE)
    }
    base: dict[str, Value] = {"world": names.PLANTED, "users": users}
    lines = along(RMSE, "epsilon", base, methods, told=f"RMSE, {users:,} users an entity", log=True)

    def panel(result: Result, axes: Axes) -> int:
        for method in (names.INDIVIDUAL, names.K_MEANS, names.CONSTANT):
            for row in result.select(RMSE, method, **base):
                style = {names.INDIVIDUAL: "-", names.K_MEANS: "--", names.CONSTANT: ":"}[method]
                axes.axhline(row.value, color="grey", linewidth=1.0, linestyle=style, label=method)
        return lines(result, axes)

    return panel


def _finish(axes: Axes, x: str, y: str, count: int) -> int:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.25)
    return count
