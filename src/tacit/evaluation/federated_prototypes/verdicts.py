"""What the figures decide of the paper's statements, figure by figure; what was not tried is left out."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tacit.evaluation.federated_prototypes import counts, factored, names, rated
from tacit.evaluation.federated_prototypes.comparisons import Rows, Value, decided
from tacit.evaluation.federated_prototypes.measures import RANK, RMSE, Floats
from tacit.evaluation.federated_prototypes.paper import NAME
from tacit.evaluation.federated_prototypes.rows import Key
from tacit.evaluation.result import Claim, Row

ALIKE = 0.05  # errors that differ by less hardly differ, on the scale of the synthetic world


def published(rows: Sequence[Row], influences: Mapping[Key, Floats] | None = None) -> Iterator[Claim]:
    """The paper's statements, figure by figure; what was not tried is left out."""
    table = Rows(rows, influences)
    yield from _synthetic(table)
    yield from _drugs(table)
    yield from _films(table)


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
        yield from decided("Figure 1a: the factors of all rows reconstruct better than those of prototypes", exact)
        k_means = {rank: table.find(names.K_MEANS, RMSE, **world, rank=rank, k=largest) for rank in central}
        yield from decided(
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
        yield from decided(
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
    yield from decided("Figures 3 and 4a: the clustering loss of private prototypes falls as epsilon grows", falls)
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
        numbers = sorted(joined)
        steps = [joined[one].value - joined[more].value for one, more in pairwise(numbers)]
        told = ", ".join(f"{one}: {joined[one].value:.3f}" for one in numbers)
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
        yield from decided(claim, apart)


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
        yield from decided(f"Figure 8a: individual models have lower training errors than one for all ({told})", train)
        test = {f"rank {rank}": table.lower(row, own[RMSE][rank]) for rank, row in central[RMSE].items()}
        yield from decided(f"Figure 8b: one model for all has lower test errors than individual ones ({told})", test)
        for found, form in ((means, "zero-filled"), (raters, "mean over raters")):
            better = {f"rank {rank}": table.lower(row, central[RMSE][rank]) for rank, row in found[RMSE].items()}
            yield from decided(
                f"Figure 2b's statement on films, without privacy: exact prototypes ({form}) have lower test errors than one model "
                f"for all ({told})", better,
            )  # fmt: skip
        ranks = {f"rank {rank}": table.lower(row, own[RANK][rank]) for rank, row in means[RANK].items()}
        yield from decided(
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
        yield from decided(
            f"Figure 9: private prototypes at epsilon 0.1 rank better than individual models ({told})", apart
        )
