"""The cases of the audit, one file for each kind of mechanism: what is enumerated, drawn and bounded, and which twins it has."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tacit.audit.findings import By, Finding
from tacit.audit.twins.mislabelled import with_less_noise
from tacit.mechanisms.noise import Noise

LESS_NOISE = 4.0  # the noise of every mechanism divided by it must be caught from outside


@dataclass(frozen=True, slots=True)
class Draws:
    """How many outputs are drawn: where a call draws many at once, and where every output takes a call."""

    batched: int = 100_000
    single: int = 3_000
    transcripts: int = 15_000  # of sparse vector: with fewer an epsilon off by ten percent might slip through
    slates: int = 8_000  # on tables chosen so that ten percent show clearly

    @property
    def fewer(self) -> "Draws":
        """What twins are caught with: the same check with two thirds of its single draws, so a weaker one."""
        return replace(self, single=self.single * 2 // 3)


@dataclass(frozen=True, slots=True)
class Case:
    """One claim to look at."""

    of: str
    by: By
    run: Callable[[Noise, Draws], Finding]


@dataclass(frozen=True, slots=True)
class Twin:
    """One broken twin, and the check that must catch it."""

    name: str
    of: str
    fault: str
    run: Callable[[Noise, Draws], Finding]
    by: By = By.EXACT


@dataclass(frozen=True, slots=True)
class FromOutside:
    """A mechanism as a black box, the look that is taken at its draws, and proof that this look can fail."""

    mechanism: Any
    look: Callable[[Any, Noise, Draws], Finding]

    def case(self) -> Case:
        return Case(self.mechanism.name, By.EMPIRICAL, lambda noise, draws: self.look(self.mechanism, noise, draws))

    def twin(self) -> Twin:
        """The same with a quarter of the noise."""

        def run(noise: Noise, draws: Draws) -> Finding:  # made when it is looked at: to name a twin costs nothing
            return self.look(with_less_noise(self.mechanism, LESS_NOISE), noise, draws.fewer)

        return Twin(
            f"{self.mechanism.name}-with-a-quarter-of-the-noise",
            self.mechanism.name,
            "a quarter of the noise that was claimed, seen from outside",
            run,
            By.EMPIRICAL,
        )
