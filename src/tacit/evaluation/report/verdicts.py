"""Claims by who states them: the paper, tacit, or figures that an independent computation gave."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.evaluation.result import Claim

OURS, AGREEMENT = "tacit", "reference figures"


class Verdicts(NamedTuple):
    """``listed``: those to show in full; of agreement with a reference only what is outside its tolerance."""

    title: str
    held: int
    total: int
    listed: tuple[Claim, ...]
    is_papers: bool


def verdicts(claims: Sequence[Claim]) -> list[Verdicts]:
    """The papers' own first, then ours, then agreement with reference figures."""
    by: dict[str, list[Claim]] = {}
    for claim in claims:
        by.setdefault(claim.paper, []).append(claim)
    order = sorted(by, key=lambda name: (name == AGREEMENT, name.startswith(OURS)))
    return [_of(name, by[name]) for name in order]


def _of(name: str, claims: list[Claim]) -> Verdicts:
    held = sum(claim.holds for claim in claims)
    if name == AGREEMENT:
        outside = tuple(claim for claim in claims if not claim.holds)
        return Verdicts("Within the tolerance of reference figures", held, len(claims), outside, False)
    ours = name.startswith(OURS)
    title = f"Beyond the paper{name.removeprefix(OURS)}" if ours else f"“{name}” says"
    return Verdicts(title, held, len(claims), tuple(claims), not ours)
