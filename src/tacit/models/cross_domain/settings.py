"""Public constants of the transfer of taste from noisy moments: fixed before any rating is read, never computed from ratings.

All lengths are in units of the scale. The defaults are one compromise for MovieLens-1M cut in two by genre, a small pair of Amazon
domains and made-up worlds of 1,000 to 20,000 users; `for_scale` carries them over from 1 to 5 stars to any other scale.
"""

import math
from dataclasses import dataclass

from tacit.checks import finite, keep, positive, probability, whole
from tacit.errors import InvalidParameter

MOST_HEAD = 2_000  # items with second moments: 2 million numbers, and an eigenproblem of seconds
MOST_DIRECTIONS = 64
LEAST_RATINGS = 5  # of a user in a domain, or her ratings there are left out
_STARS = 4.0  # from 1 to 5: the scale that the defaults are for
_CENTRE = 0.7  # of the way from low to high: ratings that people chose to give have their mean about there
_HEAD = (
    0.1  # items of the head for each user and unit of mu: beyond, the noise of further items hides more than they tell
)
_EVEN = 1_500.0  # users * mu at which offsets would take all of the budget; the more there is, the less of it they need
_LEAST_SHARE, _MOST_SHARE = 0.2, 0.85


@dataclass(frozen=True, slots=True)
class TransferSettings:
    """What both the release and everything computed from it are told.

    ``users`` is a public order of magnitude of how many users there are: it decides how large the head is and how the budget is
    shared, where ``head`` and ``offset_share`` do not say so.
    """

    low: float = 1.0  # the lowest rating, in stars
    high: float = 5.0  # the highest rating, in stars
    centre: float | None = (
        3.8  # taken from every rating; None: each user's own mean, which tells nothing of the domains' means
    )
    clip: float = 2.0  # of a centred rating
    offset_norm: float = 4.0  # of a user's (centred ratings, mask for each rating)
    mask: float = 0.5
    pair_norm: float = 4.0  # of a user's centred ratings on the head
    users: int = 10_000
    head: int | None = None
    offset_share: float | None = None  # of mu^2, for the offsets; the rest is for the second moments
    offset_variance: float = 0.12  # of items' means, around the mean of their domain
    rating_variance: float = 0.73  # of a rating, around the user's level and the item's offset
    level_share: float = 1.0  # of how far a user rates above the mean in the source, expected in the target (beta)
    level_ratings: float = 3.0  # rated at the mean by everybody before the first: few ratings say little of a level
    taste: float = 0.04  # of the variance of a rating, explained by a direction that is known without noise
    most_directions: int = 8
    edge: float = 1.05  # times the edge of the noise: an eigenvalue below is taken to be noise
    reach: float = 1.5  # of what taste may add to a prediction

    def __post_init__(self) -> None:
        low, high = finite("low", self.low), finite("high", self.high)
        if not low < high:
            raise InvalidParameter(f"low must be below high, not {self.low!r} and {self.high!r}.")
        centre = None if self.centre is None else finite("centre", self.centre)
        if centre is not None and not low <= centre <= high:
            raise InvalidParameter(f"centre must lie from low to high, not {self.centre!r}; or None: each own mean.")
        names = ("clip", "offset_norm", "mask", "pair_norm", "offset_variance", "rating_variance", "taste", "reach")
        keep(
            self,
            low=low,
            high=high,
            centre=centre,
            users=whole("users", self.users, least=1),
            head=None if self.head is None else whole("head", self.head, least=0, most=MOST_HEAD),
            offset_share=None if self.offset_share is None else probability("offset_share", self.offset_share),
            level_share=_at_least_0("level_share", self.level_share),
            level_ratings=_at_least_0("level_ratings", self.level_ratings),
            most_directions=whole("most_directions", self.most_directions, least=1, most=MOST_DIRECTIONS),
            edge=positive("edge", self.edge),
            **{name: positive(name, getattr(self, name)) for name in names},
        )
        if self.edge < 1.0:
            raise InvalidParameter(f"edge must be at least 1, where noise ends, not {self.edge!r}.")
        if self.taste >= 1.0:
            raise InvalidParameter(f"taste is a share of the variance, below 1, not {self.taste!r}.")

    @classmethod
    def for_scale(cls, low: float, high: float, *, users: int = 10_000) -> "TransferSettings":
        """The defaults, stretched from 1 to 5 to ``low`` to ``high``.

        Bounds are in stars, variances in squares of them.
        """
        low, high = finite("low", low), finite("high", high)
        if not low < high:
            raise InvalidParameter(f"low must be below high, not {low!r} and {high!r}.")
        unit = (high - low) / _STARS
        return cls(
            low=low,
            high=high,
            centre=low + _CENTRE * (high - low),
            clip=2.0 * unit,
            offset_norm=4.0 * unit,
            mask=0.5 * unit,
            pair_norm=4.0 * unit,
            users=users,
            offset_variance=0.12 * unit**2,
            rating_variance=0.73 * unit**2,
            reach=1.5 * unit,
        )

    @property
    def rest(self) -> float:
        """The level of somebody of whom nothing is known, where the domains' means are not released either."""
        return self.low + _CENTRE * (self.high - self.low) if self.centre is None else self.centre

    def head_size(self, items: int, mu: float) -> int:
        """How many of so many items get second moments, at a whole budget of ``mu``.

        ``mu`` is that of Gaussian privacy.
        """
        items, mu = whole("items", items, least=0), positive("mu", mu)
        wanted = math.ceil(min(_HEAD * self.users * mu, MOST_HEAD)) if self.head is None else self.head
        return min(items, wanted) if min(items, wanted) > 1 else 0  # a pair has two items

    def share_of_offsets(self, mu: float) -> float:
        """Of mu^2. As mu grows the share falls, slower than mu^2 grows: neither part ever gets less.

        ``mu`` is that of Gaussian privacy.
        """
        mu = positive("mu", mu)
        if self.offset_share is not None:
            return self.offset_share
        return min(_MOST_SHARE, max(_LEAST_SHARE, _EVEN / (self.users * mu)))

    def explained(self, known: float) -> float:
        """The share of the variance of a rating that directions explain, for ``known`` of them: at most half of it."""
        return min(0.5, self.taste * known)


def _at_least_0(name: str, value: float) -> float:
    number = finite(name, value)
    if number < 0.0:
        raise InvalidParameter(f"{name} must be at least 0, not {value!r}.")
    return number
