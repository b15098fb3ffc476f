"""Cross-domain, shown: items cut in two by genre, a model released twice by a curator of both, one user who is served by it, and
what it is worth beside methods that see all ratings, or nobody's."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.curator import Curator
from tacit.data import Ratings, TwoDomains
from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.moments import order_of_magnitude
from tacit.evaluation.cross_domain.plain import plain
from tacit.evaluation.cross_domain.splits import LEAST, Held, hidden
from tacit.evaluation.cross_domain.worlds import by_genre
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import (
    GAIN,
    Demonstration,
    Figure,
    Kind,
    Skipped,
    Status,
    Way,
    unheard,
)
from tacit.evaluation.statistics import difference, mean
from tacit.ledger import Budget, Statement
from tacit.ledger.budgets import cost_to_json
from tacit.messages.cross_domain import TransferModel
from tacit.models.cross_domain.alter_egos import row_means

SYSTEM = "cross-domain"
EPSILONS, DELTA = (2.0, 8.0), 1e-6
K = 5
ERROR = "error"
OWN_MEAN, MOMENTS = "own mean", "moments"
PLAINLY = {  # name, remark
    names.ITEM_AVERAGE: ("item average", "exact means of the target"),
    names.USER_MEAN_SOURCE: ("offsets", "user mean and item offset"),
    names.NX_SOURCE: ("NX-Map", "the paper's, without privacy"),
}
SEED = 15  # of who is asked


class _World(NamedTuple):
    """What the curator has, what was taken out of it (all that the asked users rated in the target), and what they have."""

    known: TwoDomains
    held: Held
    own: sparse.csr_array  # ratings of the asked users in the source, one row for each


def demonstrate(ratings: Ratings, *, status: Status = unheard) -> Demonstration | Skipped:
    """Two releases of one curator, and how the predictions of the asked users turn out."""
    world = _divided(ratings)
    if world is None:
        return Skipped(
            SYSTEM,
            f"it needs ten users or more with {LEAST} ratings in each half of the items, on a scale with two ends.",
        )
    known, held, own = world
    users = order_of_magnitude(known.n_users)
    budget = Budget(epsilon=sum(EPSILONS), delta=len(EPSILONS) * DELTA)
    status("a curator of two domains releases a model, twice")
    with (
        TemporaryDirectory() as folder,
        Curator(
            known, ledger=Path(folder) / "c.db", budget=budget, accounting="basic", public_catalogue=True
        ) as curator,
    ):
        models = {epsilon: curator.release(epsilon, DELTA, users=users) for epsilon in EPSILONS}
        account = curator.statement()
    status(f"{held.asked.size} users predict at home")
    ways = tuple(_ways(held, own, models))
    last = models[EPSILONS[-1]]
    profile, title = _profile(own, 0, last), _titles(known)
    liked = [title[item] for item in sorted(profile, key=lambda item: -profile[item])[:K]]
    served = [title[item] for item in last.recommend(profile, K)]
    size = len(json.dumps(last.to_json()))
    said = (
        ("the domains", f"{len(last.source):,} items are the source, {len(last.target):,} others the target"),
        ("who is asked", f"{held.asked.size:,} users, of whom the curator has no rating in the target"),
        *((f"at epsilon {epsilon:g}", model.remark) for epsilon, model in models.items()),
        ("a served user", f"rated {'; '.join(liked)}"),
        ("is shown", f"{'; '.join(served)} (worked out on her own side)"),
    )
    released = {
        "guarantees": [model.guarantee.to_json() for model in models.values()],
        "remarks": [model.remark for model in models.values()], "source": len(last.source), "target": len(last.target),
        "bytes": size,
    }  # fmt: skip
    best = min((way for way in ways if way.kind is Kind.PLAIN), key=lambda way: way.figures[ERROR].value)
    nothing = next(way for way in ways if way.method == OWN_MEAN)
    private = next(way for way in ways if way.method == MOMENTS and way.epsilon == EPSILONS[-1])
    return Demonstration(
        SYSTEM, "Tastes known in one domain serve in another, and hardly tell whose they are.", said,
        last.guarantee, _left(last, size, account), "every rating; and what a served user rated and is shown",
        str(account).splitlines()[0], ERROR, "stars, mean absolute", Better.LOWER,
        ways, private, best, nothing, verdict(ways, known.n_users), released,
    )  # fmt: skip


def verdict(ways: Iterable[Way], users: int) -> str:
    """What the table says, in words, whatever it says: two standard errors are asked for."""
    ways = list(ways)
    private = [way for way in ways if way.method == MOMENTS]
    worth = [way for way in private if way.gain.is_shown]
    if not worth:
        return (
            f"With {users:,} users nothing is predicted better than by a user's own mean, which costs nobody anything: at these "
            "epsilons the release is not worth its budget."
        )
    best = min(way.figures[ERROR].value for way in ways if way.kind is Kind.PLAIN)
    last = min(worth, key=lambda way: way.figures[ERROR].value)
    more = last.figures[ERROR].value - best
    text = f"Better than a user's own mean at epsilon {' and '.join(f'{way.epsilon:g}' for way in worth)}"
    chance = [f"{way.epsilon:g}" for way in private if way not in worth]
    text += f"; at {' and '.join(chance)} not by more than chance" if chance else ""
    beside = "no worse than" if more <= 0.0 else f"{more:.3f} stars worse than"
    return f"{text}. At {last.epsilon:g} it is {beside} the best of what promises nothing."


def _left(last: TransferModel, size: int, account: Statement) -> str:
    """The model that is set beside others, and what all that left was charged: a model for each epsilon did."""
    text = f"a model of {len(last.source) + len(last.target):,} items, {size / 1e3:,.0f} kB"
    if beside := " and ".join(f"{epsilon:g}" for epsilon in EPSILONS[:-1]):
        charged = cost_to_json(account.spent, account.terms)["epsilon"]
        text += f"; with the one at epsilon {beside} shown beside it {charged} epsilon were charged"
    return text


def _divided(ratings: Ratings) -> _World | None:
    if ratings.n_items < 2 or not np.isfinite(ratings.scale.high):
        return None
    has_genres = ratings.catalogue.genres is not None and ratings.catalogue.ids.dtype.kind in "iu"
    two = by_genre(ratings) if has_genres else TwoDomains.by_items(ratings, np.arange(ratings.n_items) % 2 == 0)
    if not (two.source.n_items and two.target.n_items):
        return None
    try:
        held = hidden(two, ratings.name, rng=np.random.default_rng(SEED))
    except InvalidParameter:  # too few users rated five items in each half
        return None
    lost = np.isin(two.target.users, held.asked)
    return _World(TwoDomains(two.source, two.target.subset(~lost)), held, held.source)


def _ways(held: Held, own: sparse.csr_array, models: Mapping[float, TransferModel]) -> Iterator[Way]:
    users, items = held.cells
    bare = np.abs(row_means(own, 0.0)[users] - held.hidden.data)

    def way(method: str, kind: Kind, epsilon: float, errors: NDArray[np.float64], remark: str) -> Way:
        figures = {ERROR: Figure.of(mean(errors, users))}
        if kind is not Kind.NOTHING:
            figures[GAIN] = Figure.of(difference(bare, errors, users))
        return Way(method, kind, epsilon, figures, remark)

    for epsilon, model in models.items():
        remark = "no shared direction: averages only"
        if model.crossing:
            remark = f"directions: {model.directions}, in both: {model.crossing}"
        yield way(MOMENTS, Kind.PRIVATE, epsilon, _errors(held, own, model), remark)
    yield way(OWN_MEAN, Kind.NOTHING, 0.0, bare, "nobody else's data")
    for method, scores in plain(Known(held, listed=0), rng=np.random.default_rng(SEED), methods=tuple(PLAINLY)):
        name, remark = PLAINLY[method]
        yield way(name, Kind.PLAIN, float("inf"), np.abs(scores[users, items] - held.hidden.data), remark)


def _errors(held: Held, own: sparse.csr_array, model: TransferModel) -> NDArray[np.float64]:
    """By every asked user for herself: from the released model and her own ratings."""
    found = []
    for place, (start, end) in enumerate(zip(held.hidden.indptr[:-1], held.hidden.indptr[1:], strict=True)):
        wanted = [model.target[item] for item in held.hidden.indices[start:end].tolist()]
        predicted = model.predict(_profile(own, place, model), wanted)
        found.append(np.abs(np.array(list(predicted.values())) - held.hidden.data[start:end]))
    return np.concatenate(found)


def _profile(own: sparse.csr_array, place: int, model: TransferModel) -> dict[Any, float]:
    """What an asked user rated in the source, by the ids of the model."""
    start, end = own.indptr[place : place + 2]
    rated, values = own.indices[start:end].tolist(), own.data[start:end].tolist()
    return {model.source[item]: value for item, value in zip(rated, values, strict=True)}


def _titles(domains: TwoDomains) -> dict[Any, str]:
    catalogues = (domains.source.catalogue, domains.target.catalogue)
    return {item: part.title(code) for part in catalogues for code, item in enumerate(part.ids.tolist())}
