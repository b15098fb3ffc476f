"""Every method at every epsilon, measured alike; and which figures are as near to the reference's as they should be."""

import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress
from tacit.evaluation.private_slates import reference
from tacit.evaluation.private_slates.baselines import baselines
from tacit.evaluation.private_slates.drawn import gumbel, natural, searched, tempered
from tacit.evaluation.private_slates.films import Films, Floats
from tacit.evaluation.private_slates.measures import measured, rows
from tacit.evaluation.private_slates.preselected import sparse_vector, two_stage
from tacit.evaluation.private_slates.reference import Given
from tacit.evaluation.private_slates.released import LARGEST, laplace, noisy_kernels
from tacit.evaluation.private_slates.tries import FEW, MANY, Tried
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import Estimate, mean
from tacit.guarantees import Guarantee

_STEPS = 40  # about so many methods and epsilons
SINGLE = 2.0  # deviations of one noise draw by which a figure of one may differ besides


class Measured(NamedTuple):
    tried: Tried
    values: Mapping[str, Floats]

    def estimate(self, metric: str) -> Estimate:
        return mean(self.values[metric], self.tried.groups)

    @property
    def releases(self) -> int:
        """How many of the slates are independent of each other."""
        groups = self.tried.groups
        return len(self.tried.slates) if groups is None else int(np.unique(groups).size)


class Table(NamedTuple):
    found: Mapping[tuple[str, float | str], Measured]
    part: Part
    guarantees: Mapping[str, Guarantee]


def table(films: Films, effort: Effort, *, seed: int, progress: Progress) -> Table:
    many, few = MANY[effort], FEW[effort]
    found: dict[tuple[str, float | str], Measured] = {}
    promised: dict[str, Guarantee] = {}
    for done, tried in enumerate(
        chain(
            baselines(films, many, seed), natural(films, many, seed), tempered(films, many, seed), searched(films, few, seed),
            gumbel(films, many, seed), two_stage(films, few, seed), sparse_vector(films, many, seed), laplace(films, few, seed),
            noisy_kernels(films, effort, many, seed, progress),
        )
    ):  # fmt: skip
        found[tried.method, tried.epsilon] = Measured(tried, measured(films, tried.slates))
        if tried.guarantee is not None:
            promised[f"{tried.method}, epsilon={tried.epsilon}"] = tried.guarantee
        progress("slates", min(done + 1, _STEPS), _STEPS)
    figures = [
        row
        for (method, epsilon), one in found.items()
        for row in rows(method, {"epsilon": epsilon}, one.values, one.tried.groups)
    ]
    notes: tuple[str, ...] = () if films.items <= LARGEST else (
        f"Noisy kernels were left out: {films.items:,} films are more than {LARGEST:,}.",
    )  # fmt: skip
    if films.name != reference.DATA:
        notes += (f"Reference figures are of {reference.DATA}; here there are none to compare with.",)
        return Table(found, Part(tuple(figures), (), notes), promised)
    return Table(found, Part((*figures, *reference.rows()), tuple(_claims(found)), notes), promised)


def _claims(found: Mapping[tuple[str, float | str], Measured]) -> Iterator[Claim]:
    for key, given in reference.TABLE.items():
        one = found.get(key)
        if one is None:
            yield Claim(reference.NAME, f"{key[0]} at epsilon {key[1]}: near the reference", False, "not tried")
            continue
        ours = {metric: one.estimate(metric) for metric in reference.METRICS}
        yield agreement(key, given, ours)
        if given.one_draw:
            yield agreement(key, given, ours, releases=one.releases)


def agreement(
    key: tuple[str, float | str], given: Given, ours: Mapping[str, Estimate], *, releases: int | None = None
) -> Claim:
    """Whether every metric is within the tolerance.

    With ``releases``, the number of independent ones that ours come from, a reference of one noise draw may be off by what such
    draws scatter besides: ours' error times the root of that number.
    """
    method, epsilon = key
    parts, near = [], True
    for metric, value in zip(reference.METRICS, given.figures, strict=True):
        one = ours[metric]
        known = math.isfinite(one.stderr)
        room = given.tolerance + (SINGLE * one.stderr * math.sqrt(releases) if releases and known else 0.0)
        near = near and abs(one.value - value) <= room
        parts.append(f"{metric} {one.value:.3f}{f' ± {one.stderr:.3f}' if known else ''} ({value:.3f})")
    more = f" and {SINGLE:g} deviations of one noise draw" if releases else ""
    told = "without privacy" if epsilon == reference.INF else f"at epsilon {epsilon:g}"
    return Claim(
        reference.NAME, f"{method} {told}: within {given.tolerance:g}{more} of the reference", near, "; ".join(parts)
    )
