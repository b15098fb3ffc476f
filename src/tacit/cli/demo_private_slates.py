"""The part of ``tacit demo`` that shows private slates: a curator draws one and says why so; and other routes beside it."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from rich.console import Console

    from tacit.curator import Curator
    from tacit.data import Ratings

K, EPSILON, SLATES = 10, 1.0, 20
LIKED = 4.0  # stars from which a rating counts as a like
LIKES_EACH = 20  # of a user's likes in noisy counts
MOST_LIKES = 400.0  # beyond so many, more make no difference: a public constant


class Way(NamedTuple):
    """How slates by one route turn out, on average. A real curator would not print it: it follows from the true likes."""

    route: str
    epsilon: float
    popularity: float  # likes of the slate, by those of the most liked items
    diversity: float | None  # 1 - mean cosine of two items' genres
    remark: str


class Shown(NamedTuple):
    route: str
    why: str
    slate: dict[str, Any]
    titles: list[str]
    ways: list[Way]


def show(ratings: "Ratings", console: "Console") -> Shown | None:
    """One slate by the route that the curator chooses; then some slates by each of the others. None where there is no choice."""
    from rich.markup import escape

    from tacit.curator import Curator
    from tacit.ledger import Budget

    with TemporaryDirectory() as folder, console.status("A curator draws a slate ..."):
        curator = Curator(ratings, ledger=Path(folder) / "curator.db", budget=Budget(epsilon=EPSILON), like=LIKED)
        k = min(K, len(curator.items) - 1)
        if k < 1:
            curator.close()
            return None
        with curator:
            made = curator.plan(k, EPSILON)
            slate = curator.slate(k, EPSILON)
            titles = list(curator.titles(slate))
            ways = list(_ways(ratings, curator, k))
    for what, text in (
        ("the route", f"{made.route}: {made.why}"),
        ("the slate", "; ".join(titles)),
        ("its guarantee", str(slate.guarantee)),
    ):
        console.print(f"   [bold]{what:<20}[/bold] {escape(text)}", soft_wrap=True)
    return Shown(str(made.route), made.why, slate.to_json(), titles, ways)


def _ways(ratings: "Ratings", curator: "Curator", k: int) -> "Iterator[Way]":
    """Slates of the listed items, drawn anew for the comparison."""
    from scipy import sparse

    from tacit.mechanisms import LaplaceSum, NaturalSlate, TemperedSlate
    from tacit.models.released_slates import from_counts

    place = {item: code for code, item in enumerate(ratings.catalogue.ids.tolist())}
    codes = np.array([place[item] for item in curator.items.tolist()])
    likes = sparse.csr_array(ratings.csr()[:, codes])
    likes.data = (likes.data >= LIKED).astype(np.float64)
    likes.eliminate_zeros()
    counts, features, items = np.asarray(likes.sum(axis=0), dtype=np.float64), curator.features, len(codes)
    best = max(1.0, float(np.sort(counts)[-k:].sum()))
    rng = np.random.default_rng(11)  # for slates without data, and for which likes of a user count

    def way(route: str, epsilon: float, slates: "NDArray[np.int64]", remark: str) -> Way:
        drawn = np.atleast_2d(slates)
        popularity = float(counts[drawn].sum(axis=1).mean()) / best
        apart = None if features is None else float(np.mean([_diversity(features[slate]) for slate in drawn]))
        return Way(route, epsilon, popularity, apart, remark)

    yield way("uniform", 0.0, np.stack([rng.choice(items, k, replace=False) for _ in range(SLATES)]), "no data at all")
    natural, published = NaturalSlate(items, k, EPSILON), NaturalSlate.published(items, k, EPSILON)
    shared = likes / np.sqrt(np.maximum(likes.sum(axis=1), 1.0))[:, None]  # a user's row is as long as any other's
    drawn = natural.prepare(shared).release_many(SLATES).value
    yield way("natural", natural.guarantee.epsilon, drawn, f"similarity is private, too; sigma = {natural.sigma:.3g}")
    drawn = published.prepare(shared).release_many(SLATES).value
    proved = published.proved.epsilon
    yield way(
        "published",
        proved,
        drawn,
        f"the paper's bound at epsilon {EPSILON:g}: sigma = {published.sigma:.3g}; this is proved",
    )
    if features is not None and curator.plan(k, EPSILON).route == "tempered":
        tempered = TemperedSlate.capped(features, k, EPSILON, high=MOST_LIKES)
        drawn = tempered.prepare(likes).release_many(SLATES).value
        yield way(
            "tempered", tempered.guarantee.epsilon, drawn, f"genres are public; a like counts {tempered.theta:.3g} nats"
        )
    noisy = LaplaceSum(items, LIKES_EACH, EPSILON)
    released = noisy.release(_some_likes(likes, rng)).value.to_floats()
    chosen = from_counts(released, features, k)
    yield way("counts", noisy.guarantee.epsilon, chosen, "greedy, from counts released once: any number of slates")
    yield way("not private", float("inf"), from_counts(counts, features, k), "greedy, from the true counts")


def _some_likes(likes: Any, rng: np.random.Generator) -> Any:
    """Of every user at most so many likes, chosen at random: a row that is cut as a whole would count each of them less."""
    from scipy import sparse

    order = np.lexsort((rng.random(likes.nnz), np.repeat(np.arange(likes.shape[0]), np.diff(likes.indptr))))
    rank = np.arange(likes.nnz) - np.repeat(likes.indptr[:-1], np.diff(likes.indptr))
    data = np.zeros(likes.nnz)
    data[order[rank < LIKES_EACH]] = 1.0
    return sparse.csr_array((data, likes.indices, likes.indptr), shape=likes.shape)


def _diversity(features: "NDArray[np.float64]") -> float:
    """1 less the mean cosine of two rows; a row of zeros is unlike all."""
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    k = len(unit)
    return 1.0 if k < 2 else float(1.0 - (np.square(unit.sum(axis=0)).sum() - np.square(unit).sum()) / (k * (k - 1)))
