"""Private look-alikes: weighted prototypes of users' features, released once, so that a server needs no real person's features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.data.ratings import Ratings
from tacit.errors import Conflict, InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Release, pure
from tacit.guarantees.zcdp import epsilon_within
from tacit.ledger import PrivacyLedger
from tacit.ledger.names import name as checked_name
from tacit.ledger.privacy import MOST_BYTES
from tacit.mechanisms import SYSTEM_NOISE, FeatureBox, GridPrototypes, Noise, TreePrototypes
from tacit.mechanisms.profile_bounds import ProfileBounds
from tacit.mechanisms.prototypes import Prototypes
from tacit.messages.look_alikes import LookAlikes
from tacit.models.features import FeatureSpace, GenreProfile, version_of

GENRES_RADIUS = 0.4  # around the genres of the catalogue: nine of ten MovieLens users lie within it
MOST = 1 << 14
FACTORS_PUBLIC = "the item factors that features are made with are public"
_NOTHING = b""  # kept where nothing could be drawn

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PrivateLookAlikes:
    """How to release look-alikes: about ``count`` of them, of prototypes that are (epsilon, delta)-private for one user.

    A few thousand users allow tens of prototypes, and a posterior over tens of points is a poor guess. So each prototype is spread
    over several look-alikes, in proportion to its size, by public noise: of variance ``spread`` times (x - low)(high - x) in
    each feature, as shares of 1/spread draws would have. With ``spread`` 0 the prototypes themselves are the look-alikes.
    ``radius`` cuts how far a user may lie from the public centre.

    With ``delta`` None the guarantee is pure and the prototypes are those of a grid: few, ``grid_prototypes``, for about ``users``
    users, a public order of magnitude.

    All of these are public constants. ``name`` stands for this release in the ledger: the same name gives the kept one again.
    """

    epsilon: float  # nats
    delta: float | None = 1e-6  # a probability
    count: int = 3000
    radius: float | None = None  # L1 distance of features
    spread: float = 0.02
    seed: int = 0
    grid_prototypes: int = 8
    users: int = 3000
    name: str = "look-alikes"

    def __post_init__(self) -> None:
        spread = 0.0 if self.spread == 0 else positive("spread", self.spread)
        if spread > 1.0:
            raise InvalidParameter(
                "spread must be from 0 to 1: the variance of one draw is the largest that shares have."
            )
        keep(
            self,
            epsilon=positive("epsilon", self.epsilon),
            delta=None if self.delta is None else probability("delta", self.delta),
            grid_prototypes=whole("grid_prototypes", self.grid_prototypes, least=1, most=MOST),
            users=whole("users", self.users, least=1, most=1 << 28),
            count=whole("count", self.count, least=1, most=MOST),
            radius=None if self.radius is None else positive("radius", self.radius),
            spread=spread,
            seed=whole("seed", self.seed, least=0),
            name=checked_name("the name of a release", self.name),
        )

    def mechanism(self, space: FeatureSpace, centre: ArrayLike | None = None) -> TreePrototypes | GridPrototypes:
        """What draws them. ``centre`` is public, such as `genre_centre`; left out, it is the middle of the domain."""
        if self.delta is None:
            return GridPrototypes(
                self._row_bounds(space), self.grid_prototypes, self.epsilon, self.users, seed=self.seed
            )
        middle = np.full(space.dimension, (space.low + space.high) / 2.0)
        at = middle if centre is None else np.asarray(centre, dtype=np.float64)
        if at.shape != (space.dimension,):
            raise InvalidParameter(f"the centre must have {space.dimension} features.")
        radius = self.radius
        if radius is None and isinstance(space, GenreProfile):
            radius = GENRES_RADIUS
        ends = ((space.low,) * space.dimension, (space.high,) * space.dimension)
        box = FeatureBox(*ends, radius, tuple(at.tolist()))
        within = epsilon_within(self.epsilon, self.delta)  # a budget of the same (epsilon, delta) must hold it
        return TreePrototypes(box, self.count, within, self.delta, lloyd=0, seed=self.seed)

    def _row_bounds(self, space: FeatureSpace) -> ProfileBounds:
        """The domain as seen from 0. Two blocks of shares add up to 2, and have a norm of 1 unless a user likes one genre alone."""
        most, genres = max(abs(space.low), abs(space.high)), isinstance(space, GenreProfile)
        radius = 1.0 if genres and self.radius is None else self.radius
        sides = space.dimension
        return ProfileBounds(sides, sides, most, 2.0 if genres else None, radius, signed=space.low < 0.0)

    def promised(self, space: FeatureSpace, *assumptions: str) -> Guarantee:
        """What a release promises to one user. Features that are made with fitted factors assume that these are public."""
        return self._stated(self.mechanism(space).guarantee, space, assumptions)

    def _stated(self, guarantee: Guarantee, space: FeatureSpace, assumptions: tuple[str, ...]) -> Guarantee:
        """With the epsilon that was asked for, which is above the mechanism's by a hair; its rho stays the mechanism's."""
        if guarantee.promises_nothing:
            return guarantee
        factors = () if isinstance(space, GenreProfile) else (FACTORS_PUBLIC,)
        return replace(guarantee, epsilon=self.epsilon).assuming(*factors, *assumptions)

    def release(
        self,
        features: ArrayLike,
        space: FeatureSpace,
        *,
        centre: ArrayLike | None = None,
        assumes: tuple[str, ...] = (),
        noise: Noise = SYSTEM_NOISE,
    ) -> LookAlikes:
        """Look-alikes of users with these features, one row each; each row must be made of that user's profile alone.

        Whoever calls this has charged `promised` before; `charged` does both.
        """
        drawn = self.mechanism(space, centre).release(features, noise)
        return self.spread_out(drawn, space, centre, assumes)

    def charged(
        self,
        features: Callable[[], ArrayLike],
        space: FeatureSpace,
        ledger: PrivacyLedger,
        subject: str,
        *,
        centre: ArrayLike | None = None,
        assumes: tuple[str, ...] = (),
        whose: str = "",
        noise: Noise = SYSTEM_NOISE,
    ) -> LookAlikes:
        """The release of this name: charged to the users' ``subject`` before it is drawn, kept, and given again when asked again.

        ``features`` are read only where something is drawn. ``whose`` says which users' they are, by a public rule: those of
        others are another release, as are those of another feature space.

        An error while drawing may tell of what was drawn. It is seen by nobody, and the release is used up: if it drew again, one
        charge would pay for as many answers as there are errors. A process that dies here shows nothing: then it is drawn when it
        is asked for again.
        """
        self.mechanism(space, centre)  # refuses public numbers that do not fit before anything is charged

        def draw() -> bytes:
            try:
                with np.errstate(all="ignore"):  # or what a caller has set would make errors of what is drawn
                    drawn = self.release(features(), space, centre=centre, assumes=assumes, noise=noise).to_bytes()
            except Exception:
                return _NOTHING
            return drawn if len(drawn) <= MOST_BYTES else _NOTHING

        release_id = self._id(space, centre, assumes, whose)
        kept = ledger.release(subject, release_id, self.promised(space, *assumes), draw)
        if kept == _NOTHING:
            raise Conflict(
                "nothing could be drawn for these look-alikes, for a reason that is not told, as it may depend on the ratings. The "
                "charge stands and the release is used up: ask with another `name`."
            )
        return LookAlikes.from_bytes(kept)

    def spread_out(
        self, drawn: Release[Prototypes], space: FeatureSpace, centre: ArrayLike | None, assumes: tuple[str, ...] = ()
    ) -> LookAlikes:
        """Look-alikes of released prototypes: a function of them and of public numbers, so that it costs nothing.

        Prototypes of no size are left out; where noise leaves none, the public centre stands alone.
        """
        made, guarantee = drawn.value, self._stated(drawn.guarantee, space, assumes)
        told = ~np.isnan(made.centres).any(axis=1) & (made.sizes > 0.0)
        centres, sizes = made.centres[told], made.sizes[told]
        if not told.any():
            at = np.full(space.dimension, (space.low + space.high) / 2.0) if centre is None else np.asarray(centre)
            centres, sizes = at[None].astype(np.float64), np.ones(1)
        return LookAlikes(*self._moved(centres, sizes, space), guarantee)

    def around(self, centre: ArrayLike, space: FeatureSpace) -> LookAlikes:
        """Look-alikes of nobody: a public centre, spread by the same noise. What a release has to beat."""
        at = np.asarray(centre, dtype=np.float64).reshape(1, space.dimension)
        return LookAlikes(*self._moved(at, np.ones(1), space), pure(0.0, ONE_USER))

    def _moved(self, centres: Floats, sizes: Floats, space: FeatureSpace) -> tuple[Any, Any]:
        if not self.spread:
            return space.inside(centres), sizes
        times = np.maximum(1, np.rint(self.count * sizes / sizes.sum())).astype(np.int64)
        rows, shares = np.repeat(centres, times, axis=0), np.repeat(sizes / times, times)
        variance = self.spread * np.maximum((rows - space.low) * (space.high - rows), 0.0)
        public = np.random.default_rng([self.seed, 1])
        return space.inside(rows + public.standard_normal(rows.shape) * np.sqrt(variance)), shares

    def _id(self, space: FeatureSpace, centre: ArrayLike | None, assumes: tuple[str, ...], whose: str) -> str:
        """Of public parameters, all of them: another count, space or choice of users is another release, with another charge."""
        at = None if centre is None else np.asarray(centre, dtype=np.float64).tolist()
        parameters = repr((self, version_of(space), at, sorted(assumes), whose))
        return f"{self.name}-{sha256(parameters.encode()).hexdigest()[:32]}"


def genre_centre(space: GenreProfile) -> Floats:
    """Where a user's features would lie if she rated films blindly: the genres of the public list of items, in both blocks."""
    counts = space.flags.sum(axis=0, dtype=np.float64)
    shares = counts / counts.sum() if counts.sum() else np.full(space.genres, 1.0 / space.genres)
    return np.concatenate([shares, shares])


def of_ratings(
    wished: PrivateLookAlikes,
    ratings: Ratings,
    space: FeatureSpace,
    least: int,
    ledger: PrivacyLedger,
    subject: str,
    listed: tuple[Ratings, tuple[str, ...]],
) -> LookAlikes:
    """Look-alikes of the users of ``ratings`` who have enough of them. Whether she has is for each user's own ratings to say.

    ``listed`` has the public list of items, whose genres are the centre, and what is assumed of it: the items that somebody rated
    would tell of who rated them.
    """
    whose = f"of at least {least} ratings"
    if not isinstance(space, GenreProfile):
        return wished.charged(lambda: _one_by_one(ratings, space, least), space, ledger, subject, whose=whose)
    everything, assumed = listed
    public = GenreProfile(cast(NDArray[np.bool_], everything.catalogue.genres), space.liked_from)

    def features() -> Floats:
        found = space.of_many(ratings.starts, ratings.items, ratings.values)  # counts, whole; then a quotient each
        return found[wanted_users(ratings, space, found, least)]

    return wished.charged(features, public, ledger, subject, centre=genre_centre(public), assumes=assumed, whose=whose)


def wanted_users(ratings: Ratings, space: FeatureSpace, features: Floats, least: int) -> NDArray[np.bool_]:
    """Users with at least ``least`` ratings and, where features tell them apart, likes and dislikes among them."""
    wanted: NDArray[np.bool_] = ratings.counts >= least
    if isinstance(space, GenreProfile):
        liked, disliked = np.split(features, 2, axis=1)
        wanted = wanted & liked.any(axis=1) & disliked.any(axis=1)
    return wanted


def _one_by_one(ratings: Ratings, space: FeatureSpace, least: int) -> Floats:
    """Features of each user by herself: solved together, a user's last bits might depend on who else is there."""
    found = [
        space.of(ratings.items[first:last], ratings.values[first:last])
        for first, last in pairwise(ratings.starts.tolist())
        if last - first >= least
    ]
    return np.array(found, dtype=np.float64).reshape(-1, space.dimension)
