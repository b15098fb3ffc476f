"""Fitting a store: from ratings to what a server may hold, and what that promises to those who gave the ratings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tacit.checks import whole
from tacit.curator.factorise import RANK, factorise
from tacit.curator.look_alikes import PrivateLookAlikes, of_ratings, wanted_users
from tacit.data.draw import generator
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter, NoLookAlikes
from tacit.guarantees import ONE_USER, Guarantee, nothing, pure
from tacit.ledger import PrivacyLedger
from tacit.messages.look_alikes import LookAlikes
from tacit.messages.store import Store
from tacit.models.features import FeatureSpace, GenreProfile
from tacit.models.items import Items
from tacit.models.rating_network import TOP
from tacit.models.scorer import Progress, Scorer, require_usable

Model: TypeAlias = Literal["network", "two-tower", "factors"]
Fitted: TypeAlias = tuple[FeatureSpace, Scorer, Guarantee]

LEAST = 20  # ratings of a look-alike
WITHOUT_NOISE = nothing(
    ONE_USER, "the model was fitted without noise: its training ratings must be public or consented"
)
RATED_AT_ALL = "which items were rated at all is public: these ratings came without a list of items"
REAL_USERS = nothing(ONE_USER, "look-alikes are features of real users, taken as public")
NOBODY = pure(0.0, ONE_USER)


@dataclass(frozen=True, slots=True)
class PrivateTraining:
    """How to fit a network privately; what is None is left to `tacit.curator.training.train_privately`."""

    epsilon: float  # nats
    delta: float  # a probability
    steps: int | None = None  # steps of the training
    rate: Fraction | float | None = None  # of the users in each step
    clip: float | None = None  # the longest gradient of one user that counts, as a norm
    rows_per_user: int | None = None
    learning_rate: float | None = None

    def settings(self) -> dict[str, Any]:
        """The parameters that were given, by name: what the training is told."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in named.items() if value is not None}


def fit(
    ratings: Ratings,
    *,
    model: Model = "network",
    look_alikes: NDArray[Any] | PrivateLookAlikes | LookAlikes | None = None,
    look_alikes_guarantee: Guarantee | None = None,
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
    """Catalogue, scorer and look-alikes in one store. Equal ``rng``, equal store; private training is drawn anew each time.

    ``model``: "network" and "two-tower" learn from genres, "factors" from who rated what; ``rank`` is of the factors.
    ``look_alikes``: features, one row each, or a mask of users; by default all users with at least ``least`` ratings, likes and
    dislikes among them. Say in ``look_alikes_guarantee`` what protects them, if something does; where none are asked for, nothing
    has to. `PrivateLookAlikes` releases prototypes of those users instead, charged to ``subject``, who is enrolled in ``ledger``;
    `LookAlikes` were released before, by organisations of their own.
    ``rows``: train on so many random ratings; ``epochs`` passes over them. With ``private`` neither applies: it draws users.
    """
    if model not in get_args(Model):
        raise InvalidParameter(f"the model must be one of {', '.join(get_args(Model))}, not {model!r}.")
    _check_ratings(ratings, model)
    wished = look_alikes if isinstance(look_alikes, PrivateLookAlikes | LookAlikes) else None
    _check_released(wished, look_alikes_guarantee, ledger)
    if isinstance(wished, LookAlikes):
        look_alikes, look_alikes_guarantee = wished.rows, wished.guarantee
    elif wished is not None:
        look_alikes = None
    mask = _mask(look_alikes, ratings, rank if model == "factors" else 2 * len(ratings.catalogue.vocabulary))
    if look_alikes_guarantee is None:
        asked = look_alikes is None or (len(np.asarray(look_alikes)) if mask is None else mask.any())
        look_alikes_guarantee = REAL_USERS if asked else NOBODY  # by what was asked for: who is left is private
    elif not look_alikes_guarantee.promises_nothing and (look_alikes is None or mask is not None):
        raise InvalidParameter(
            "features of these very users, as they are, protect nobody: a guarantee belongs to `look_alikes` that were released "
            "under it, given as a table of features."
        )
    if private is not None and not isinstance(private, PrivateTraining):
        raise InvalidParameter("private must be PrivateTraining(epsilon=..., delta=...), from tacit.curator.")
    least, rng = whole("least", least, least=1), generator(np.random.default_rng(1) if rng is None else rng)
    if private is not None and (rows is not None or model == "factors"):
        raise InvalidParameter(
            "private training draws users, not rows: leave `rows` out, and choose the model network or two-tower."
        )
    listed = listed_items(ratings)
    if private is None:  # which items were rated at all is private too: then the whole catalogue stays
        if mask is not None:
            mask = mask[ratings.counts > 0]
        ratings = ratings.compact()
    else:
        ratings, assumed = listed
    if model == "factors":
        fitted = _factors(ratings, rows, rank, rng, progress)
    else:
        fitted = _network(ratings, model, rows, epochs, private, rng, progress)
    space, scorer, guarantee = fitted
    guarantee = guarantee if private is None else guarantee.assuming(*assumed)
    if isinstance(wished, PrivateLookAlikes):
        wished = of_ratings(wished, ratings, space, least, cast(PrivacyLedger, ledger), subject, listed)
        look_alikes, look_alikes_guarantee = wished.rows, wished.guarantee
    elif look_alikes is None or mask is not None:
        look_alikes = _features_of_users(ratings, space, mask, least)
    store = Store(
        items=Items(ratings.catalogue.ids, ratings.catalogue.titles),
        space=space,
        scorer=scorer,
        look_alikes=np.asarray(look_alikes, dtype=np.float32),
        model_guarantee=guarantee,
        look_alikes_guarantee=look_alikes_guarantee,
        name=ratings.name if name is None else name,
        look_alike_sizes=None if wished is None else wished.sizes,
    )
    require_usable(store.scorer, store.look_alikes)
    return store


def listed_items(ratings: Ratings) -> tuple[Ratings, tuple[str, ...]]:
    """The ratings of items that a list names, and what is assumed. An item that is known only because somebody rated it would tell
    that somebody did: it is left out, with its ratings. Where there is no list at all, that is an assumption, and said."""
    known = ratings.catalogue.listed
    if known.all():
        return ratings, ()
    if not known.any():
        return ratings, (RATED_AT_ALL,)
    part = ratings.subset(known[ratings.items])
    places = np.cumsum(known, dtype=np.int32) - np.int32(1)
    catalogue = ratings.catalogue.select(np.flatnonzero(known).astype(np.int32))
    return replace(part, items=places[part.items], catalogue=catalogue), ()


def _network(
    ratings: Ratings,
    model: str,
    rows: int | None,
    epochs: int,
    private: PrivateTraining | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Fitted:
    from tacit.curator.training import Rows, RowsByUser, train_network

    space = GenreProfile(cast(NDArray[np.bool_], ratings.catalogue.genres))
    flags = space.flags
    features = space.of_many(ratings.starts, ratings.items, ratings.values).astype(np.float32)
    if private is not None:
        from tacit.curator.training import train_privately

        by_user = RowsByUser(ratings.starts, ratings.items, ratings.values)
        network, guarantee = train_privately(
            features, flags, by_user, kind=model, rng=rng, progress=progress, **private.settings()
        )
        return space, network, guarantee
    chosen = _drawn(ratings, rows, rng)
    examples = Rows(ratings.users, ratings.items, ratings.values)
    if chosen is not None:
        examples = Rows(examples.users[chosen], examples.items[chosen], examples.values[chosen])
    network = train_network(features, flags, examples, kind=model, epochs=epochs, rng=rng, progress=_two(progress))
    return space, network, WITHOUT_NOISE


def _factors(
    ratings: Ratings, rows: int | None, rank: int, rng: np.random.Generator, progress: Progress | None
) -> Fitted:
    chosen = _drawn(ratings, rows, rng)
    part = ratings if chosen is None else ratings.subset(chosen)
    space, scorer = factorise(part, rank=rank, rng=rng, progress=progress)
    return space, scorer, WITHOUT_NOISE


def _drawn(ratings: Ratings, rows: int | None, rng: np.random.Generator) -> NDArray[np.bool_] | None:
    """A mask of ``rows`` random ratings; None for all of them, which need no copy."""
    if rows is None or whole("rows", rows, least=1) >= len(ratings):
        return None
    mask = np.zeros(len(ratings), dtype=np.bool_)
    mask[rng.choice(len(ratings), rows, replace=False, shuffle=False)] = True
    return mask


def _check_released(
    wished: PrivateLookAlikes | LookAlikes | None, guarantee: Guarantee | None, ledger: PrivacyLedger | None
) -> None:
    if wished is not None and guarantee is not None:
        raise InvalidParameter("released look-alikes state their own guarantee: leave look_alikes_guarantee out.")
    if isinstance(wished, PrivateLookAlikes) != (ledger is not None):
        raise InvalidParameter(
            "private look-alikes are charged before they are drawn: give `ledger`, with the users enrolled as `subject`; without "
            "private look-alikes there is nothing to charge."
        )


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


def _mask(look_alikes: object, ratings: Ratings, dimension: int) -> NDArray[np.bool_] | None:
    """``look_alikes`` if they are a mask of users; None where they are features, or left to the default."""
    if look_alikes is None:
        return None
    if isinstance(look_alikes, np.ndarray):
        if look_alikes.dtype == np.bool_ and look_alikes.shape == (ratings.n_users,):
            return look_alikes
        if look_alikes.dtype.kind in "fiu" and look_alikes.ndim == 2 and look_alikes.shape[1] == dimension:
            return None
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


def _two(progress: Progress | None) -> Callable[[int, int, float], None] | None:
    """A callback that takes no error: it is of the training ratings, which nobody has paid for."""
    return None if progress is None else lambda done, total, _: progress(done, total)
