"""Claims by who states them (the paper, tacit, or figures that an independent computation gave), and whether they hold."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import CONTRARY, NOT_SHOWN

OURS, AGREEMENT = "tacit", "reference figures"


class Standing(StrEnum):
    """Of a claim: the figures bear it out, they decide nothing, or they are against it."""

    YES = "yes"
    NOT_SHOWN = "not shown"
    NO = "no"


class Verdicts(NamedTuple):
    """``listed``: those to show in full; of agreement with a reference only what is outside its tolerance."""

    title: str
    held: int
    unshown: int
    total: int
    listed: tuple[Claim, ...]
    is_papers: bool


def standing(claim: Claim) -> Standing:
    """A claim that does not hold is refuted, unless its evidence says of a part that it is not shown, and of none the contrary."""
    if claim.holds:
        return Standing.YES
    is_open = NOT_SHOWN in claim.evidence and CONTRARY not in claim.evidence
    return Standing.NOT_SHOWN if is_open else Standing.NO


def verdicts(claims: Sequence[Claim]) -> list[Verdicts]:
    """The papers' own first, then ours, then agreement with reference figures."""
    by: dict[str, list[Claim]] = {}
    for claim in claims:
        by.setdefault(claim.paper, []).append(claim)
    order = sorted(by, key=lambda name: (name == AGREEMENT, name.startswith(OURS)))
    return [_of(name, by[name]) for name in order]


def _of(name: str, claims: list[Claim]) -> Verdicts:
    held = sum(claim.holds for claim in claims)
    unshown = sum(standing(claim) is Standing.NOT_SHOWN for claim in claims)
    if name == AGREEMENT:
        outside = tuple(claim for claim in claims if not claim.holds)
        return Verdicts("Within the tolerance of reference figures", held, unshown, len(claims), outside, False)
    ours = name.startswith(OURS)
    title = f"Beyond the paper{name.removeprefix(OURS)}" if ours else f"“{name}” says"
    return Verdicts(title, held, unshown, len(claims), tuple(claims), not ours)
