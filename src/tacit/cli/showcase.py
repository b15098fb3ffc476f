"""What `tacit demo` releases from a set of ratings: one question for each mechanism, with the truth beside it.

The truth is shown because the demo's data are public; a real party would never print it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidData
from tacit.guarantees import Guarantee, Release
from tacit.mechanisms import (
    ExponentialMechanism,
    GaussianSum,
    GumbelTopK,
    LaplaceNoisyMax,
    LaplaceSum,
    PermuteAndFlip,
    ProfileScores,
    RandomisedResponse,
    SparseVector,
    VectorLaplace,
    VoteTotals,
)

if TYPE_CHECKING:
    from tacit.data import Ratings

LIKED = 4.0  # stars from which a rating counts as a like
FEWEST = 4  # items that the questions need
POPULAR = 60  # likes that make an item popular: a public constant, like every bound below


@dataclass(frozen=True, slots=True)
class Shown:
    """One question, its private answer, and what the exact answer would have been."""

    question: str
    mechanism: str
    released: str
    truth: str
    guarantee: Guarantee


def curator_releases(ratings: "Ratings") -> Iterator[Shown]:
    """A trusted curator asks about all users: one user's rows are protected."""
    if ratings.n_items < FEWEST or ratings.n_users == 0:
        raise InvalidData(f"the demo needs at least {FEWEST} items and one user; this has fewer.")
    likes = ratings.csr().copy()
    likes.data = (likes.data >= LIKED).astype(np.float64)
    likes.eliminate_zeros()
    title = ratings.catalogue.title
    counts = VoteTotals().integers(likes)
    ranked = np.argsort(-counts, kind="stable")

    best = PermuteAndFlip(VoteTotals(), epsilon=0.5)
    chosen = best.release(likes)
    yield _shown("Which item do most users like?", best, chosen, title(chosen.value), title(int(ranked[0])))

    top = GumbelTopK(VoteTotals(), k=3, epsilon=1.0)
    three = top.release(likes)
    yield _shown("The three most liked?", top, three, _titles(ratings, three.value), _titles(ratings, ranked[:3]))

    shelf = np.arange(min(20, ratings.n_items))  # public: the first of the catalogue, whatever their likes
    sparse_vector = SparseVector(VoteTotals(), threshold=POPULAR, epsilon=1.0, hits=3)
    answers = sparse_vector.release(likes[:, shelf])
    found = [int(shelf[i]) for i, hit in enumerate(answers.value) if hit]
    truth = [int(item) for item in shelf if counts[item] >= POPULAR][:3]
    question = f"The first three of the first {len(shelf)} items of the catalogue with {POPULAR} likes or more?"
    yield _shown(question, sparse_vector, answers, _titles(ratings, found), _titles(ratings, truth))

    shares, names = _topic_shares(ratings)
    popularity = LaplaceSum(len(names), bound=1.0, epsilon=0.5)
    noisy = popularity.release(shares)
    yield _shown("How many users' worth of likes goes to each topic?", popularity, noisy, _largest(noisy.value.to_floats(), names),
                 _largest(shares.sum(axis=0), names))  # fmt: skip

    offsets = GaussianSum(len(names), bound=2.0, epsilon=1.0, delta=1e-6)
    centred = _topic_offsets(ratings)
    moments = offsets.release(centred)
    yield _shown("Which topics are rated above average, over all users?", offsets, moments,
                 _largest(moments.value.to_floats(), names), _largest(centred.sum(axis=0), names))  # fmt: skip


def device_releases(ratings: "Ratings") -> Iterator[Shown]:
    """Devices answer for themselves: each user's whole profile, or features by distance, are protected from everybody."""
    shares, names = _topic_shares(ratings)
    mine = int(np.argmax(ratings.counts))

    signal = VectorLaplace(len(names), scale=0.1)
    sent = signal.release(shares[mine])
    exact = shares[mine]
    yield _shown("One user's taste over the topics, as a noisy vector", signal, sent,
                 _largest(sent.value.to_floats(), names, 2), _largest(exact, names, 2))  # fmt: skip

    offered = slice(0, 4)  # the candidates are public, the scores are hers
    scores = exact[offered] / max(exact[offered].max(), 1e-9)
    best = names[int(scores.argmax())]
    question = f"Which of {', '.join(names[offered])} does she like best? Selected on the device"
    for mechanism in (
        ExponentialMechanism(ProfileScores(0.0, 1.0), epsilon=5.0),
        LaplaceNoisyMax(ProfileScores(0.0, 1.0), epsilon=5.0),
    ):
        choice = mechanism.release(scores)
        yield _shown(question, mechanism, choice, names[choice.value], best)
        question = "The same, by noisy max"

    favourites = shares.argmax(axis=1)
    response = RandomisedResponse(len(names), epsilon=2.0)
    reports = response.release_many(favourites)
    truthful = float(response.truth)
    lie = (1.0 - truthful) / (len(names) - 1)
    seen = np.bincount(reports.value, minlength=len(names))
    estimate = np.asarray((seen - ratings.n_users * lie) / (truthful - lie), dtype=np.float64)
    yield _shown("Everybody's favourite topic, each user answering for herself", response, reports, _largest(estimate, names),
                 _largest(np.bincount(favourites, minlength=len(names)).astype(np.float64), names))  # fmt: skip


def _shown(question: str, mechanism: Any, release: Release[Any], released: str, truth: str) -> Shown:
    return Shown(question, mechanism.name, released, truth, release.guarantee)


def _topics(ratings: "Ratings") -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """What tastes are about, as public flags of the items: genres, or the catalogue's first items where it has no genres."""
    catalogue = ratings.catalogue
    if catalogue.genres is not None:
        return catalogue.genres.astype(np.float64), catalogue.vocabulary
    first = min(20, len(catalogue))
    return np.eye(len(catalogue), first), tuple(catalogue.title(code) for code in range(first))


def _topic_shares(ratings: "Ratings") -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Each user's liked ratings by topic, as shares that add up to 1 (0 for a user without likes)."""
    flags, names = _topics(ratings)
    liked = ratings.csr().copy()
    liked.data = (liked.data >= LIKED).astype(np.float64)
    counts = liked @ flags
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)), names


def _topic_offsets(ratings: "Ratings") -> NDArray[np.float64]:
    """Each user's rating of a topic minus her own mean, averaged over the topic's items."""
    flags, _ = _topics(ratings)
    values = ratings.csr().astype(np.float64)
    means = values.sum(axis=1) / np.maximum(ratings.counts, 1)
    rated = values.copy()
    rated.data = np.ones_like(rated.data)
    seen = rated @ flags
    return np.asarray((values @ flags - seen * means[:, None]) / np.maximum(seen, 1.0))


def _titles(ratings: "Ratings", codes: Any) -> str:
    return ", ".join(ratings.catalogue.title(int(code)) for code in codes) or "none"


def _largest(values: NDArray[np.float64], names: tuple[str, ...], count: int = 3) -> str:
    order = np.argsort(-values, kind="stable")[:count]
    return ", ".join(
        f"{names[i]} {values[i]:.2f}" if abs(values[i]) < 10 else f"{names[i]} {values[i]:.0f}" for i in order
    )
