"""The panels of the figures: losses against noise or draws, the smallest k, cumulative shares. Drawn from rows, with error bars."""

from collections.abc import Callable, Iterable
from typing import Any

from tacit.evaluation.multi_selection.baseline import BASELINE, FREE
from tacit.evaluation.multi_selection.plan import DRAWS, DRAWS_TRIED, IG_SIG_EXACT
from tacit.evaluation.result import PAPER, Result, Row

COLOURS = {
    "nopost": "#8c564b", "nopost-realuser": "#e377c2", "avg": "#bcbd22", "avg-realuser": "#ff7f0e", "sat": "#9467bd",
    "sat-realuser": "#1f77b4", "exact": "#2ca02c", BASELINE: "#000000", IG_SIG_EXACT: "#7f7f7f",
}  # fmt: skip
_STARS = "stars below the best item"
Axes = Any
Panel = Callable[[Result, Axes], int]  # draws on axes, says how many lines it drew


def against_eta(metric: str, methods: Iterable[str], k: int, draws: int = DRAWS) -> Panel:
    """One line for each method; ig-sig, which does not depend on eta, as the level to beat."""

    styles = (("pca", "-"), ("ridge", "--")) if metric == "d_f" else (("", "-"),)

    def panel(result: Result, axes: Axes) -> int:
        count = 0
        for method in methods:
            for model, style in styles:
                rows = _main(result, metric, method, k, draws, model)
                if rows and "eta" in rows[0].setting:
                    name = f"{method} + {model}" if model else method
                    _line(axes, rows, "eta", name, COLOURS[method], style)
                    count += 1
            papers = _main(result, metric, PAPER + method, k, draws, "pca" if metric == "d_f" else "")
            if papers:
                axes.plot([row.setting["eta"] for row in papers], [row.value for row in papers], "x", color=COLOURS[method],
                          label=f"{method} (paper)", alpha=0.7)  # fmt: skip
        for method in FREE:
            for model, style in styles:
                for row in _main(result, metric, method, k, draws, model):
                    name = f"{method} + {model}" if model else method
                    axes.axhline(
                        row.value, color=COLOURS[method], linestyle=style, linewidth=1.6, label=f"{name}: to beat"
                    )
                    axes.axhspan(
                        row.value - (row.stderr or 0), row.value + (row.stderr or 0), color="black", alpha=0.06
                    )
        _finish(axes, "noise scale eta", f"{metric}, {_STARS}", f"k = {k}, q1 = {draws}")
        axes.set_ylim(bottom=0.0)
        return count

    return panel


def against_draws(eta: float, k: int) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        count = 0
        for method, setting in (("sat-realuser", {"eta": eta}), (BASELINE, {})):
            rows = [row for row in result.select("d_i", method, k=k, **setting) if len(row.setting) == 2 + len(setting)]
            if len(rows) > 1:
                _line(axes, sorted(rows, key=lambda row: row.setting["draws"]), "draws", method, COLOURS[method], "-")
                count += 1
        axes.axvline(DRAWS, color="grey", linewidth=0.8, linestyle=":")
        _finish(axes, "draws from the posterior, q1", f"d_i, {_STARS}", f"eta = {eta:g}, k = {k}")
        axes.set_xscale("log")
        axes.set_xticks(DRAWS_TRIED, labels=map(str, DRAWS_TRIED))
        axes.minorticks_off()
        axes.set_ylim(bottom=0.0)
        return count

    return panel


def smallest(method: str) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        rows = [row for row in result.select("smallest k", method) if "eta" in row.setting]
        for level in sorted({row.setting["level"] for row in rows}):
            _line(axes, [row for row in rows if row.setting["level"] == level], "eta", f"d_i <= {level:g}", None, "-")
        _finish(axes, "noise scale eta", "smallest k", method)
        return len(rows)

    return panel


def cumulative(metric: str, unit: str) -> Panel:
    def panel(result: Result, axes: Axes) -> int:
        rows = result.select(f"{metric}, cumulative")
        sizes = list(dict.fromkeys(row.setting.get("size") for row in rows))
        for size in sizes:
            part = [row for row in rows if row.setting.get("size") == size]
            label = f"clusters of {size}" if len(sizes) > 1 else "here"
            (line,) = axes.step(
                [row.setting["at"] for row in part], [row.value for row in part], where="post", label=label
            )
            if metric == "cluster diameter":
                for row in result.select("clusters within", "paper:users", size=size or 0):
                    axes.plot(row.setting["radius"], row.value, "x", color=line.get_color(), label=f"{label} (paper)")
        for row in result.select(metric):
            if len(sizes) == 1:
                papers = row.is_papers
                axes.axvline(row.value, color="grey" if papers else "black", linestyle=":" if papers else "--",
                             label=f"mean {row.value:.2f}{' (paper)' if papers else ''}")  # fmt: skip
        _finish(axes, unit, "share of users up to here", "")
        return len(rows)

    return panel


def _main(result: Result, metric: str, method: str, k: int, draws: int, model: str) -> list[Row]:
    """Rows of the main trials by eta: those without any further setting."""
    setting = {"k": k, "draws": draws} | ({"local_model": model} if model else {})
    found = [
        row for row in result.select(metric, method, **setting) if len(row.setting) == len(setting) + ("eta" in row.setting)
    ]  # fmt: skip
    return sorted(found, key=lambda row: float(row.setting.get("eta", 0.0)))


def _line(axes: Axes, rows: list[Row], along: str, label: str, colour: str | None, style: str) -> None:
    axes.errorbar(
        [row.setting[along] for row in rows], [row.value for row in rows], yerr=[row.stderr or 0.0 for row in rows],
        label=label, color=colour, linestyle=style, marker="o", markersize=3, capsize=2,
    )  # fmt: skip


def _finish(axes: Axes, x: str, y: str, title: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.25)
