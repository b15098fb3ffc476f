"""Replacements: every small table of scores, every pair of them; then X-Map's own steps, whose claims must fall."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.audit import check, closed_forms, distribution, empirical, exact
from tacit.audit.cases import Case, Draws, FromOutside, Twin
from tacit.audit.findings import By, Finding, Measure
from tacit.audit.twins.mislabelled import Mislabelled
from tacit.audit.twins.x_map import CandidatesFromRecords, PrintedRate, PrintedScale, RedrawnReplacement, SignedScores
from tacit.mechanisms import PrivateReplacement
from tacit.mechanisms.noise import Noise

_NAME = PrivateReplacement.name
_WHY = "the normalisers move along; attained as the candidates grow"
_TOGETHER = 64  # tables in one release; a power of 2, so that the parts of epsilon are exact
_HOSTILE = (math.nan, -math.inf, 0.4, 7.0, math.inf)

Check: TypeAlias = Callable[[Noise, Draws], Finding]
Rows: TypeAlias = list[tuple[float, ...]]

_PAIRS: Rows = [(1.0, 1.0), (-1.0, -1.0)]
_AGREE: Rows = [*_PAIRS * 50, (1.0, 1.0)]  # 101 users who agree
# a database, the user who is added to it, and what the printed proof overlooks
COUNTER_EXAMPLES: dict[str, tuple[Rows, tuple[float, float], str]] = {
    "one-item-only": (_PAIRS, (4.0, 0.0), "a user who rated one of two items is said not to matter"),
    "negative-products": (
        [(1.0, -1.0), (-1.0, 1.0)] * 2,
        (1.0, 1.0),
        "a step of the proof needs items whose ratings agree",
    ),
    "dropped-term": (_AGREE, (4.0, -4.0), "a term is dropped as negative, and is positive where a user disagrees"),
    "without-absolute-values": (
        [(1.0, -1.0), (-1.0, 1.0), (-1.0, 2.0)],
        (2.0, -1.0),
        "all printed terms are negative, so that there is no noise",
    ),
}


def cases() -> list[Case]:
    one, two = PrivateReplacement(3, 1, 1.0, steps=2), PrivateReplacement(2, 2, 1.0, steps=2)
    return [
        Case(_NAME, By.EXACT, _exactly(one, _boxes(one), "one draw of 3 candidates")),
        Case(_NAME, By.EXACT, _exactly(one, _tables(one, _HOSTILE), "one draw of 3, hostile scores")),
        Case(_NAME, By.EXACT, _exactly(two, _boxes(two), "two draws of 2 candidates")),
        Case(_NAME, By.EXACT, _range),
        Case(_NAME, By.EXACT, _rho),
        Case(_NAME, By.EXACT, _at_delta),
        Case(_NAME, By.DISTRIBUTION, _sampler),
        *(look.case() for look in from_outside()),
    ]


def twins() -> list[Twin]:
    one, many = PrivateReplacement(3, 1, 1.0, steps=2), PrivateReplacement(15, 1, 2.5, steps=2)
    signed, three = PrivateReplacement(8, 1, 1.0, steps=2), PrivateReplacement(2, 3, 3.0, steps=2)
    full = Mislabelled("replacement-at-the-full-rate", PrivateReplacement(15, 1, 5.0, steps=2), many.guarantee)
    as_one = Mislabelled("draws-charged-as-one", three, PrivateReplacement(2, 1, 1.0).guarantee)
    known, largest = CandidatesFromRecords(one), CandidatesFromRecords(one, kept=2)
    redrawn, below = RedrawnReplacement(many), SignedScores(signed)
    undefined = _tables(one, (math.nan, 0.0, 1.0))
    undefined = [table for table in undefined if not np.isnan(table).all()]
    found: list[tuple[check.Finite, Sequence[Any], str]] = [
        (known, undefined, "only items whose similarity is defined can be drawn, and one user decides which"),
        (largest, undefined, "the largest similarities are kept, so that one user takes an item off the list"),
        (full, _corners(15), "without the 2 in the exponent, as if one user moved all scores the same way"),
        (below, _corners(8, low=-1.0), "scores from -1 to 1, with the noise for scores from 0 to 1"),
        (redrawn, _corners(15), "drawn again on a retry, for one charge"),
        (as_one, _boxes(three, steps=1), "three source items for the charge of one"),
    ]
    return [
        *(Twin(twin.name, _NAME, fault, _caught(twin, inputs)) for twin, inputs, fault in found),
        *(
            Twin(f"printed-scale-{name}", _NAME, example[2], _shared(name))
            for name, example in COUNTER_EXAMPLES.items()
        ),
        Twin("printed-scale-of-each-database", _NAME, "noise scaled to what this very database changes by", _own_scale),
        Twin(PrintedRate.name, _NAME, "a draw whose rate is scaled to this very database", _rate),
        *(look.twin() for look in from_outside()),
    ]


def from_outside() -> list[FromOutside]:
    return [FromOutside(PrivateReplacement(3, 2, 2.5), _empirical)]


def _tables(mechanism: PrivateReplacement, values: Sequence[float]) -> list[NDArray[np.float64]]:
    """Every table of scores whose cells are one of ``values``."""
    shape = (mechanism.draws, mechanism.candidates)
    return [np.array(cells).reshape(shape) for cells in product(values, repeat=shape[0] * shape[1])]


def _boxes(mechanism: PrivateReplacement, *, steps: int | None = None) -> list[NDArray[np.float64]]:
    return _tables(mechanism, np.linspace(0.0, 1.0, 1 + (steps or mechanism.steps)).tolist())


def _corners(candidates: int, low: float = 0.0) -> list[NDArray[np.float64]]:
    """One candidate at the top and the others at the bottom, and the reverse: enough to refute, for many candidates."""
    top = np.where(np.eye(candidates) > 0.0, 1.0, low)
    return [row[None, :] for row in np.concatenate([top, 1.0 + low - top])]


def _exactly(mechanism: PrivateReplacement, inputs: Sequence[Any], case: str) -> Check:
    each = closed_forms.exponential((-1, 1), mechanism.candidates, mechanism.each / 2.0)
    return lambda noise, draws: check.exactly(mechanism, inputs, case=case, reference=mechanism.draws * each, note=_WHY)


def _range(noise: Noise, draws: Draws) -> Finding:
    mechanism = PrivateReplacement(3, 1, 1.0, steps=2)
    return check.exactly(mechanism, _boxes(mechanism), measure=Measure.RANGE, case="one draw of 3 candidates")


def _composed() -> PrivateReplacement:
    return PrivateReplacement(2, 3, 1.0, 0.02, steps=1)


def _rho(noise: Noise, draws: Draws) -> Finding:
    mechanism = _composed()
    reference = mechanism.draws * closed_forms.exponential_rho(mechanism.candidates, mechanism.each / 2.0)
    case, note = "three draws of 2 candidates, composed as zCDP", "attained as epsilon falls to 0"
    return check.exactly(mechanism, _boxes(mechanism), measure=Measure.RHO, case=case, reference=reference, note=note)


def _at_delta(noise: Noise, draws: Draws) -> Finding:
    mechanism = _composed()
    reference = coins_epsilon(mechanism.draws, mechanism.each / 2.0, mechanism.delta)
    case, note = "three draws of 2 candidates, at their delta", "a bound by rho is not attained"
    return check.exactly(mechanism, _boxes(mechanism), case=case, reference=reference, note=note)


def coins_epsilon(draws: int, loss: float, delta: float) -> float:
    """The epsilon at ``delta`` of so many coins that fall heads with e^loss / (1 + e^loss) or, under the other law, tails.

    With j heads the loss is (2j - draws) loss, so delta(epsilon) is a sum over a binomial law.
    """
    heads = 1.0 / (1.0 + math.exp(-loss))

    def missed(epsilon: float) -> float:
        return math.fsum(
            math.comb(draws, j)
            * heads**j
            * (1.0 - heads) ** (draws - j)
            * max(0.0, -math.expm1(epsilon - (2 * j - draws) * loss))
            for j in range(draws + 1)
        )

    low, high = 0.0, draws * loss
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (low, middle) if missed(middle) <= delta else (middle, high)
    return high


def _sampler(noise: Noise, draws: Draws) -> Finding:
    mechanism, scores = PrivateReplacement(4, 1, 3.0), np.array([[0.0, 0.1, 0.9, math.nan]])
    # so many source items at once: each of them is drawn as one alone would be
    many = PrivateReplacement(4, draws.batched, 3.0 * draws.batched)
    counts = distribution.counts_of(many.release(np.tile(scores, (draws.batched, 1)), noise).value, 4)
    corners = np.stack([mechanism.pmf(table) for table in _tables(mechanism, (0.0, 1.0))])
    return check.sampled(
        mechanism,
        distribution.p_value(counts, mechanism.pmf(scores)),
        distribution.p_value(counts, distribution.off_by(mechanism).pmf(scores)),
        loss=exact.worst_loss(corners),
        draws=draws.batched,
        case="one draw of 4 candidates",
    )


def _empirical(mechanism: Any, noise: Noise, draws: Draws) -> Finding:
    """Many tables of scores in one release, with as many times the epsilon: each is drawn as one alone would be."""
    here, real = np.eye(3)[[0, 0]], getattr(mechanism, "runs", mechanism)
    many = replace(real, draws=real.draws * _TOGETHER, epsilon=real.epsilon * _TOGETHER)

    def drawn(scores: NDArray[np.float64]) -> NDArray[np.int64]:
        times, tables = -(-draws.single // _TOGETHER), np.tile(scores, (_TOGETHER, 1))
        chosen = np.concatenate([many.release(tables, noise).value.reshape(-1, 2) for _ in range(times)])
        return np.asarray(chosen[: draws.single] @ np.array([3, 1]), dtype=np.int64)

    bound = empirical.lower_bound_by_label(drawn(here), drawn(1.0 - here))
    return check.from_below(mechanism, bound, case="two draws of 3 candidates, opposite scores")


def _caught(twin: check.Finite, inputs: Sequence[Any]) -> Check:
    return lambda noise, draws: check.exactly(twin, inputs, case=f"{len(inputs)} tables of scores, every pair")


def _with(name: str) -> tuple[Rows, Rows]:
    """The database of a counter-example with its user, and without."""
    rows, user, _ = COUNTER_EXAMPLES[name]
    return [*rows, user], rows


def _shared(name: str) -> Check:
    twin = PrintedScale(f"printed-scale-{name}", generous=True)
    return lambda noise, draws: check.judged(
        twin,
        f"{len(_with(name)[0])} users, one of them removed",
        Measure.EPSILON,
        twin.loss(*_with(name)),
        note="both given the scale of the larger database",
    )


def _own_scale(noise: Noise, draws: Draws) -> Finding:
    twin, tables = PrintedScale("printed-scale-of-each-database"), _with("dropped-term")
    seen = ", ".join(f"{twin.loss_at(output, *tables):.3g} at {output:g}" for output in (1.0, 2.0, 10.0))
    note = f"the loss grows with the output: {seen}"
    return check.judged(twin, "101 users who agree, one more added", Measure.EPSILON, twin.loss(*tables), note=note)


def rivals() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The 101 users who agree on items 0 and 1, and one more; two of them rated a third item, in opposite ways."""
    tables = [np.column_stack([np.array(rows), np.zeros(len(rows))]) for rows in _with("dropped-term")]
    for table in tables:
        table[:2, 2] = 1.0
    return tables[0], tables[1]


def _rate(noise: Noise, draws: Draws) -> Finding:
    return check.exactly(PrintedRate(), rivals(), case="101 users who agree, one more added")
