"""The profile of one user in memory, and the state that the systems of their device share.

Multi-selection and private selection share one ``DeviceState``. Nothing private is ever written to its file.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite
from tacit.device.limits import DeviceBudget, Limits
from tacit.errors import InvalidFeatures, InvalidParameter
from tacit.guarantees import Guarantee, nothing
from tacit.ledger import Clock, DisplayLedger, PrivacyLedger
from tacit.mechanisms import Noise
from tacit.models.features import FeatureSpace
from tacit.models.items import Items

MOST_RATING = 1e6  # on any scale: features could overflow far beyond it


class Profile:
    """The private data of one user: ratings by item code, and which displays they clicked. It lives in memory only.

    Its text shows no content, and it cannot be pickled, copied or written. An application that needs the ratings after a restart
    stores them itself.
    """

    __slots__ = ("_clicked", "_ratings")

    def __init__(self) -> None:
        self._ratings: dict[int, float] = {}
        self._clicked: set[tuple[str, str]] = set()

    def rate(self, ratings: Mapping[int, float]) -> None:
        """Adds ratings, or replaces earlier ones of the same items."""
        self._ratings |= ratings

    def forget(self, code: int) -> None:
        """Removes the rating of an item, if there is one."""
        self._ratings.pop(code, None)

    def click(self, server: str, token: str) -> None:
        """Remembers that the user clicked what was shown for this offer."""
        self._clicked.add((server, token))

    def clicked(self, server: str, token: str) -> bool:
        """Whether the user clicked what was shown for this offer."""
        return (server, token) in self._clicked

    def wipe(self) -> None:
        """Removes all ratings and clicks."""
        self._ratings.clear()
        self._clicked.clear()

    def ratings(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Item codes, ascending, and their ratings."""
        codes = sorted(self._ratings)
        return np.array(codes, dtype=np.int64), np.array([self._ratings[code] for code in codes], dtype=np.float64)

    def __len__(self) -> int:
        return len(self._ratings)

    def __repr__(self) -> str:
        return "Profile(private)"

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a profile is private and cannot be written, copied or sent: release a signal instead.")


def checked_rating(value: float, position: int) -> float:
    """A rating within public bounds. The error names its position only, never the value."""
    try:
        number = finite("a rating", value)
    except InvalidParameter:
        number = math.inf
    if abs(number) > MOST_RATING:
        raise InvalidParameter(
            f"rating {position} must be a finite number from {-MOST_RATING:,.0f} to {MOST_RATING:,.0f}."
        )
    return number


@dataclass(eq=False, repr=False)
class DeviceState:
    """The state that the two systems of a device share."""

    ledger: PrivacyLedger
    displays: DisplayLedger  # in the file of the ledger
    budget: DeviceBudget
    items: Items
    space: FeatureSpace
    limits: Limits
    noise: Noise
    clock: Clock
    profile: Profile = field(default_factory=Profile)

    def __post_init__(self) -> None:
        self._last_revocation = self.displays.last_revocation()

    def obey_revocation(self) -> int:
        """Wipes the profile if consent was revoked since the last call, by any process that shares the file.

        Call it before you add to the profile and before you read it. Returns the number of the last revocation.
        """
        last = self.displays.last_revocation()
        if last != self._last_revocation:
            self.profile.wipe()
            # Only after the wipe: another thread that checks meanwhile wipes as well, and never uses the old profile.
            self._last_revocation = last
        return last

    def ratings(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The user's ratings since the last revocation: private."""
        self.obey_revocation()
        return self.profile.ratings()

    def features(self) -> NDArray[np.float64]:
        """The features of the user's ratings: private."""
        ratings = self.ratings()
        try:
            with np.errstate(all="ignore"):
                return self.space.check(self.space.of(*ratings))
        except np.linalg.LinAlgError:
            pass  # raised below, without this context: it may show private numbers
        raise InvalidFeatures("this store's feature space cannot turn the ratings into features: load another store.")

    def promise(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of a release that is drawn from this device's noise. The ledger charges it before the draw."""
        if self.noise.caveat is None or guarantee.promises_nothing:
            return guarantee
        return nothing(guarantee.protects, self.noise.caveat, proof=guarantee.proof)
