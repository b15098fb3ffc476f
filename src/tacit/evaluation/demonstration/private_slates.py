"""Private slates, shown: a curator draws one and says why so; then slates by its default route and by others are compared."""

from collections.abc import Iterable, Iterator
from math import hypot
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.curator import Curator
from tacit.data import Ratings
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import (
    Demonstration,
    Figure,
    Kind,
    Skipped,
    Status,
    Way,
    unheard,
)
from tacit.evaluation.statistics import mean
from tacit.ledger import Accounting, Budget
from tacit.mechanisms import LaplaceSum, NaturalSlate
from tacit.models.dpp.tempered import from_counts

SYSTEM = "private-slates"
K, EPSILON, SLATES = 10, 1.0, 20
LIKED = 4.0  # stars from which a rating counts as a like
LIKES_EACH = 20  # of a user's likes in noisy counts
POPULARITY, DIVERSITY = "popularity", "genre diversity"
UNIFORM, NATURAL, PLAIN = "uniform", "natural", "most liked"
SEED = 11  # of slates without data, and of which likes of a user count


def demonstrate(ratings: Ratings, *, status: Status = unheard) -> Demonstration | Skipped:
    """One slate by the route that the curator chooses, from a budget for one; then some by each route, drawn anew."""
    with TemporaryDirectory() as folder:
        with _curator(ratings, Path(folder) / "curator.db", EPSILON) as curator:
            k = min(K, len(curator.items) - 1)
            if k < 1:
                return Skipped(SYSTEM, "it needs two listed items.")
            status("a curator draws a slate")
            made, slate = curator.plan(k, EPSILON), curator.slate(k, EPSILON)
            titles, statement = list(curator.titles(slate)), str(curator.statement()).splitlines()[0]
            items, features = curator.items, curator.features
        status(f"{SLATES} slates by each route")
        default = _default(ratings, Path(folder) / "more.db", k)
        ways = tuple(_ways(_likes(ratings, items), features, k, str(made.route), default))
    by_name = {way.method: way for way in ways}
    said = (
        ("the route", f"{made.route}: {made.why.split('. ')[0].rstrip('.')}"),
        ("the slate", "; ".join(titles)),
    )
    private = by_name[str(made.route)]
    return Demonstration(
        SYSTEM, "A curator shows items that many like and that differ, and hardly tells who does.", said, slate.guarantee,
        f"one slate of {k} items", "every rating, and how many like what", statement, POPULARITY,
        "share of the most liked items' likes", Better.HIGHER, ways, private, by_name[PLAIN], by_name[UNIFORM],
        verdict(ways, private), {"slate": slate.to_json(), "titles": titles, "why": made.why},
    )  # fmt: skip


def verdict(ways: Iterable[Way], private: Way) -> str:
    """What the table says of the default route, in words, whatever it says: two standard errors are asked for."""
    by_name = {way.method: way for way in ways}
    mine, plain = private.figures[POPULARITY].value, by_name[PLAIN].figures[POPULARITY].value
    bare, error = by_name[UNIFORM].figures[POPULARITY], private.figures[POPULARITY].stderr
    # drawn apart from each other: their errors add as those of independent means
    if not Figure(mine - bare.value, hypot(error or 0.0, bare.stderr or 0.0)).is_shown:
        return f"At epsilon {private.epsilon:.3g} a slate cannot be told from one drawn without data: there are too few users."
    text = f"At epsilon {private.epsilon:.3g} a slate has {mine:.0%} of the most liked items' likes; without privacy {plain:.0%}"
    if mine < 0.5 * plain:
        text += ": with more users the noise would cost less"
    return text + "."


def _default(ratings: Ratings, ledger: Path, k: int) -> NDArray[np.int64]:
    """Slates by a curator's own route, as it draws them, with a budget for so many; in codes of its items."""
    with _curator(ratings, ledger, SLATES * EPSILON) as curator:
        code = {item: place for place, item in enumerate(curator.items.tolist())}
        return np.array([[code[item] for item in curator.slate(k, EPSILON).items] for _ in range(SLATES)])


def _curator(ratings: Ratings, ledger: Path, epsilon: float) -> Curator:
    budget = Budget(epsilon=epsilon)
    return Curator(ratings, ledger=ledger, budget=budget, accounting=Accounting.BASIC, like=LIKED)


def _likes(ratings: Ratings, items: NDArray[Any]) -> sparse.csr_array:
    """1 for each like, users x listed items."""
    place = {item: code for code, item in enumerate(ratings.catalogue.ids.tolist())}
    likes = sparse.csr_array(ratings.csr()[:, np.array([place[item] for item in items.tolist()])])
    likes.data = (likes.data >= LIKED).astype(np.float64)
    likes.eliminate_zeros()
    return likes


def _ways(
    likes: sparse.csr_array, features: NDArray[np.float64] | None, k: int, route: str, default: NDArray[np.int64]
) -> Iterator[Way]:
    """``default``: slates that the curator drew by ``route``, in codes of the listed items."""
    counts, items = np.asarray(likes.sum(axis=0), dtype=np.float64), likes.shape[1]
    best = max(1.0, float(np.sort(counts)[-k:].sum()))
    rng = np.random.default_rng(SEED)

    def popularity(slates: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(counts[np.atleast_2d(slates)].sum(axis=1) / best, dtype=np.float64)

    uniform = np.stack([rng.choice(items, k, replace=False) for _ in range(SLATES)])

    def way(method: str, kind: Kind, epsilon: float, slates: NDArray[np.int64], remark: str) -> Way:
        figures = {POPULARITY: Figure.of(mean(popularity(slates)))}
        if features is not None:
            figures[DIVERSITY] = Figure.of(mean(np.array([_diversity(features[one]) for one in np.atleast_2d(slates)])))
        return Way(method, kind, epsilon, figures, remark)

    why = (
        "tacit's default: genres are public" if features is not None else "tacit's default: similarity is private, too"
    )
    yield way(route, Kind.PRIVATE, EPSILON, default, why)
    # a user's row is as long as any other's
    shared = likes / np.sqrt(np.maximum(likes.sum(axis=1), 1.0))[:, None]
    natural, published = NaturalSlate(items, k, EPSILON), NaturalSlate.published(items, k, EPSILON)
    if route != NATURAL:
        drawn = natural.prepare(shared).release_many(SLATES).value
        yield way(NATURAL, Kind.PRIVATE, natural.guarantee.epsilon, drawn, "similarity is private, too")
    drawn = published.prepare(shared).release_many(SLATES).value
    proved = published.proved.epsilon
    yield way("published", Kind.PRIVATE, proved, drawn, f"the paper's bound for epsilon {EPSILON:g}; this is proved")
    noisy = LaplaceSum(items, LIKES_EACH, EPSILON)
    released = noisy.release(_some_likes(likes, rng)).value.to_floats()
    chosen = from_counts(released, features, k)
    yield way("counts", Kind.PRIVATE, noisy.guarantee.epsilon, chosen, "noisy counts, once; any number of slates")
    yield way(UNIFORM, Kind.NOTHING, 0.0, uniform, "no data at all")
    yield way(
        "greedy", Kind.PLAIN, float("inf"), from_counts(counts, features, k), "true counts, some given up to differ"
    )
    yield way(PLAIN, Kind.PLAIN, float("inf"), np.argsort(-counts, kind="stable")[:k], "by the true counts")


def _some_likes(likes: sparse.csr_array, rng: np.random.Generator) -> sparse.csr_array:
    """Of every user at most so many likes, chosen at random: a row that is cut as a whole would count each of them less."""
    order = np.lexsort((rng.random(likes.nnz), np.repeat(np.arange(likes.shape[0]), np.diff(likes.indptr))))
    rank = np.arange(likes.nnz) - np.repeat(likes.indptr[:-1], np.diff(likes.indptr))
    data = np.zeros(likes.nnz)
    data[order[rank < LIKES_EACH]] = 1.0
    return sparse.csr_array((data, likes.indices, likes.indptr), shape=likes.shape)


def _diversity(features: NDArray[np.float64]) -> float:
    """1 less the mean cosine of two rows; a row of zeros is unlike all."""
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    k = len(unit)
    return 1.0 if k < 2 else float(1.0 - (np.square(unit.sum(axis=0)).sum() - np.square(unit).sum()) / (k * (k - 1)))
