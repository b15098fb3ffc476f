"""How a claim is decided: by verdicts on "this loses less than that", each over several settings.

A claim often has several parts (a step from one k to the next, one rival). Every part must hold by itself, over all its settings
together: `statistics.Verdict` says when. Nothing here knows which way a claim ought to come out.
"""

from tacit.evaluation.multi_selection.losses import D_F, Case, Floats, Losses
from tacit.evaluation.multi_selection.plan import SIZES
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import CONTRARY, NOT_SHOWN, Estimate, below

SAT_RU, SAT, IG_SIG, EXACT = "sat-realuser", "sat", "ig-sig", "exact"
SINGLE = ("nopost", "nopost-realuser")
SEVERAL = SIZES[1:]
BAND = (0.05, 0.2)
BAND_NAME = f"on [{BAND[0]:g}, {BAND[1]:g}]"

Pairs = dict[str, tuple[Floats, Floats]]  # by setting: the losses that should be below, and those that should be above


def decided(who: str, statement: str, parts: dict[str, Pairs], found: Losses) -> Claim:
    """The claim that in every part the first of each pair is below the second."""
    verdicts = {name: below(pairs, found.users) for name, pairs in parts.items()}
    told = [
        f"{name}: {verdict.pooled}, shown in {verdict.shown} of {len(verdict.settings)}"
        + (f", {CONTRARY} on average" if verdict.pooled.above(0.0) else "")
        + "".join(f", {CONTRARY} at {setting}" for setting in verdict.contrary)
        + ("" if verdict.holds else f" {NOT_SHOWN}")
        for name, verdict in verdicts.items()
    ]
    return Claim(who, statement, all(verdict.holds for verdict in verdicts.values()), "; ".join(told))


def pair(found: Losses, one: Case, other: Case) -> tuple[Floats, Floats]:
    return found.of(one), found.of(other)


def published(measure: str, method: str, eta: float | None, k: int) -> Case:
    """A case as the paper has it: picks are by principal components."""
    return Case(measure, method, eta, k, "pca" if measure == D_F else "")


def within_band(etas: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(eta for eta in etas if BAND[0] <= eta <= BAND[1])


def share(found: Estimate) -> str:
    return f"{100.0 * found.value:.1f} ± {100.0 * found.stderr:.1f} %"
