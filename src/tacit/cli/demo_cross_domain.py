"""The part of ``tacit demo`` that shows cross-domain: films cut in two by genre, a model released twice by a curator of both,
one user who is served by it, and what it is worth beside methods that see all ratings, or nobody's."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from rich.console import Console

    from tacit.data import Ratings, TwoDomains
    from tacit.evaluation.cross_domain.splits import Held
    from tacit.guarantees import Guarantee
    from tacit.messages.cross_domain import TransferModel

EPSILONS, DELTA = (2.0, 8.0), 1e-6
SEED = 15  # of who is asked
K = 5
OWN_MEAN, MOMENTS = "own mean", "moments"
_EXACT = 1e-12  # a mean of ratings is no nearer to its true value


class Way(NamedTuple):
    """Mean absolute errors on hidden ratings. A real curator would not print them: they follow from ratings without noise."""

    method: str
    epsilon: float
    error: float
    gain: float  # how far it is below the error of a user's own mean, user by user
    gain_error: float
    remark: str


class Shown(NamedTuple):
    source: int
    target: int
    users: int
    asked: int
    remarks: list[str]
    guarantees: "list[Guarantee]"
    statement: str
    liked: list[str]
    served: list[str]
    ways: list[Way]
    verdict: str


class _World(NamedTuple):
    """What the curator has, what was taken out of it (all that the asked users rated in the target), and what they have."""

    known: "TwoDomains"
    held: "Held"
    own: Any  # ratings of the asked users in the source, one row for each


def show(ratings: "Ratings", console: "Console") -> Shown | None:
    """Two releases of one curator, and how the predictions of the asked users turn out. None where too few rated both halves."""
    from rich.markup import escape

    from tacit.curator import Curator
    from tacit.evaluation.cross_domain.moments import order_of_magnitude
    from tacit.ledger import Budget

    world = _divided(ratings)
    if world is None:
        return None
    known, held, own = world
    users = order_of_magnitude(known.n_users)
    budget = Budget(epsilon=sum(EPSILONS), delta=len(EPSILONS) * DELTA)
    with TemporaryDirectory() as folder, console.status("A curator of two domains releases a model ..."):
        place = Path(folder) / "curator.db"
        with Curator(known, ledger=place, budget=budget, accounting="basic", public_catalogue=True) as curator:
            models = {epsilon: curator.release(epsilon, DELTA, users=users) for epsilon in EPSILONS}
            statement = str(curator.statement()).splitlines()[0]
        ways = list(_ways(held, own, models))
    last = models[EPSILONS[-1]]
    profile, title = _profile(own, 0, last), _titles(known)
    liked = [title[item] for item in sorted(profile, key=lambda item: -profile[item])[:K]]
    served = [title[item] for item in last.recommend(profile, K)]
    remarks = [f"epsilon {epsilon:g}: {model.remark}" for epsilon, model in models.items()]
    for what, text in (
        ("the domains", f"{len(last.source):,} items are the source, {len(last.target):,} others the target"),
        ("who is asked", f"{held.asked.size:,} users, of whom the curator has no rating in the target"),
        ("the release", " ".join(remarks)),
        ("a served user", f"rated {'; '.join(liked)}"),
        ("is shown", "; ".join(served) + " (computed on her own side)"),
        ("the ledger", statement),
        ("the guarantee", str(models[EPSILONS[0]].guarantee)),
    ):
        console.print(f"   [bold]{what:<20}[/bold] {escape(text)}", soft_wrap=True)
    guarantees = [model.guarantee for model in models.values()]
    sizes = len(last.source), len(last.target), known.n_users, int(held.asked.size)
    return Shown(*sizes, remarks, guarantees, statement, liked, served, ways, verdict(ways, known.n_users))


def verdict(ways: list[Way], users: int) -> str:
    """What the table says, in words, whatever it says: two standard errors are asked for."""
    private = [way for way in ways if way.method == MOMENTS]
    worth = [way for way in private if way.gain > 2.0 * way.gain_error and way.gain > _EXACT]
    if not worth:
        return (
            f"With {users:,} users nothing is predicted better than by a user's own mean, which costs nobody anything: at these "
            "epsilons the release is not worth its budget."
        )
    best = min((way for way in ways if way.epsilon == float("inf")), key=lambda way: way.error)
    last = min(worth, key=lambda way: way.error)
    beside = "is level with it or better" if last.error <= best.error else f"errs by {last.error - best.error:.3f} more"
    text = f"Better than a user's own mean at epsilon {' and '.join(f'{way.epsilon:g}' for way in worth)}"
    chance = [f"{way.epsilon:g}" for way in private if way not in worth]
    text += f"; at {' and '.join(chance)} not by more than chance" if chance else ""
    return (
        f"{text}. The best of what promises nothing, {best.method}, errs by {best.error:.3f}; the release at epsilon "
        f"{last.epsilon:g} {beside}. What counts is how many users there are for the noise: {users:,} are few."
    )


def _divided(ratings: "Ratings") -> _World | None:
    from tacit.data import TwoDomains
    from tacit.errors import InvalidParameter
    from tacit.evaluation.cross_domain.splits import hidden
    from tacit.evaluation.cross_domain.worlds import by_genre

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


def _ways(held: "Held", own: Any, models: "Mapping[float, TransferModel]") -> "Iterator[Way]":
    from tacit.evaluation.cross_domain import names
    from tacit.evaluation.cross_domain.known import Known
    from tacit.evaluation.cross_domain.plain import plain
    from tacit.evaluation.statistics import difference
    from tacit.models.cross_domain.averages import row_means

    users, items = held.cells
    bare = np.abs(row_means(own, 0.0)[users] - held.hidden.data)

    def way(method: str, epsilon: float, errors: "NDArray[np.float64]", remark: str) -> Way:
        gain = difference(bare, errors, users)
        return Way(method, epsilon, float(errors.mean()), gain.value, gain.stderr, remark)

    yield way(OWN_MEAN, 0.0, bare, "the mean of the user's ratings in the source; nobody else's data")
    for epsilon, model in models.items():
        remark = (
            f"directions above the noise: {model.directions}, {model.crossing} of them in both domains"
            if model.crossing
            else "no direction in both domains: averages only"
        )
        yield way(MOMENTS, epsilon, _errors(held, own, model), remark)
    plainly = {
        names.ITEM_AVERAGE: ("item average", "not private: exact means of the target"),
        names.USER_MEAN_SOURCE: ("user mean + item offset", "not private: the same, moved by how high the user rates"),
        names.NX_SOURCE: ("NX-Map", "not private: the paper's mapping on top of these"),
    }
    known = Known(held, listed=0)
    for method, scores in plain(known, rng=np.random.default_rng(SEED), methods=tuple(plainly)):
        name, remark = plainly[method]
        yield way(name, float("inf"), np.abs(scores[users, items] - held.hidden.data), remark)


def _errors(held: "Held", own: Any, model: "TransferModel") -> "NDArray[np.float64]":
    """By every asked user for herself: from the released model and her own ratings."""
    found = []
    for place, (start, end) in enumerate(zip(held.hidden.indptr[:-1], held.hidden.indptr[1:], strict=True)):
        wanted = [model.target[item] for item in held.hidden.indices[start:end].tolist()]
        predicted = model.predict(_profile(own, place, model), wanted)
        found.append(np.abs(np.array(list(predicted.values())) - held.hidden.data[start:end]))
    return np.concatenate(found)


def _profile(own: Any, place: int, model: "TransferModel") -> dict[Any, float]:
    """What an asked user rated in the source, by the ids of the model."""
    start, end = own.indptr[place : place + 2]
    rated, values = own.indices[start:end].tolist(), own.data[start:end].tolist()
    return {model.source[item]: value for item, value in zip(rated, values, strict=True)}


def _titles(domains: "TwoDomains") -> dict[Any, str]:
    catalogues = (domains.source.catalogue, domains.target.catalogue)
    return {item: part.title(code) for part in catalogues for code, item in enumerate(part.ids.tolist())}
