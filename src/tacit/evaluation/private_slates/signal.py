"""How much of a natural slate is signal: slots that the records fill, the others are uniform. A look behind the curtain.

The number of signal slots is private. It is told here because the data are public; a curator must never export it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.evaluation.part import Part
from tacit.evaluation.private_slates import names, paper, reference
from tacit.evaluation.private_slates.drawn import NATURAL_EPSILONS
from tacit.evaluation.private_slates.films import Films, Floats
from tacit.evaluation.private_slates.measures import POPULARITY, measured, rows
from tacit.evaluation.private_slates.tries import K, noise_of
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Estimate, mean
from tacit.mechanisms import NaturalSlate
from tacit.mechanisms.slates import published_sigma_for, sigma_for
from tacit.models.dpp.laws import log_table

SLOTS = "signal slots"
ACCEPTED = "accepted proposals"  # share, of the exact sampler
UNIFORM_SHARE = "uniform share, by rule of thumb"
COPIES = (1, 10, 100)
COPIED_EPSILON = 0.1
NEAR_SLOTS = 0.15  # of 10: what another division of the users may change
NEAR_POPULARITY = 0.03
RULE_NEAR = 0.05


class Signal(NamedTuple):
    """The eigenvalues above 0 of the kernel of co-likes, and the catalogue that it is about."""

    log_values: Floats
    trace: float
    items: int

    def slots(self, sigma: float, k: int = K) -> Floats:
        """P(j signal slots), j = 0 .. k: weight e_j sigma^(k-j) C(n-j, k-j)."""
        j = np.arange(k + 1)
        # C(n-j, k-j) / C(n, k) is the product of (k-i)/(n-i) over i < j
        choices = np.concatenate([[0.0], np.cumsum(np.log((k - j[:-1]) / (self.items - j[:-1])))])
        logs = log_table(self.log_values, k)[:, -1] + (k - j) * np.log(sigma) + choices
        weights = np.exp(logs - logs.max())
        law: Floats = weights / weights.sum()
        return law

    def expected(self, sigma: float) -> float:
        return float(self.slots(sigma) @ np.arange(K + 1))

    def accepted(self, sigma: float, k: int = K) -> float:
        """The share of proposals that the exact sampler accepts: k! e_k(L) / (trace L)^k, L with the jitter."""
        all_values = np.full(self.items, np.log(sigma))
        all_values[: self.log_values.size] = np.logaddexp(self.log_values, np.log(sigma))
        whole = np.log(self.trace + self.items * sigma)
        return float(np.exp(log_table(all_values, k)[k, -1] + np.log(np.arange(1, k + 1)).sum() - k * whole))


def signal_of(films: Films) -> Signal:
    rows_of_users = films.contributions
    small = rows_of_users.T @ rows_of_users if films.items <= films.users else rows_of_users @ rows_of_users.T
    values = np.linalg.eigvalsh(small.toarray())
    values = values[values > 8.0 * len(values) * 2.0**-52 * values[-1]]
    return Signal(np.log(values), float(values.sum()), films.items)


def signal(films: Films, slates: int, seed: int) -> Part:
    one = signal_of(films)
    found = [*_slot_rows(films, one)]
    copied, popular = _copies(films, one, slates, seed)
    claims = [*_claims(films, one)]
    if films.name == reference.DATA:
        claims += _reference_claims(one, popular)
    notes = (
        "Signal slots and accepted proposals are private and told here as a diagnostic of public data only.",
        "Users copied r times make the kernel r times as large: slates are drawn with the jitter divided by r, the same law.",
    )
    return Part((*found, *copied), tuple(claims), notes)


def epsilon_of_copies(epsilon: float, copies: int) -> float:
    """The epsilon whose jitter is that of ``epsilon`` divided by ``copies``: log(1 + copies (e^epsilon - 1))."""
    return float(np.log1p(copies * np.expm1(epsilon)))


def rule_of_thumb(films: Films, epsilon: float) -> float:
    """The uniform share of a slate, about n/(n + N (e^epsilon - 1)) for n films and N users."""
    return float(films.items / (films.items + films.users * np.expm1(epsilon)))


def _slot_rows(films: Films, one: Signal) -> Iterator[Row]:
    for epsilon in NATURAL_EPSILONS:
        setting = {"epsilon": epsilon}
        for name, sigma in _sigmas(films.items, epsilon).items():
            yield Row(name, setting, SLOTS, one.expected(sigma))
            yield Row(name, setting, ACCEPTED, one.accepted(sigma))
        yield Row(names.NATURAL, setting, UNIFORM_SHARE, rule_of_thumb(films, epsilon))


def _sigmas(items: int, epsilon: float) -> dict[str, float]:
    return {names.NATURAL: sigma_for(epsilon), names.PUBLISHED: published_sigma_for(epsilon, items)}


def _copies(films: Films, one: Signal, slates: int, seed: int) -> tuple[list[Row], dict[int, Estimate]]:
    found: list[Row] = []
    popular: dict[int, Estimate] = {}
    for copies in COPIES:
        mechanism = NaturalSlate(films.items, K, epsilon_of_copies(COPIED_EPSILON, copies))
        noise = noise_of(seed, f"{names.NATURAL}, {copies} copies", COPIED_EPSILON)
        values = measured(films, mechanism.prepare(films.likes).release_many(slates, noise).value)
        setting: dict[str, int | float] = {"epsilon": COPIED_EPSILON, "copies": copies}
        found += rows(names.NATURAL, setting, values)
        found.append(Row(names.NATURAL, setting, SLOTS, one.expected(sigma_for(COPIED_EPSILON) / copies)))
        popular[copies] = mean(values[POPULARITY])
    return found, popular


def _claims(films: Films, one: Signal) -> Iterator[Claim]:
    ours, theirs = (one.expected(sigma) for sigma in _sigmas(films.items, 1.0).values())
    yield Claim(
        paper.OURS,
        "at epsilon 1 the theorem leaves most slots to the records, the paper's bound next to none",
        ours > K / 2.0 and theirs < 1.0,
        f"signal slots of {K}: {ours:.2f} and {theirs:.2f}",
    )
    apart = {
        epsilon: (1.0 - one.expected(sigma_for(epsilon)) / K, rule_of_thumb(films, epsilon))
        for epsilon in NATURAL_EPSILONS
    }
    yield Claim(
        paper.OURS,
        f"the uniform share of a slate is n/(n + N (e^epsilon - 1)), within {RULE_NEAR:g}",
        all(abs(share - rule) <= RULE_NEAR for share, rule in apart.values()),
        "; ".join(f"epsilon {epsilon:g}: {share:.3f} ({rule:.3f})" for epsilon, (share, rule) in apart.items()),
    )


def _reference_claims(one: Signal, popular: dict[int, Estimate]) -> Iterator[Claim]:
    for name, given in reference.SIGNAL.items():
        ours = one.expected(_sigmas(one.items, 1.0)[name])
        yield Claim(
            reference.NAME,
            f"signal slots of the {name} at epsilon 1: within {NEAR_SLOTS:g} of the reference",
            abs(ours - given) <= NEAR_SLOTS,
            f"{ours:.2f} ({given:.2f})",
        )
    for copies, (likes, given) in reference.REPLICATED.items():
        ours = one.expected(sigma_for(COPIED_EPSILON) / copies)
        yield Claim(
            reference.NAME,
            f"every user {copies} times, epsilon .1: popularity within {NEAR_POPULARITY:g}, slots within {NEAR_SLOTS:g}",
            abs(ours - given) <= NEAR_SLOTS and abs(popular[copies].value - likes) <= NEAR_POPULARITY,
            f"popularity {popular[copies].value:.3f} ± {popular[copies].stderr:.3f} ({likes:.3f}), slots {ours:.2f} ({given:.1f})",
        )
