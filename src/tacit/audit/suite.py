"""The whole audit: every mechanism, every case, every broken twin."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from tacit.audit.cases import (
    Case,
    Draws,
    FromOutside,
    Twin,
    boxes,
    counts,
    feature_slates,
    features,
    grids,
    kernels,
    moments,
    partitions,
    private_selection,
    rating_moments,
    recoveries,
    responses,
    selection,
    single,
    slates,
    sparse,
    subsets,
    sums,
    swaps,
    tempered,
    training,
    trees,
    x_map,
)
from tacit.audit.findings import AuditReport, By, TwinFinding
from tacit.errors import UnknownName
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise

NAMES = (
    "randomised-response",
    "top-response",
    "exponential",
    "permute-and-flip",
    "noisy-max",
    "envelope",
    "peeling",
    "top-k",
    "sparse-vector",
    "vector-laplace",
    "laplace-sum",
    "bounded-counts",
    "gaussian-sum",
    "sampled-gaussian",
    "natural-slate",
    "feature-slate",
    "tempered-slate",
    "natural-subset",
    "gaussian-kernel",
    "private-partition",
    "local-swaps",
    "sparse-recovery",
    "grid-prototypes",
    "tree-prototypes",
    "popularity-share",
    "gram-share",
    "private-replacement",
    "offset-sums",
    "pair-moments",
    "rating-moments",
    "transfer-moments",
)
SYSTEMS = {  # what a system's promises rest on
    "multi-selection": ("vector-laplace", "sampled-gaussian", "tree-prototypes"),
    "private-selection": (
        "randomised-response",
        "top-response",
        "exponential",
        "permute-and-flip",
        "noisy-max",
        "envelope",
        "peeling",
        "laplace-sum",  # of terms of counterfactual estimates
        "bounded-counts",  # of clicks, with an aggregator
    ),
    "private-slates": (
        "natural-slate",
        "feature-slate",
        "tempered-slate",
        "natural-subset",
        "gaussian-kernel",
        "top-k",  # of candidates, before a slate
        "sparse-vector",  # the same
        "laplace-sum",  # of counts, for any number of slates
    ),
    "federated-prototypes": (
        "private-partition",
        "local-swaps",
        "sparse-recovery",
        "grid-prototypes",
        "tree-prototypes",
        "popularity-share",
        "gram-share",
    ),
    "cross-domain": (
        "transfer-moments",
        "offset-sums",  # its first step
        "pair-moments",  # its second
        "rating-moments",  # what the bridge and the honest X-Map are computed from
        "private-replacement",
    ),
}
_ROOMS = (
    responses,
    selection,
    boxes,
    private_selection,
    single,
    sparse,
    features,
    sums,
    counts,
    training,
    slates,
    feature_slates,
    tempered,
    subsets,
    kernels,
    partitions,
    swaps,
    recoveries,
    grids,
    trees,
    moments,
    x_map,
    rating_moments,
)

Progress = Callable[[int, int, str], None]  # done, in all, what comes next


def run(
    names: Iterable[str] | None = None,
    *,
    by: Iterable[By] = tuple(By),
    noise: Noise = SYSTEM_NOISE,
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Audits the named mechanisms, or all of them, and their broken twins; ``by`` limits the methods."""
    chosen, methods = selected(names), set(by)
    draws = Draws() if draws is None else draws
    cases = [case for case in all_cases() if case.of in chosen and case.by in methods]
    twins = [twin for twin in all_twins() if twin.of in chosen and twin.by in methods]
    total = len(cases) + len(twins)
    findings, caught = [], []
    for done, case in enumerate(cases):
        if progress is not None:
            progress(done, total, case.of)
        start = time.perf_counter()
        finding = case.run(noise, draws)
        findings.append(replace(finding, seconds=time.perf_counter() - start))
    for done, twin in enumerate(twins, start=len(cases)):
        if progress is not None:
            progress(done, total, twin.name)
        start = time.perf_counter()
        finding = twin.run(noise, draws)
        finding = replace(finding, seconds=time.perf_counter() - start)
        caught.append(TwinFinding(twin.name, twin.of, twin.fault, finding))
    if progress is not None:
        progress(total, total, "")
    return AuditReport(tuple(findings), tuple(caught))


def selected(names: Iterable[str] | None) -> tuple[str, ...]:
    """The known names among ``names``, in the order of the table; all of them if none are given. A system stands for its own."""
    wanted = [one for name in names or () for one in SYSTEMS.get(name, (name,))]
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        known = ", ".join([*NAMES, *SYSTEMS])
        raise UnknownName(f"no mechanism is called {', '.join(map(repr, unknown))}; known are {known}.")
    return tuple(name for name in NAMES if not wanted or name in wanted)


def all_cases() -> list[Case]:
    """Every case, in the order of the table."""
    return sorted((case for room in _ROOMS for case in room.cases()), key=lambda case: NAMES.index(case.of))


def all_twins() -> list[Twin]:
    """Every broken twin, in the order of the table."""
    return sorted((twin for room in _ROOMS for twin in room.twins()), key=lambda twin: NAMES.index(twin.of))


def all_from_outside() -> list[FromOutside]:
    """Every black box that is looked at from outside, in the order of the table."""
    return sorted(
        (look for room in _ROOMS for look in room.from_outside()), key=lambda look: NAMES.index(look.mechanism.name)
    )
