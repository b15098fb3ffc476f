"""Fitting a store: from ratings to what a server may hold, and what that promises to the people who gave the ratings.

`fit` does all of it. `factorise` fits item factors by alternating least squares; networks are trained in
`tacit.curator.training` and `tacit.curator.private_training`, which need the extra ``train``.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.checks import positive, whole
from tacit.curator import private_training, training
from tacit.curator.look_alikes import PrivateLookAlikes, of_ratings, wanted_users
from tacit.data.ratings import Ratings, generator
from tacit.errors import InvalidParameter, NoLookAlikes
from tacit.guarantees import Release
from tacit.ledger import PrivacyLedger
from tacit.messages.store import LookAlikes, Store
from tacit.models.features import FeatureSpace, FoldedTaste, GenreProfile, grouped_ridge
from tacit.models.items import Items
from tacit.models.scorers import BEST_RATING as TOP
from tacit.models.scorers import FactorScorer, Progress, Scorer, require_usable

Model: TypeAlias = Literal["network", "two-tower", "factors"]

RANK = 16  # factors of an item
ROUNDS = 15  # of alternating least squares
PENALTY, OFFSET_PENALTY = 1.2, 0.6  # times the root of the number of ratings (tacit.models.features)
LEAST = 20  # ratings of a look-alike
RATED_AT_ALL = "which items were rated at all is public: these ratings came without a list of items"
_INSIDE = 0.99  # share of the users that lie within the bounds, coordinate by coordinate
_LEAST_REACH = 1e-3  # of the widest axis: an axis that the ratings do not need must not be blown up to the same size


@dataclass(frozen=True, slots=True)
class PrivateTraining:
    """How to fit a network privately. `tacit.curator.private_training.train_privately` has the defaults for what is None."""

    epsilon: float  # nats
    delta: float  # a probability
    steps: int | None = None  # steps of the training
    rate: Fraction | float | None = None  # of the users in each step
    clip: float | None = None  # the longest gradient of one user that counts, as a norm
    rows_per_user: int | None = None
    learning_rate: float | None = None

    def settings(self) -> dict[str, Any]:
        """The parameters that were given, by name."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in named.items() if value is not None}


def fit(
    ratings: Ratings,
    *,
    model: Model = "network",
    look_alikes: NDArray[Any] | PrivateLookAlikes | LookAlikes | None = None,
    ledger: PrivacyLedger | None = None,
    subject: str = "users",
    least: int = LEAST,
    rows: int | None = None,
    epochs: int = 10,
    rank: int = RANK,
    private: PrivateTraining | None = None,
    name: str | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Store:
    """Catalogue, scorer and look-alikes in one store.

    The same ``rng`` gives the same store, except with private training, which draws new noise each time.

    - ``model``: "network" and "two-tower" learn from genres, "factors" from who rated what; ``rank`` is the number of factors.
    - ``look_alikes``: a table of features, one row each, or a mask of users. By default, all users with at least ``least``
      ratings, with likes and dislikes among them. `PrivateLookAlikes` releases prototypes of those users instead, and charges
      ``subject``, whom you enrol in ``ledger`` first. `LookAlikes` are prototypes that organisations released before.
    - ``rows``: train on this many random ratings, in ``epochs`` passes. Private training takes neither: it samples users.
    """
    if model not in get_args(Model):
        raise InvalidParameter(f"the model must be one of {', '.join(get_args(Model))}, not {model!r}.")
    _check_ratings(ratings, model)
    dimension = rank if model == "factors" else 2 * len(ratings.catalogue.vocabulary)
    if isinstance(look_alikes, PrivateLookAlikes) != (ledger is not None):
        raise InvalidParameter(
            "`ledger` and PrivateLookAlikes go together: private look-alikes are charged to `subject`, which you enrol in the "
            "ledger first; other look-alikes are not charged."
        )
    table, mask = _rows_or_mask(look_alikes, ratings, dimension)
    # Whether the store has look-alikes depends on what was asked for, not on how many users are left, which is private.
    nobody = (mask is not None and not mask.any()) or (table is not None and not len(table))
    _check_private(private, rows, model)
    least, rng = whole("least", least, least=1), generator(np.random.default_rng(1) if rng is None else rng)

    listed = listed_items(ratings)
    assumed: tuple[str, ...] = ()
    if private is None:
        if mask is not None:
            mask = mask[ratings.counts > 0]
        ratings = ratings.compact()
    else:  # which items were rated at all is private too, so the whole catalogue stays
        ratings, assumed = listed
    space: FeatureSpace
    fitted: Scorer | Release[Scorer]
    if model == "factors":
        chosen = _sample_rows(ratings, rows, rng)
        part = ratings if chosen is None else ratings.subset(chosen)
        space, fitted = factorise(part, rank=rank, rng=rng, progress=progress)
    else:
        space, fitted = _fit_network(ratings, model, rows, epochs, private, assumed, rng, progress)

    shown: NDArray[Any] | LookAlikes | None
    if isinstance(look_alikes, LookAlikes):
        shown = look_alikes
    elif isinstance(look_alikes, PrivateLookAlikes):
        shown = of_ratings(look_alikes, ratings, space, least, cast(PrivacyLedger, ledger), subject, listed)
    elif nobody:
        shown = None
    else:
        shown = _features_of_users(ratings, space, mask, least) if table is None else table
    items = Items(ratings.catalogue.ids, ratings.catalogue.titles)
    store = Store.of(items, space, fitted, shown, name=ratings.name if name is None else name)
    require_usable(store.scorer, store.look_alikes)
    return store


def listed_items(ratings: Ratings) -> tuple[Ratings, tuple[str, ...]]:
    """The ratings of items that a public list names, and what is assumed about the list.

    An unlisted item is known only because somebody rated it. Showing it would reveal that rating, so it is left out with its
    ratings. Where there is no list at all, every rated item stays, and the assumption says that these items are public.
    """
    known = ratings.catalogue.listed
    if known.all():
        return ratings, ()
    if not known.any():
        return ratings, (RATED_AT_ALL,)
    part = ratings.subset(known[ratings.items])
    codes = np.cumsum(known, dtype=np.int32) - np.int32(1)
    catalogue = ratings.catalogue.select(np.flatnonzero(known).astype(np.int32))
    return replace(part, items=codes[part.items], catalogue=catalogue), ()


class FactorModel(NamedTuple):
    """What `factorise` fits."""

    space: FoldedTaste
    scorer: FactorScorer


def factorise(
    ratings: Ratings,
    *,
    rank: int = RANK,
    rounds: int = ROUNDS,
    penalty: float = PENALTY,
    offset_penalty: float = OFFSET_PENALTY,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> FactorModel:
    """A scorer by factors and the feature space that goes with it, by alternating least squares.

    The model is rating = mean + generosity + offset + taste . factors. Both results are fitted without noise: they protect nobody.
    """
    whole("rounds", rounds, least=1)
    if not len(ratings):
        raise InvalidParameter("there are no ratings to fit factors to.")
    whole("rank", rank, least=1, most=min(ratings.n_users, ratings.n_items))
    penalties = np.array([positive("offset_penalty", offset_penalty), *[positive("penalty", penalty)] * rank])
    by_item = ratings.csr().tocsc()
    mean = float(ratings.values.mean(dtype=np.float64))
    factors = generator(rng).normal(scale=0.1, size=(ratings.n_items, rank))
    offsets = np.zeros(ratings.n_items)
    for done in range(rounds):
        # Users given items, then items given users; each side's own offset is one more coordinate, against a column of ones.
        users = grouped_ridge(
            ratings.starts, ratings.items, ratings.values - mean - offsets[ratings.items], _with_one(factors), penalties
        )
        targets = by_item.data - mean - users[by_item.indices, 0]
        items = grouped_ridge(by_item.indptr, by_item.indices, targets, _with_one(users[:, 1:]), penalties)
        offsets, factors = items[:, 0], items[:, 1:]
        if progress is not None:
            progress(done + 1, rounds)
    mean += float(users[:, 0].mean())  # the average user's generosity, so that a score is their rating
    space = _scale_axes(ratings, _rotate_axes(users[:, 1:], factors), offsets, mean, penalties)
    return FactorModel(space, FactorScorer(space.factors, space.offsets, space.mean))


def _with_one(table: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.column_stack([np.ones(len(table)), table])


def _rotate_axes(tastes: NDArray[np.float64], factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The factors on the axes of the singular vectors of tastes . factors^T, the strongest first.

    Least squares leave the axes open. Noise is drawn along each axis, so the axes should have as little as possible in common.
    """
    left, right = np.linalg.qr(tastes).R, np.linalg.qr(factors).R
    _, strength, axes = np.linalg.svd(left @ right.T)
    back = np.linalg.pinv(right)
    rotated: NDArray[np.float64] = factors @ back @ axes.T * np.sqrt(strength)
    return rotated


def _scale_axes(
    ratings: Ratings,
    factors: NDArray[np.float64],
    offsets: NDArray[np.float64],
    mean: float,
    penalties: NDArray[np.float64],
) -> FoldedTaste:
    """The space in which 99 of 100 users lie within [-1, 1] on each axis: the factors gain the scale that the tastes lose."""
    tastes = FoldedTaste(factors.astype(np.float32), offsets.astype(np.float32), mean, penalties.astype(np.float32))
    reach = np.quantile(np.abs(tastes.unclipped(ratings.starts, ratings.items, ratings.values)), _INSIDE, axis=0)
    reach = np.maximum(reach, _LEAST_REACH * reach.max()) if reach.max() > 0.0 else np.ones_like(reach)
    return FoldedTaste(
        (factors * reach).astype(np.float32),
        offsets.astype(np.float32),
        mean,
        np.concatenate([penalties[:1], penalties[1:] * reach**2]).astype(np.float32),  # p^2 = (reach t)^2
    )


def _fit_network(
    ratings: Ratings,
    model: str,
    rows: int | None,
    epochs: int,
    private: PrivateTraining | None,
    assumed: tuple[str, ...],
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[FeatureSpace, Scorer | Release[Scorer]]:
    space = GenreProfile(cast(NDArray[np.bool_], ratings.catalogue.genres))
    features = space.of_many(ratings.starts, ratings.items, ratings.values).astype(np.float32)
    if private is not None:
        by_user = training.RowsByUser(ratings.starts, ratings.items, ratings.values)
        release = private_training.train_privately(
            features, space.flags, by_user, kind=model, rng=rng, progress=progress, **private.settings()
        )
        return space, release.assuming(*assumed)
    chosen = _sample_rows(ratings, rows, rng)
    examples = training.Rows(ratings.users, ratings.items, ratings.values)
    if chosen is not None:
        examples = training.Rows(examples.users[chosen], examples.items[chosen], examples.values[chosen])
    # The callback does not get the training error: it would reveal something about ratings, and nobody has paid for that.
    steps_only = None if progress is None else lambda done, total, _: progress(done, total)
    network = training.train_network(
        features, space.flags, examples, kind=model, epochs=epochs, rng=rng, progress=steps_only
    )
    return space, network


def _sample_rows(ratings: Ratings, rows: int | None, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """A mask of ``rows`` random ratings; None for all of them, which need no copy."""
    if rows is None or whole("rows", rows, least=1) >= len(ratings):
        return None
    mask = np.zeros(len(ratings), dtype=np.bool_)
    mask[rng.choice(len(ratings), rows, replace=False, shuffle=False)] = True
    return mask


def _features_of_users(
    ratings: Ratings, space: FeatureSpace, mask: NDArray[np.bool_] | None, least: int
) -> NDArray[np.float64]:
    features = space.of_many(ratings.starts, ratings.items, ratings.values)
    if mask is not None:
        return features[mask]
    wanted = wanted_users(ratings, space, features, least)
    if not wanted.any():
        raise NoLookAlikes(
            f"no user of {ratings.name!r} has at least {least} ratings with likes and dislikes among them: lower `least`, or give "
            "`look_alikes`."
        )
    return features[wanted]


def _rows_or_mask(
    look_alikes: NDArray[Any] | PrivateLookAlikes | LookAlikes | None, ratings: Ratings, dimension: int
) -> tuple[NDArray[Any] | None, NDArray[np.bool_] | None]:
    """The table of features or the mask of users that a caller of `fit` gave; neither for the default and for a release to come."""
    chosen: Any = look_alikes.rows if isinstance(look_alikes, LookAlikes) else look_alikes
    if chosen is None or isinstance(chosen, PrivateLookAlikes):
        return None, None
    if isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_ and chosen.shape == (ratings.n_users,):
        return None, chosen
    if isinstance(chosen, np.ndarray) and chosen.dtype.kind in "fiu" and chosen.shape[1:] == (dimension,):
        return chosen, None
    raise InvalidParameter(
        f"look_alikes must be a table of {dimension} features each, or {ratings.n_users:,} true-or-false values, one for each user."
    )


def _check_ratings(ratings: Ratings, model: str) -> None:
    if not isinstance(ratings, Ratings):
        raise InvalidParameter(
            f"a store is fitted to Ratings, not to {type(ratings).__name__}: fit(tacit.data.load('movielens-small'))."
        )
    if not len(ratings):
        raise InvalidParameter(f"{ratings.name!r} has no ratings to fit a model to.")
    if not 0.0 <= ratings.scale.low < ratings.scale.high <= TOP:
        raise InvalidParameter(
            f"the ratings of {ratings.name!r} are {ratings.scale}; models need a scale within 0 to {TOP:g}: rescale them first."
        )
    if model != "factors" and ratings.catalogue.genres is None:
        raise InvalidParameter(
            f"{ratings.name!r} has no genres, and the model {model!r} learns from genres. Choose the model 'factors', or data with "
            "genres: movielens-small, ml-100k, ml-1m, ml-latest-small, ml-25m, synthetic."
        )


def _check_private(private: PrivateTraining | None, rows: int | None, model: str) -> None:
    if private is not None and not isinstance(private, PrivateTraining):
        raise InvalidParameter("private must be PrivateTraining(epsilon=..., delta=...), from tacit.curator.")
    if private is not None and model == "factors":
        raise InvalidParameter(
            "factors are fitted without noise: for private training choose the model network or two-tower."
        )
    if private is not None and rows is not None:
        raise InvalidParameter("private training draws users, not rows: leave `rows` out.")
