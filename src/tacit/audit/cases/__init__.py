"""The cases of the audit, one file for each kind of mechanism: what is enumerated, drawn and bounded, and which twins it has."""

from collections.abc import Callable
from dataclasses import dataclass

from tacit.audit.findings import By, Finding
from tacit.mechanisms.noise import Noise


@dataclass(frozen=True, slots=True)
class Draws:
    """How many outputs are drawn: where a call draws many at once, and where every output takes a call."""

    batched: int = 100_000
    single: int = 1_500
    transcripts: int = 15_000  # of sparse vector: with fewer an epsilon off by ten percent might slip through


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
