"""Two neighbouring kernels and what a slate drawn from them loses: every subset, in fractions.

A slate is drawn from subsets in proportion to their minors of sigma I + A A^T + c c^T, where c is one user's part and
|c|^2 <= bound. No rounding helps a pair over a bound that it should not exceed, or hides that it does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.audit.minors import Floats, whole_minors
from tacit.guarantees import Relation

_BITS = 40  # floats become multiples of 2^-40, towards 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What is searched: slates of k of n items (None: of any size) where |c|^2 <= ``bound``."""

    items: int
    k: int | None
    bound: float
    relation: Relation
    sigma: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two neighbouring kernels: sigma I + A A^T and one user's part. The one who is ``removed`` is 0 where she is added."""

    setting: Setting
    others: Floats
    removed: Floats
    added: Floats

    def kernels(self) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
        """Both kernels as fractions; the users are cut again, so that no rounding gives them more than their bound."""
        setting = self.setting
        others = [[_fraction(cell) for cell in row] for row in self.others]
        first, second = (_cut(user, Fraction(setting.bound)) for user in (self.removed, self.added))
        places = range(setting.items)
        base = [
            [Fraction(sum(a * b for a, b in zip(others[i], others[j], strict=True))) for j in places] for i in places
        ]
        for i in places:
            base[i][i] += Fraction(setting.sigma)
        with_first, with_second = (
            [[base[i][j] + user[i] * user[j] for j in places] for i in places] for user in (first, second)
        )
        return with_first, with_second


@dataclass(frozen=True, slots=True)
class Lost:
    """What one pair loses, exactly: the largest ratio of probabilities, and the largest quotient of two ratios."""

    ratio: Fraction
    spread: Fraction

    @property
    def epsilon(self) -> float:
        return _log(self.ratio)

    @property
    def range(self) -> float:
        return _log(self.spread)


def lost(pair: Pair, allowed: Sequence[int] | None = None) -> Lost:
    """By enumerating every subset in fractions: nothing is rounded until a logarithm is taken of the result."""
    chosen = subsets(pair.setting) if allowed is None else allowed
    first, second = (whole_minors(kernel) for kernel in pair.kernels())
    quotients = [second[subset] / first[subset] for subset in chosen]
    zero = Fraction(0)
    normaliser = sum((second[subset] for subset in chosen), zero) / sum((first[subset] for subset in chosen), zero)
    ratios = [quotient / normaliser for quotient in (min(quotients), max(quotients))]
    return Lost(max(1 / ratios[0], ratios[1]), ratios[1] / ratios[0])


def subsets(setting: Setting) -> list[int]:
    """The slates that may be drawn, as bits."""
    every = range(1 << setting.items)
    return [subset for subset in every if setting.k is None or subset.bit_count() == setting.k]


def _fraction(value: float) -> Fraction:
    return Fraction(math.trunc(value * 2.0**_BITS), 1 << _BITS)


def _cut(user: Floats, bound: Fraction) -> list[Fraction]:
    """Her vector as fractions; where it is too long, shortened by a little more than it has to be."""
    cells = [_fraction(float(cell)) for cell in user]
    square = sum((cell * cell for cell in cells), Fraction(0))
    if square <= bound:
        return cells
    share = _fraction(math.sqrt(bound / square)) - Fraction(1, 1 << (_BITS - 2))
    return [cell * share for cell in cells]


def _log(ratio: Fraction) -> float:
    return math.log(ratio) if ratio < 2 else math.log(ratio.numerator) - math.log(ratio.denominator)
