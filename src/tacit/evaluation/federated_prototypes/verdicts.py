"""What the figures decide: the paper's statements by its figures, and ours. Of two figures one is ahead by 2 standard errors.

Figures of one split are compared user by user where they are errors or ranks, and otherwise as if they were independent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tacit.evaluation.federated_prototypes import counts, factored, names, planted, ranking, rated
from tacit.evaluation.federated_prototypes.item_statistics import EVERY
from tacit.evaluation.federated_prototypes.measures import RANK, RECALL, RMSE, Floats
from tacit.evaluation.federated_prototypes.paper import NAME, OURS
from tacit.evaluation.federated_prototypes.rows import Key, key_of, settled
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import SHOWN, Estimate, mean, reduction

Value = int | float | str
ALIKE = 0.05  # errors that differ by less hardly differ, on the scale of the synthetic world


class Rows:
    """Rows by method, metric and the whole setting, and what each user adds to some of them."""

    def __init__(self, rows: Sequence[Row], influences: Mapping[Key, Floats] | None = None) -> None:
        self._rows = {key_of(row): row for row in rows}
        self._influences = influences or {}
        self.all = rows

    def find(self, method: str, metric: str, **setting: Value) -> Row | None:
        return self._rows.get((method, metric, settled(setting)))

    def values(self, method: str, metric: str, name: str, **setting: Value) -> dict[Value, Row]:
        """The rows of a method that have this setting, by one further part of it."""
        found = {}
        for row in self.all:
            rest = {key: value for key, value in row.setting.items() if key != name}
            if (row.method, row.metric) == (method, metric) and name in row.setting and rest == setting:
                found[row.setting[name]] = row
        return found

    def lower(self, one: Row, other: Row) -> Estimate:
        """How far ``one`` is below ``other``: the error is of the difference user by user, or of independent figures."""
        first, second = (self._influences.get(key_of(row)) for row in (one, other))
        if first is not None and second is not None and first.size == second.size:
            error = mean(second - first).stderr
        else:
            error = math.hypot(one.stderr or 0.0, other.stderr or 0.0)
        return Estimate(other.value - one.value, error, min(one.n, other.n))


def published(rows: Sequence[Row], influences: Mapping[Key, Floats] | None = None) -> Iterator[Claim]:
    """The paper's statements, figure by figure; what was not tried is left out."""
    table = Rows(rows, influences)
    yield from _synthetic(table)
    yield from _drugs(table)
    yield from _films(table)


def _claim(claim: str, apart: dict[str, Estimate], *, paper: str = NAME, bound: float = 0.0) -> Iterator[Claim]:
    """Whether every difference is above ``bound`` by 2 standard errors."""
    if apart:
        evidence = "; ".join(f"{name}: {one}" for name, one in apart.items())
        yield Claim(paper, claim, all(one.above(bound, SHOWN) for one in apart.values()), evidence)


def _synthetic(table: Rows) -> Iterator[Claim]:
    sizes = {row.setting["users"] for row in table.all if row.setting.get("world") == names.SYNTHETIC}
    for users in sizes:
        world: dict[str, Value] = {"world": names.SYNTHETIC, "users": users}
        central = table.values(names.CENTRAL, RMSE, "rank", **world)
        largest = max((int(row.setting["k"]) for row in table.all if row.setting.get("users") == users and "k" in row.setting
                       and row.metric == RMSE), default=0)  # fmt: skip
        exact = {
            f"{method}, rank {rank}": table.lower(row, other)
            for rank, row in central.items()
            for method in (names.K_MEANS, names.K_RANDOM)
            if (other := table.find(method, RMSE, **world, rank=rank, k=largest)) is not None
        }
        yield from _claim("Figure 1a: the factors of all rows reconstruct better than those of prototypes", exact)
        k_means = {rank: table.find(names.K_MEANS, RMSE, **world, rank=rank, k=largest) for rank in central}
        yield from _claim(
            f"Figure 1b: for many prototypes ({largest}) users as they are do better than k-means",
            {
                f"rank {rank}": table.lower(one, other)
                for rank, other in k_means.items()
                if other is not None
                and (one := table.find(names.K_RANDOM, RMSE, **world, rank=rank, k=largest)) is not None
            },
        )
        private = {rank: table.values(names.GRID, RMSE, "epsilon", **world, rank=rank, k=largest) for rank in central}
        yield from _alike(private)
        yield from _claim(
            f"Figures 1d, 6 and 7: for many prototypes ({largest}) private ones do better than k-means",
            {
                f"rank {rank}, epsilon {epsilon:g}": table.lower(row, other)
                for rank, found in private.items()
                if (other := k_means[rank]) is not None
                for epsilon, row in found.items()
            },
        )
        yield from _losses(table, world)


def _alike(private: Mapping[Value, Mapping[Value, Row]]) -> Iterator[Claim]:
    spans = {rank: [row.value for row in found.values()] for rank, found in private.items() if found}
    if spans:
        yield Claim(
            NAME,
            f"Figures 1c and 1d: a smaller epsilon hardly costs reconstruction (errors within {ALIKE:g})",
            all(max(values) - min(values) <= ALIKE for values in spans.values()),
            "; ".join(f"rank {rank}: {min(one):.3f} to {max(one):.3f}" for rank, one in spans.items())
            + ". It is near that of random factors throughout: at every epsilon tried the release carries no visible signal",
        )


def _losses(table: Rows, world: Mapping[str, Value]) -> Iterator[Claim]:
    exact = table.values(names.K_MEANS, counts.LOSS, "k", **world)
    by_k = {k: table.values(names.GRID, counts.LOSS, "epsilon", **world, k=k) for k in exact}
    falls, near = {}, []
    for k, found in by_k.items():
        order = sorted(found, key=float)
        if len(order) > 1:
            falls[f"k = {k}"] = table.lower(found[order[-1]], found[order[0]])
            near.append(f"k = {k}: {found[order[-1]].value:,.0f} at epsilon {order[-1]:g}, exact {exact[k].value:,.0f}")
    yield from _claim("Figures 3 and 4a: the clustering loss of private prototypes falls as epsilon grows", falls)
    if near:
        close = all(
            found[max(found, key=float)].value <= 2.0 * exact[k].value for k, found in by_k.items() if len(found) > 1
        )
        yield Claim(NAME, "Figure 3: it approaches that of k-means (within a factor of 2)", close, "; ".join(near))
    joined = {
        int(row.setting["entities"]): row
        for row in table.all
        if row.metric == RMSE
        and row.setting.get("epochs") == counts.AFTER[-1]
        and row.setting.get("users") == world["users"]
    }
    if joined:
        order = sorted(joined)
        steps = [joined[one].value - joined[more].value for one, more in pairwise(order)]
        told = ", ".join(f"{one}: {joined[one].value:.3f}" for one in order)
        yield Claim(
            NAME,
            "Figure 5: the more entities, the better the factors",
            all(step > 0.0 for step in steps),
            f"RMSE by entities {told}",
        )


def _drugs(table: Rows) -> Iterator[Claim]:
    world = {"world": names.REGIONS}
    for metric, claim in (
        (factored.TRAIN, "Figure 2a: on drugs, individual models have lower training errors than one for all"),
        (RMSE, "Figure 2b: on drugs, private prototypes (epsilon 0.1) have lower test errors than one model for all"),
        (RANK, "Figure 2c: on drugs, private prototypes (epsilon 0.1) rank best, better than individual models"),
    ):
        apart = {}
        for rank, other in table.values(names.CENTRAL, metric, "rank", **world).items():
            private = table.find(names.GRID, metric, **world, rank=rank, epsilon=0.1, k=10)
            own = table.find(names.INDIVIDUAL, metric, **world, rank=rank)
            if private is None or own is None:
                continue
            pair = (own, other) if metric == factored.TRAIN else (private, other) if metric == RMSE else (private, own)
            apart[f"rank {rank}, {pair[0].value:.3f} against {pair[1].value:.3f}"] = table.lower(*pair)
        yield from _claim(claim, apart)


def _films(table: Rows) -> Iterator[Claim]:
    for kind, told in (("sum", "the paper's regularisation"), ("weighted", "weighted regularisation")):
        world: dict[str, Value] = {"world": names.ZIP1, "regulariser": kind}
        own, central, means, raters = (
            {metric: table.values(method, metric, "rank", **world) for metric in (factored.TRAIN, RMSE, RANK)}
            for method in (names.INDIVIDUAL, names.CENTRAL, names.K_MEANS, names.K_RATERS)
        )
        train = {
            f"rank {rank}": table.lower(row, central[factored.TRAIN][rank]) for rank, row in own[factored.TRAIN].items()
        }
        yield from _claim(f"Figure 8a: individual models have lower training errors than one for all ({told})", train)
        test = {f"rank {rank}": table.lower(row, own[RMSE][rank]) for rank, row in central[RMSE].items()}
        yield from _claim(f"Figure 8b: one model for all has lower test errors than individual ones ({told})", test)
        for found, form in ((means, "zero-filled"), (raters, "mean over raters")):
            better = {f"rank {rank}": table.lower(row, central[RMSE][rank]) for rank, row in found[RMSE].items()}
            yield from _claim(
                f"Figure 2b's statement on films, without privacy: exact prototypes ({form}) have lower test errors than one model "
                f"for all ({told})", better,
            )  # fmt: skip
        ranks = {f"rank {rank}": table.lower(row, own[RANK][rank]) for rank, row in means[RANK].items()}
        yield from _claim(
            f"Figure 9 without privacy: exact prototypes (zero-filled) rank better than individual models ({told})",
            ranks,
        )
        apart = {}
        for rank, row in own[RANK].items():
            private = table.find(
                names.GRID,
                RANK,
                world=names.ZIP1,
                epsilon=rated.PAPER_EPSILON,
                k=rated.K,
                rank=rank,
                **{"items each": rated.MANY},
            )
            if private is not None:
                apart[f"rank {rank}, {private.value:.3f} against {row.value:.3f}"] = table.lower(private, row)
        yield from _claim(
            f"Figure 9: private prototypes at epsilon 0.1 rank better than individual models ({told})", apart
        )


def beyond(rows: Sequence[Row], worlds: Mapping[str, ranking.Ranked], groups: planted.Found | None) -> Iterator[Claim]:
    """What goes beyond the paper: moments, controls, item statistics, and where prototypes work."""
    table = Rows(rows)
    yield from _moments(worlds)
    yield from _controls(table, worlds)
    yield from _items(table)
    if groups is not None:
        yield from _planted(groups)


def _moments(worlds: Mapping[str, ranking.Ranked]) -> Iterator[Claim]:
    for world, epsilons in (
        (names.ZIP2, (0.5, 1.0, 4.0)), (names.HOSPITALS, (0.5, 1.0, 4.0)), (names.ZIP1, (1.0, 4.0)), (names.REGIONS, (1.0, 8.0)),
    ):  # fmt: skip
        if world not in worlds:
            continue
        one = worlds[world]
        for epsilon in epsilons:
            gain = one.gain(names.MOMENTS, epsilon)
            if gain is not None:
                yield Claim(
                    OURS, f"{world}: moments beat individual models at epsilon {epsilon:g} (NDCG@20, noise once)",
                    gain.above(0.0), f"{gain}, {gain.n:,} users",
                )  # fmt: skip
    for world, one in worlds.items():
        tried = [epsilon for epsilon in ranking.EPSILONS if one.ranks(names.MOMENTS, epsilon) is not None]
        by = {epsilon: one.harmed(names.MOMENTS, epsilon) for epsilon in tried}
        told = "; ".join(f"epsilon {epsilon:g}: {worse} of {all_}" for epsilon, (worse, all_) in by.items())
        chance = 0.05  # both sides of 2 errors in samples of this size, at least
        yield Claim(
            OURS,
            f"{world}: with the gate no more entities are below -2 standard errors than 5 % of those compared",
            all(worse <= chance * all_ for worse, all_ in by.values()),
            f"{told} (entities with at least two users reported, over noise draws)",
        )
        apart = {epsilon: one.gain(names.MOMENTS_APART, epsilon) for epsilon in tried}
        yield Claim(
            OURS,
            f"{world}: without secure sums nothing is gained below epsilon 4",
            not any(gain is not None and epsilon < 4.0 and gain.above(0.0) for epsilon, gain in apart.items()),
            "; ".join(f"epsilon {epsilon:g}: {gain}" for epsilon, gain in apart.items() if gain is not None),
        )


def _controls(table: Rows, worlds: Mapping[str, ranking.Ranked]) -> Iterator[Claim]:
    for world, one in worlds.items():
        gain = one.gain(names.PURE_NOISE, ranking.CONTROL)
        if gain is not None:
            yield Claim(
                OURS, f"{world}: a release of nobody, with the noise of epsilon {ranking.CONTROL:g}, gains nothing",
                not gain.above(0.0), str(gain),
            )  # fmt: skip
    informative = []
    for row in table.all:
        if row.setting.get("world") == names.ZIP1 and row.method in (names.GRID, names.TREE) and row.metric == RMSE:
            informative.append(f"{row.method} epsilon {row.setting['epsilon']:g}: {row.value:.3f}")
    constant = table.find(names.CONSTANT, RMSE, world=names.ZIP1, rank=1)
    if constant is not None and informative:
        yield Claim(
            OURS, "films: no private prototype has a lower test error than all items alike: no information at these budgets",
            all(float(one.rsplit(" ", 1)[1]) >= constant.value for one in informative),
            f"all alike {constant.value:.3f}; " + "; ".join(informative),
        )  # fmt: skip


def _items(table: Rows) -> Iterator[Claim]:
    counted = table.values(names.DP_POPULARITY, RANK, "epsilon", world=names.ZIP1)
    grid = table.values(names.GRID, RANK, "epsilon", world=names.ZIP1, k=rated.K, rank=10, **{"items each": rated.FEW})
    shared = sorted(set(counted) & set(grid), key=float)
    yield from _claim(
        "films: private item counts rank better than private prototypes (grid) at equal epsilon",
        {f"epsilon {one:g}": table.lower(counted[one], grid[one]) for one in shared}, paper=OURS,
    )  # fmt: skip
    for world in (names.ZIP1, names.ZIP2):
        own = table.find(names.INDIVIDUAL, RMSE, world=world, split=EVERY, epsilon=names.INF)
        prior = table.values(names.PRIOR_ONCE, RMSE, "epsilon", world=world, split=EVERY)
        if own is not None and 1.0 in prior:
            gain = table.lower(prior[1.0], own)
            yield Claim(
                OURS, f"{world}: private item means as prior do not lower the error of entities' own means measurably at epsilon 1",
                not gain.above(0.0), f"{gain}",
            )  # fmt: skip
    alone = table.find(names.MOMENTS_ALONE, RECALL, world=names.ZIP1, epsilon=1.0)
    popular = table.find(names.POPULARITY, RECALL, world=names.ZIP1, epsilon=names.INF)
    if alone is not None and popular is not None:
        gain = table.lower(popular, alone)
        yield Claim(
            OURS, "films: moments alone, at epsilon 1 and without rows of an entity, find more than exact popularity (recall@20)",
            gain.above(0.0), str(gain),
        )  # fmt: skip


def _planted(groups: planted.Found) -> Iterator[Claim]:
    def gain(users: int, one: tuple[str, float | str], other: tuple[str, float | str]) -> Estimate:
        """By what share the squared error is lower, cell by cell."""
        first, who = groups.errors[(users, *one)]
        second, _ = groups.errors[(users, *other)]
        return reduction(first**2, second**2, who)

    for users in sorted({key[0] for key in groups.errors}):
        epsilons = sorted({key[2] for key in groups.errors if key[0] == users and isinstance(key[2], float)})
        if 1.0 not in epsilons:
            continue
        own = (names.INDIVIDUAL, names.INF)
        for method in (names.GRID, names.GRID_CLIPPED, names.TREE, names.COVARIANCE):
            found = gain(users, (method, 1.0), own)
            yield Claim(
                OURS, f"planted groups, {users:,} users an entity: {method} at epsilon 1 has a lower error than individual models",
                found.above(0.0), f"squared error lower by {found}",
            )  # fmt: skip
        for better, worse in ((names.GRID_CLIPPED, names.GRID), (names.TREE, names.GRID_CLIPPED)):
            found = gain(users, (better, 1.0), (worse, 1.0))
            yield Claim(
                OURS, f"planted groups, {users:,} users an entity: {better} has a lower error than {worse} at epsilon 1",
                found.above(0.0), f"squared error lower by {found}",
            )  # fmt: skip
