"""Counts of users' reports: every short list of reports, each with all that one user said taken out; then the law of the noise."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, distribution, empirical, lattice
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.cases.sums import laplace_exactly
from tacit.audit.findings import By, Finding
from tacit.audit.twins.counts import CappedAtEachPlace, CountedBeyondTheCap, NoiseForOneReport, OnlyClickedListed
from tacit.mechanisms import BoundedCounts
from tacit.mechanisms.noise import Noise
from tacit.mechanisms.samplers import integers
from tacit.mechanisms.sums import NOWHERE

_NAME = BoundedCounts.name
_EACH = 2
_LONGEST = 4  # twice what may count of one user
_REPORTS: tuple[tuple[Any, Any], ...] = (("u", 0), ("u", 1), ("u", NOWHERE), ("v", 0), ("v", 1), (None, 0))
_ODD: tuple[tuple[Any, Any], ...] = (
    ("u", 0), ("u", 2), ("u", -3), ("u", 10**40), ("u", True), ("u", None), ("u", 1.0), ("u", "1"), (float("nan"), 1), ((), 0),
)  # fmt: skip

Reports = tuple[tuple[Any, Any], ...]


def cases() -> list[Case]:
    return [
        *(Case(_NAME, By.EXACT, _enumerated(BoundedCounts(2, 1.0, each), each)) for each in (1, _EACH)),
        Case(_NAME, By.EXACT, lambda noise, draws: _odd()),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    real = BoundedCounts(2, 1.0, _EACH)
    faults = {
        NoiseForOneReport: "noise for one report of a user, although two of hers count",
        CountedBeyondTheCap: "counts all reports of a user, with noise for two",
        CappedAtEachPlace: "counts two reports of a user at every place, with noise for two in all",
        OnlyClickedListed: "lists only the places that somebody named",
    }
    return [
        *(Twin(kind.name, _NAME, fault, _enumerated(kind(real), _EACH)) for kind, fault in faults.items()),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(BoundedCounts(2, 2.0, 3), _empirical)]


def lists(reports: Reports, longest: int) -> list[Reports]:
    """Every list of at most ``longest`` reports, in every order: users may come in turns."""
    return [chosen for size in range(longest + 1) for chosen in product(reports, repeat=size)]


def without_one_user(inputs: list[Reports]) -> NDArray[np.int64]:
    """All pairs of lists of which one is the other without all reports of one of its users."""
    place = {reports: index for index, reports in enumerate(inputs)}
    pairs = {
        (index, place[tuple(report for report in reports if report[0] != user)])
        for index, reports in enumerate(inputs)
        for user, _ in reports
        if user is not None
    }
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def _enumerated(mechanism: Any, each: int) -> Any:
    def run(noise: Noise, draws: Draws) -> Finding:
        inputs = lists(_REPORTS, _LONGEST)
        case = f"every list of {_LONGEST} reports, {each} of a user count"
        return laplace_exactly(mechanism, inputs, without_one_user(inputs), case=case)

    return run


def _odd() -> Finding:
    """Nobody's reports and places that there are not, before and beside one report that counts: never more than one."""
    inputs = [(), *((report,) for report in _ODD), *((*before, ("u", 0)) for before in lists(_ODD, 2))]
    pairs = np.array([(0, other) for other in range(1, len(inputs))])
    return laplace_exactly(BoundedCounts(2, 1.0), inputs, pairs, case="odd places, reports of nobody")


def _sampler(noise: Noise, draws: Draws) -> Finding:
    mechanism = BoundedCounts(draws.batched, 1.0, _EACH)
    drawn = mechanism.release((), noise).value.steps

    def fit(law: BoundedCounts) -> float:
        return distribution.lattice_p_value(drawn, lambda n: integers.discrete_laplace_cdf(n, law.noise_law.width))

    return check.sampled(
        mechanism,
        fit(mechanism),
        fit(distribution.off_by(mechanism)),
        loss=lattice.laplace_loss(mechanism.noise_law.pmf, _EACH),
        draws=draws.batched,
        case="2 reports of each user",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Reports of three users, with and without one who said five times that she clicked."""
    rest = [("v", 0), ("w", 1), ("v", 1)]
    hers = [("u", 0)] * 5

    def drawn(reports: list[tuple[str, int]]) -> NDArray[np.float64]:
        return check.many(lambda: float(mechanism.release(reports, noise).value.steps[0]), draws.single)

    bound = empirical.lower_bound_by_threshold(drawn(rest), drawn([*hers, *rest]))
    return check.from_below(mechanism, bound, case="2 places, a user with 5 reports added")
