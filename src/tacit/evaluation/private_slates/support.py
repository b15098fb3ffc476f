"""Must a kernel be strictly positive definite to be private? On a small case all slates are listed, with a user and without her."""

from collections.abc import Iterator

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_slates import names, paper
from tacit.evaluation.private_slates.films import Floats
from tacit.evaluation.result import Claim, Row
from tacit.mechanisms import NaturalSlate, TemperedSlate
from tacit.models.dpp.laws import k_dpp_law

WITHOUT_JITTER = "k-DPP without jitter"
TOLD = "slates that tell the user is there"
LOSS = "largest log ratio"
EPSILON = 1.0
LIKES = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0]], dtype=np.float64)
USER = np.array([[0, 0, 0, 1]], dtype=np.float64)  # the only one who likes the last film
GENRES = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float64)  # a kernel of rank 2: not positive definite


def support() -> Part:
    with_her = np.concatenate([LIKES, USER])
    natural, tempered = NaturalSlate(4, 2, EPSILON), TemperedSlate(GENRES, 2, EPSILON, low=0.0, high=10.0)
    laws = {
        WITHOUT_JITTER: (_law(LIKES), _law(with_her)),
        names.NATURAL: (natural.pmf(LIKES), natural.pmf(with_her)),
        names.TEMPERED: (tempered.pmf(LIKES), tempered.pmf(with_her)),
    }
    told = {name: int(np.count_nonzero((without == 0.0) != (law == 0.0))) for name, (without, law) in laws.items()}
    losses = {name: _loss(*law) for name, law in laws.items() if not told[name]}
    rows = [Row(name, {}, TOLD, float(count)) for name, count in told.items()]
    rows += [Row(name, {}, LOSS, loss) for name, loss in losses.items()]
    return Part(tuple(rows), tuple(claims(told, losses)))


def claims(told: dict[str, int], losses: dict[str, float]) -> Iterator[Claim]:
    yield Claim(
        paper.NAME,
        "a kernel of users' records without jitter is not private: some slates can be drawn only if a user is there",
        told[WITHOUT_JITTER] > 0 and told[names.NATURAL] == 0,
        f"{told[WITHOUT_JITTER]} of 6 slates without jitter, {told[names.NATURAL]} with it "
        f"(largest log ratio {losses.get(names.NATURAL, np.inf):.3f}, epsilon {EPSILON:g})",
    )
    yield Claim(
        paper.NAME,
        "only a strictly positive definite kernel is private (Theorem 3.1, taken for kernels of every kind)",
        told[names.TEMPERED] > 0 or losses[names.TEMPERED] > EPSILON,
        "a tempered kernel of rank 2 for 4 films is private: what cannot be drawn is decided by public genres "
        f"(largest log ratio {losses.get(names.TEMPERED, np.inf):.3f}, epsilon {EPSILON:g})",
    )


def _law(likes: Floats) -> Floats:
    rows = likes / np.linalg.norm(likes, axis=1, keepdims=True)
    return k_dpp_law(rows.T @ rows, 2, exact=True)


def _loss(one: Floats, other: Floats) -> float:
    both = one > 0.0
    return float(np.abs(np.log(one[both] / other[both])).max())
