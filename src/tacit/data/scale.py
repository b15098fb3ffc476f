"""The values that a rating may take."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.checks import finite, positive
from tacit.errors import InvalidParameter

_CHUNK = 1 << 20  # small enough to stay in the cache: the check of 25 million ratings then costs no memory
_TOLERANCE = 1e-3  # of a step; ratings are float32


@dataclass(frozen=True, slots=True)
class Scale:
    """From ``low`` to ``high``, in steps of ``step`` if there is one. ``high`` may be infinite, as for counts."""

    low: float  # the lowest rating, in stars or whatever is counted
    high: float  # the highest rating, likewise
    step: float | None = None

    def __post_init__(self) -> None:
        finite("the low end of the scale", self.low)
        if self.high != math.inf:
            finite("the high end of the scale", self.high)
        if not self.low < self.high:
            raise InvalidParameter(f"the scale must rise: {self.low:g} is not below {self.high:g}.")
        if self.step is not None:
            steps = (self.high - self.low) / positive("the step of the scale", self.step)
            if math.isfinite(steps) and abs(steps - round(steps)) > _TOLERANCE:
                raise InvalidParameter(f"steps of {self.step:g} do not lead from {self.low:g} to {self.high:g}.")

    def __str__(self) -> str:
        reach = f"{self.low:g} or more" if self.high == math.inf else f"{self.low:g} to {self.high:g}"
        return reach if self.step is None else f"{reach} in steps of {self.step:g}"

    def first_outside(self, values: NDArray[np.float32]) -> int | None:
        """The first place whose value is not on the scale (NaN is not), or None."""
        for start in range(0, values.size, _CHUNK):
            chunk = values[start : start + _CHUNK]
            fits = (chunk >= self.low) & (chunk <= self.high) & (chunk < math.inf)
            if self.step is not None:
                places = (chunk - np.float32(self.low)) / np.float32(self.step)
                with np.errstate(invalid="ignore"):  # infinite values were already refused above
                    fits &= np.abs(places - np.rint(places)) <= _TOLERANCE
            if not fits.all():
                return start + int(np.argmin(fits))
        return None

    def nearest(self, values: NDArray[np.float64]) -> NDArray[np.float32]:
        """Each value moved to the nearest one on the scale."""
        moved = np.clip(values, self.low, self.high)
        if self.step is not None:
            moved = self.low + np.rint((moved - self.low) / self.step) * self.step
        return np.clip(moved, self.low, self.high).astype(np.float32)

    def without_step(self) -> "Scale":
        """The same range of ratings, any number within it allowed."""
        return Scale(self.low, self.high)


STARS = Scale(1.0, 5.0, 1.0)
HALF_STARS = Scale(0.5, 5.0, 0.5)
COUNTS = Scale(1.0, math.inf, 1.0)
