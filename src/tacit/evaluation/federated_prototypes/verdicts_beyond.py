"""What the figures decide of what goes beyond the paper: moments, controls, statistics of items, and where prototypes work."""

from collections.abc import Iterator, Mapping, Sequence

from tacit.evaluation.federated_prototypes import names, planted, ranking, rated, releases
from tacit.evaluation.federated_prototypes.comparisons import Rows, decided
from tacit.evaluation.federated_prototypes.item_statistics import EVERY
from tacit.evaluation.federated_prototypes.measures import RANK, RECALL, RMSE
from tacit.evaluation.federated_prototypes.paper import OURS
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Estimate, reduction


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
        tried = [epsilon for epsilon in releases.EPSILONS if one.ranks(names.MOMENTS, epsilon) is not None]
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
        gain = one.gain(names.PURE_NOISE, releases.CONTROL)
        if gain is not None:
            yield Claim(
                OURS, f"{world}: a release of nobody, with the noise of epsilon {releases.CONTROL:g}, gains nothing",
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
    yield from decided(
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
