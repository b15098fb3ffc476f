"""One thing at a time: users in both domains, how many users, k, paths, significance, age; and links cut in real data."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.measures import scored
from tacit.evaluation.cross_domain.moments import moments
from tacit.evaluation.cross_domain.outcome import Gathering, Outcome
from tacit.evaluation.cross_domain.plain import METHODS, item_based_of
from tacit.evaluation.cross_domain.reference import LARGE, PLAIN, SMALL
from tacit.evaluation.cross_domain.splits import Held, hidden
from tacit.evaluation.cross_domain.synthetic import Plan, synthetic
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.result import Row
from tacit.models.cross_domain.alter_egos import SimilarItems
from tacit.models.cross_domain.similarities import Layer

PLANS = {PLAIN: Plan(), SMALL: Plan(items=200), LARGE: Plan(items=200, users=20_000)}
OVERLAPS = {Effort.QUICK: (0.02, 0.2, 0.8), Effort.DEFAULT: (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)}
USERS = {Effort.QUICK: (500, 2000), Effort.DEFAULT: (500, 1000, 2000, 5000, 10_000, 20_000)}
SEEDS = {Effort.QUICK: 1, Effort.DEFAULT: 3, Effort.FULL: 5}
KS = (5, 10, 25, 50, 100, 200)
WS, PATHS, ALPHAS = (0, 10, 50, 100), (1, 10, 20), (0.0, 0.03, 0.3)
LINKED = (0.02, 0.1, 0.3, 1.0)
DRIFT = {"none": 0.0, "strong": np.pi / 2.0}
BY_USERS = "synthetic, 200 + 200 items"
AT = 2.0  # epsilon
COMPARED = (names.ITEM_AVERAGE, names.NX, names.NX_UB, names.REMOTE_USER, names.KNN, names.ALS)
_LAYERS = {Layer.BRIDGE: "bridge items", Layer.NEAR: "near items", Layer.FAR: "far items"}


def plain_world(plan: Plan, name: str, seed: int, which: int) -> Held:
    """The same seed and number give the same world, whatever else is tried."""
    two = synthetic(plan, rng=rng_of(seed, "world", plan, which))
    return hidden(two, name, rng=rng_of(seed, "split", plan, which))


def overlaps(effort: Effort, seed: int) -> Outcome:
    gathered, layers = Gathering(), []
    for which in range(SEEDS[effort]):
        gathered.next_split()
        for overlap in OVERLAPS.get(effort, OVERLAPS[Effort.DEFAULT]):
            known = Known(plain_world(replace(PLANS[PLAIN], overlap=overlap), PLAIN, seed, which))
            _try(gathered, known, COMPARED, seed, overlap=overlap)
            layers.append((overlap, np.bincount(known.layers, minlength=4)))
    found = gathered.outcome()
    for overlap in dict.fromkeys(one for one, _ in layers):
        mean = np.mean([counts for one, counts in layers if one == overlap], axis=0)
        setting: dict[str, int | float | str] = {"world": PLAIN, "overlap": overlap}
        found.rows += [Row("layers", setting, name, float(mean[layer])) for layer, name in _LAYERS.items()]
    return found


def by_users(effort: Effort, seed: int) -> Outcome:
    gathered = Gathering()
    kept = (names.B2_CAREFUL, names.B3_OFFSETS, names.B3)
    for which in range(min(2, SEEDS[effort])):
        gathered.next_split()
        for users in USERS.get(effort, USERS[Effort.DEFAULT]):
            known = Known(plain_world(replace(PLANS[SMALL], users=users), BY_USERS, seed, which))
            _try(gathered, known, (names.ITEM_AVERAGE, names.NX), seed, users=users, epsilon=names.INF)
            for one in moments(known, AT, lambda method, u=users, w=which: noise_of(seed, "users", method, u, w)):  # type: ignore[misc]
                if one.method in kept:
                    setting: dict[str, int | float | str] = {"world": BY_USERS, "users": users, "epsilon": AT}
                    gathered.add(one.method, setting, scored(known.held, one.scores), one.guarantee, one.told)
    return gathered.outcome()


def by_k(known: Known) -> Outcome:
    """How many similar items: the published form takes the k most similar of all, the other the k most similar of the profile."""
    gathered = Gathering()
    gathered.next_split()
    for k in KS:
        for method, similar, level in (
            (names.NX_PUBLISHED, SimilarItems.STATIC, None),
            (names.NX, SimilarItems.RATED, known.level),
        ):
            scores = item_based_of(known, known.egos, k=k, similar=similar, level=level)
            gathered.add(method, {"world": known.held.world, "k": k}, scored(known.held, scores))
    return gathered.outcome()


def of_paths(known: Known) -> Outcome:
    """Significance and paths."""
    gathered, world = Gathering(), known.held.world
    gathered.next_split()
    for w in WS:
        other = replace(known, shrink=w)
        gathered.add(names.NX, {"world": world, "W": w}, scored(known.held, METHODS[names.NX](other, _none())))
    for k_ext in PATHS:
        other = replace(known, k_ext=k_ext)
        gathered.add(names.NX, {"world": world, "k_ext": k_ext}, scored(known.held, METHODS[names.NX](other, _none())))
    other = replace(known, by="absolute")
    gathered.add(names.NX, {"world": world, "ranked": "by |s|"}, scored(known.held, METHODS[names.NX](other, _none())))
    return gathered.outcome()


def of_age(effort: Effort, seed: int) -> Outcome:
    gathered = Gathering()
    for which in range(SEEDS[effort]):
        gathered.next_split()
        for drift, angle in DRIFT.items():
            known = Known(plain_world(replace(PLANS[PLAIN], drift=float(angle)), PLAIN, seed, which))
            for alpha in ALPHAS:
                scores = item_based_of(known, known.egos, level=known.level, alpha=alpha)
                gathered.add(names.NX, {"world": PLAIN, "drift": drift, "alpha": alpha}, scored(known.held, scores))
    return gathered.outcome()


def links_cut(held: Held, seed: int) -> Outcome:
    """Real data with fewer users in both domains: of the rest, each becomes two, one in each. No rating is lost."""
    gathered = Gathering()
    gathered.next_split()
    for share in LINKED:
        known = Known(unlinked(held, share, rng=rng_of(seed, "links", held.world)))
        _try(gathered, known, COMPARED, seed, linked=share)
    return gathered.outcome()


def unlinked(held: Held, share: float, *, rng: np.random.Generator) -> Held:
    """A random ``share`` of the users in both domains stay one; the asked users stay as they are."""
    table, first = held.ratings, held.n_source
    counts = np.diff(table.indptr)
    users = np.repeat(np.arange(counts.size), counts)
    in_target = table.indices >= first
    both = np.flatnonzero((np.bincount(users[in_target], minlength=counts.size) > 0)
                          & (np.bincount(users[~in_target], minlength=counts.size) > 0))  # fmt: skip
    apart = rng.permutation(both)[round(share * both.size) :]
    new = np.arange(counts.size)
    new[apart] = counts.size + np.arange(apart.size)
    moved = np.where(in_target, new[users], users)
    order = np.lexsort((table.indices, moved))
    starts = np.concatenate([[0], np.cumsum(np.bincount(moved, minlength=counts.size + apart.size))])
    rows = sparse.csr_array(
        (table.data[order], table.indices[order], starts), shape=(counts.size + apart.size, table.shape[1])
    )
    times = None if held.times is None else held.times[order]
    return replace(held, ratings=rows, times=times)


def _try(gathered: Gathering, known: Known, methods: tuple[str, ...], seed: int, **setting: int | float | str) -> None:
    for method in methods:
        rng = rng_of(seed, method, known.held.world, *setting.values())
        one = scored(known.held, METHODS[method](known, rng))
        gathered.add(method, {"world": known.held.world, **setting}, one)


def _none() -> np.random.Generator:
    """For methods that draw nothing."""
    return np.random.default_rng(0)
