"""Private look-alikes: weighted prototypes of users' features, released once, so that a server holds no real person's features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.checks import keep, positive, probability, whole
from tacit.data.ratings import Ratings
from tacit.errors import InvalidParameter
from tacit.guarantees import Guarantee, Release
from tacit.guarantees.concentrated import epsilon_within
from tacit.ledger import PrivacyLedger
from tacit.ledger.account import PLAIN, Account, Wording
from tacit.ledger.chain import checked_name
from tacit.mechanisms import SYSTEM_NOISE, FeatureBox, GridPrototypes, Noise, TreePrototypes
from tacit.mechanisms.inputs import ProfileBounds
from tacit.mechanisms.sparse_recovery import Prototypes
from tacit.messages.store import LookAlikes
from tacit.models.features import FeatureSpace, GenreProfile, version_of

GENRES_RADIUS = 0.4  # around the genres of the catalogue: nine of ten MovieLens users lie within it
MOST = 1 << 14  # look-alikes, and prototypes of a grid
FACTORS_PUBLIC = "the item factors that features are made with are public"
_WORDING = Wording(
    "release of look-alikes",
    release_id="name",
    data="ratings",
    reused="this name was used before, for other look-alikes: ask with another `name`.",
    retry="ask with another `name`",
)


@dataclass(frozen=True)
class PrivateLookAlikes:
    """How to release look-alikes: about ``count`` of them, from prototypes that are (epsilon, delta)-private for one user.

    A few thousand users allow tens of prototypes, and a posterior over tens of points is a poor guess. So public noise spreads each
    prototype over several look-alikes, in proportion to its size. Its variance is ``spread`` times (x - low)(high - x) in each
    feature, as shares of 1/spread draws would have. With ``spread`` 0 the prototypes themselves are the look-alikes. ``radius`` is
    how far from the public centre a user may lie; features beyond are cut.

    With ``delta`` None the guarantee is pure, and a grid gives a few prototypes, ``grid_prototypes``, for about ``users`` users, a
    public order of magnitude.

    All of these are public constants. ``name`` is the name of this release in the ledger: the same name returns the kept release.
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
                "spread must lie from 0 to 1: shares never vary more than a single draw, which is spread 1."
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
        """What draws the prototypes. ``centre`` is public, such as `genre_centre`; by default the middle of the domain."""
        if self.delta is None:
            # Around 0. Two blocks of shares add up to 2, with norm 1 unless a user likes one genre alone.
            genres, sides = isinstance(space, GenreProfile), space.dimension
            bounds = ProfileBounds(
                items=sides,
                items_each=sides,
                value_bound=max(abs(space.low), abs(space.high)),
                l1_bound=2.0 if genres else None,
                l2_bound=1.0 if genres and self.radius is None else self.radius,
                signed=space.low < 0.0,
            )
            return GridPrototypes(bounds, self.grid_prototypes, self.epsilon, self.users, seed=self.seed)
        middle = np.full(space.dimension, (space.low + space.high) / 2.0)
        public_centre = middle if centre is None else np.asarray(centre, dtype=np.float64)
        if public_centre.shape != (space.dimension,):
            raise InvalidParameter(f"the centre must have {space.dimension} features.")
        radius = self.radius
        if radius is None and isinstance(space, GenreProfile):
            radius = GENRES_RADIUS
        ends = ((space.low,) * space.dimension, (space.high,) * space.dimension)
        box = FeatureBox(*ends, radius, tuple(public_centre.tolist()))
        within = epsilon_within(self.epsilon, self.delta)  # a budget of the same (epsilon, delta) must hold it
        return TreePrototypes(box, self.count, within, self.delta, lloyd=0, seed=self.seed)

    def promised(self, space: FeatureSpace, *assumptions: str) -> Guarantee:
        """The guarantee of a release for one user. For features made with fitted factors, it assumes that these are public."""
        return self._stated(self.mechanism(space).guarantee, space, assumptions)

    def _stated(self, guarantee: Guarantee, space: FeatureSpace, assumptions: tuple[str, ...]) -> Guarantee:
        """States the requested epsilon, which is slightly above the mechanism's. Rho stays the mechanism's."""
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
        """Look-alikes of users with these features, one row each; each row must follow from that user's profile alone.

        Charge `promised` before you call this; `charged` does both.
        """
        return self.spread_out(self.mechanism(space, centre).release(features, noise), space, centre, assumes)

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
        """The release of this name: charged to ``subject``, then drawn and kept; asking again returns the same release.

        ``features`` is called only if something is drawn. ``whose`` names the users by a public rule: other users, or another
        feature space, are another release.

        If drawing fails, the error is hidden, the charge stands and the name is used up (`Account.release`).
        """
        self.mechanism(space, centre)  # raises for wrong public numbers before anything is charged

        def draw() -> bytes:
            return self.release(features(), space, centre=centre, assumes=assumes, noise=noise).to_bytes()

        account = Account(ledger, subject, ledger.terms(subject), wording=_WORDING, encoding=PLAIN)
        release_id = self._release_id(space, centre, assumes, whose)
        return LookAlikes.from_bytes(account.release(release_id, None, self.promised(space, *assumes), draw))

    def spread_out(
        self, drawn: Release[Prototypes], space: FeatureSpace, centre: ArrayLike | None, assumes: tuple[str, ...] = ()
    ) -> LookAlikes:
        """Look-alikes from released prototypes and public numbers. It costs nothing.

        Prototypes without size are left out; if noise leaves none, the public centre is the only look-alike.
        """

        def rows_of(prototypes: Prototypes) -> tuple[Any, Any]:
            sized = ~np.isnan(prototypes.centres).any(axis=1) & (prototypes.sizes > 0.0)
            centres, sizes = prototypes.centres[sized], prototypes.sizes[sized]
            if not sized.any():
                middle = np.full(space.dimension, (space.low + space.high) / 2.0)
                centres, sizes = (middle if centre is None else np.asarray(centre))[None].astype(np.float64), np.ones(1)
            return self._spread(centres, sizes, space)

        return LookAlikes.from_release(drawn.map(rows_of).under(self._stated(drawn.guarantee, space, assumes)))

    def around(self, centre: ArrayLike, space: FeatureSpace) -> LookAlikes:
        """Look-alikes of nobody: a public centre, spread by the same noise. A release has to beat these."""
        centres = np.asarray(centre, dtype=np.float64).reshape(1, space.dimension)
        return LookAlikes.of_nobody(*self._spread(centres, np.ones(1), space))

    def _spread(self, centres: NDArray[np.float64], sizes: NDArray[np.float64], space: FeatureSpace) -> tuple[Any, Any]:
        if not self.spread:
            return space.inside(centres), sizes
        times = np.maximum(1, np.rint(self.count * sizes / sizes.sum())).astype(np.int64)
        rows, shares = np.repeat(centres, times, axis=0), np.repeat(sizes / times, times)
        variance = self.spread * np.maximum((rows - space.low) * (space.high - rows), 0.0)
        public = np.random.default_rng([self.seed, 1])
        return space.inside(rows + public.standard_normal(rows.shape) * np.sqrt(variance)), shares

    def _release_id(self, space: FeatureSpace, centre: ArrayLike | None, assumes: tuple[str, ...], whose: str) -> str:
        """The name in the ledger, from all public parameters: another count, space or choice of users is another release."""
        coordinates = None if centre is None else np.asarray(centre, dtype=np.float64).tolist()
        parameters = repr((self, version_of(space), coordinates, sorted(assumes), whose))
        return f"{self.name}-{sha256(parameters.encode()).hexdigest()[:32]}"


def genre_centre(space: GenreProfile) -> NDArray[np.float64]:
    """The features of a user who rates at random: the genres of the public list of items, in both blocks."""
    counts = space.flags.sum(axis=0, dtype=np.float64)
    shares = counts / counts.sum() if counts.sum() else np.full(space.genres, 1.0 / space.genres)
    return np.concatenate([shares, shares])


def of_ratings(
    look_alikes: PrivateLookAlikes,
    ratings: Ratings,
    space: FeatureSpace,
    least: int,
    ledger: PrivacyLedger,
    subject: str,
    listed: tuple[Ratings, tuple[str, ...]],
) -> LookAlikes:
    """Look-alikes of the users with at least ``least`` ratings. Each user's own ratings decide whether they count.

    ``listed`` has the ratings of listed items, whose genres give the centre, and what is assumed about the list. Rated items alone
    would reveal something about the people who rated them.
    """
    whose = f"of at least {least} ratings"
    if not isinstance(space, GenreProfile):
        return look_alikes.charged(lambda: _one_by_one(ratings, space, least), space, ledger, subject, whose=whose)
    everything, assumed = listed
    public = GenreProfile(cast(NDArray[np.bool_], everything.catalogue.genres), space.liked_from)

    def features() -> NDArray[np.float64]:
        table = space.of_many(ratings.starts, ratings.items, ratings.values)  # whole counts, then one quotient each
        return table[wanted_users(ratings, space, table, least)]

    return look_alikes.charged(
        features, public, ledger, subject, centre=genre_centre(public), assumes=assumed, whose=whose
    )


def wanted_users(ratings: Ratings, space: FeatureSpace, features: NDArray[np.float64], least: int) -> NDArray[np.bool_]:
    """Users with at least ``least`` ratings and, for genre features, likes and dislikes among them."""
    wanted: NDArray[np.bool_] = ratings.counts >= least
    if isinstance(space, GenreProfile):
        liked, disliked = np.split(features, 2, axis=1)
        wanted = wanted & liked.any(axis=1) & disliked.any(axis=1)
    return wanted


def _one_by_one(ratings: Ratings, space: FeatureSpace, least: int) -> NDArray[np.float64]:
    """The features of each user alone: if solved together, a user's last bits might depend on the other users."""
    rows = [
        space.of(ratings.items[first:last], ratings.values[first:last])
        for first, last in pairwise(ratings.starts.tolist())
        if last - first >= least
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, space.dimension)
