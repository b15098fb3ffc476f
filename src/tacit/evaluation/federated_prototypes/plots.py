"""The pictures of federated prototypes: the paper's Figures 1 to 9 with our figures, and gains by epsilon beyond the paper."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.evaluation.federated_prototypes import counts, factored, names, ranking, rated
from tacit.evaluation.federated_prototypes.measures import NDCG, RANK, RMSE
from tacit.evaluation.pictures.lines import Value, asides, finish, level, line, logarithmic_x, logarithmic_y, rows_along
from tacit.evaluation.pictures.palette import GREY, INK, Style, ramp, series
from tacit.evaluation.pictures.panels import Settings, against, each, levels, together
from tacit.evaluation.pictures.picture import Panel, Picture
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = {
    names.CENTRAL: Style(INK), names.INDIVIDUAL: Style(GREY, "s"), names.K_MEANS: series(1), names.K_RATERS: series(7),
    names.K_RANDOM: series(3), names.GRID: series(2), names.GRID_CLIPPED: series(5), names.TREE: series(6),
    names.COVARIANCE: series(10), names.MOMENTS: series(4), names.MOMENTS_APART: series(9, "--"),
    names.CONSTANT: Style(GREY, "v", ":"),
}  # fmt: skip
_PLAIN = (names.CENTRAL, names.INDIVIDUAL)
_EXACT = (names.K_MEANS, names.K_RANDOM)
_WORLDS = (names.ZIP1, names.ZIP2, names.HOSPITALS, names.REGIONS)


def pictures(result: Result) -> list[Picture]:
    users = next((row.setting["users"] for row in result.rows if row.setting.get("world") == names.SYNTHETIC), 0)
    made: dict[str, Value] = {"world": names.SYNTHETIC, "users": users}
    ks, ranks = _tried(result, "k"), _tried(result, "rank")
    k, rank, few = (ks or [10])[-1], (ranks or [10])[-1], (ks or [10])[0]
    drugs: Settings = {
        **{one: {"world": names.REGIONS} for one in _PLAIN},
        names.GRID: {"world": names.REGIONS, "epsilon": 0.1, "k": 10},
    }
    exact = {one: {**made, "k": k} for one in _EXACT}
    return [
        Picture(
            "figure-1",
            "Figure 1: reconstruction of made-up counts",
            (
                against(RMSE, "rank", {names.CENTRAL: made, **exact}, STYLES, title=f"k = {k}"),
                against(RMSE, "k", {one: {**made, "rank": rank} for one in _EXACT}, STYLES, title=f"rank {rank}"),
                _by_epsilon(RMSE, "rank", made, {"k": few}, f"grid, k = {few}"),
                _by_epsilon(RMSE, "k", made, {"rank": rank}, f"grid, rank {rank}"),
            ),
            2,
        ),
        Picture(
            "figure-2",
            "Figure 2: drugs of patients (open demo, regions); grid at epsilon 0.1, k = 10",
            tuple(against(one, "rank", drugs, STYLES) for one in (factored.TRAIN, RMSE, RANK)),
        ),
        Picture("figure-3", "Figure 3: clustering loss by epsilon", (_loss(made, k),)),
        Picture(
            "figure-4",
            "Figure 4: clustering loss of private prototypes",
            (_by_k(result, made), _by_epsilon(counts.LOSS, "k", made, {}, "by k")),
        ),
        Picture(
            "figure-5",
            "Figure 5: convergence by the number of entities",
            (
                each(
                    RMSE, "epochs", names.K_MEANS, {f"{one} entities": {**made, "entities": one} for one in counts.JOINED},
                    ramp(len(counts.JOINED)),
                ),
            ),
        ),
        Picture(
            "figure-6",
            "Figure 6: prototypes by their number",
            tuple(
                against(RMSE, "k", {one: {**made, "rank": each_} for one in _EXACT}, STYLES, title=f"rank {each_}")
                for each_ in ranks
            ),
        ),
        Picture(
            "figure-7",
            "Figure 7: private prototypes by rank",
            tuple(_by_epsilon(RMSE, "rank", made, {"k": each_}, f"k = {each_}") for each_ in ks),
        ),
        Picture(
            "figure-8",
            "Figure 8: errors on films",
            tuple(_film(one, kind) for kind in rated.REGULARISERS for one in (factored.TRAIN, RMSE)),
            2,
        ),
        Picture("figure-9", "Figure 9: ranks on films", tuple(_film(RANK, kind) for kind in rated.REGULARISERS)),
        Picture("moments", "Gain of moments over individual models", tuple(_moments(ranking.GAIN, one) for one in _WORLDS), 2),
        Picture("lists", "Lists by epsilon", tuple(_moments(NDCG, one) for one in _WORLDS), 2),
        Picture("planted", "Planted groups", tuple(_planted(each_) for each_ in (20000, 2000))),
    ]  # fmt: skip


def _tried(result: Result, name: str) -> list[int]:
    made = (row.setting for row in result.rows if row.setting.get("world") == names.SYNTHETIC)
    return sorted({int(setting[name]) for setting in made if name in setting})


def _film(metric: str, kind: str) -> Panel:
    methods: dict[str, Mapping[str, Value]] = {
        one: {"world": names.ZIP1, "regulariser": kind} for one in (*_PLAIN, names.K_MEANS, names.K_RATERS, names.K_RANDOM)
    }  # fmt: skip
    methods[names.GRID] = {
        "world": names.ZIP1, "epsilon": rated.PAPER_EPSILON, "k": rated.K, "items each": rated.MANY
    }  # fmt: skip
    return against(metric, "rank", methods, STYLES, title=kind)


def _moments(metric: str, world: str) -> Panel:
    methods = {one: {"world": world} for one in (names.MOMENTS, names.MOMENTS_APART)}
    return against(metric, "epsilon", methods, STYLES, title=world, log=True)


def _by_epsilon(metric: str, name: str, base: Mapping[str, Value], fixed: Mapping[str, Value], title: str) -> Panel:
    """Private prototypes, one line for each epsilon, and exact ones beside them."""

    def panel(result: Result, axes: "Axes") -> int:
        rows = result.select(metric, names.GRID, **base)
        tried = sorted({float(row.setting["epsilon"]) for row in rows if "epsilon" in row.setting})
        count = 0
        for epsilon, style, aside in zip(tried, ramp(len(tried)), asides(len(tried)), strict=True):
            found = rows_along(result, metric, names.GRID, name, {**base, **fixed, "epsilon": epsilon})
            count += line(axes, found, name, f"grid, epsilon {epsilon:g}", style, aside=aside)
        found = rows_along(result, metric, names.K_MEANS, name, {**base, **fixed})
        line(axes, found, name, names.K_MEANS, STYLES[names.K_MEANS])
        finish(axes, name, metric, title)
        return count

    return panel


def _by_k(result: Result, base: Mapping[str, Value]) -> Panel:
    ks = sorted({int(row.setting["k"]) for row in result.select(counts.LOSS, names.GRID, **base)})
    settings = {f"grid, k = {k}": {**base, "k": k} for k in ks}
    styles = [Style(one.colour, one.marker, "--") for one in ramp(len(ks))]
    return each(counts.LOSS, "epsilon", names.GRID, settings, styles, title="by epsilon", log=True)


def _loss(base: Mapping[str, Value], k: int) -> Panel:
    def panel(result: Result, axes: "Axes") -> int:
        found = rows_along(result, counts.LOSS, names.GRID, "epsilon", {**base, "k": k})
        count = line(axes, found, "epsilon", f"grid, k = {k}", STYLES[names.GRID])
        for row in result.select(counts.LOSS, names.K_MEANS, **base, k=k):
            level(axes, row.value, row.stderr, STYLES[names.K_MEANS], label=names.K_MEANS)
        logarithmic_x(axes)
        if count:
            logarithmic_y(axes)
        finish(axes, "epsilon", counts.LOSS)
        return count

    return panel


def _planted(users: int) -> Panel:
    base: dict[str, Value] = {"world": names.PLANTED, "users": users}
    private = (names.GRID, names.GRID_CLIPPED, names.TREE, names.COVARIANCE)
    return together(
        levels(RMSE, dict.fromkeys((names.INDIVIDUAL, names.K_MEANS, names.CONSTANT), base), STYLES),
        against(RMSE, "epsilon", dict.fromkeys(private, base), STYLES, title=f"{users:,} users an entity", log=True),
    )
