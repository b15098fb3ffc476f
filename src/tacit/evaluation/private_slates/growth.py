"""Epsilon and jitter as the catalogue grows, by the theorem and by the paper's bound; and what many slates cost together."""

from collections.abc import Iterator

from tacit.evaluation.part import Part
from tacit.evaluation.private_slates import names, paper
from tacit.evaluation.result import Claim, Row
from tacit.guarantees import epsilon_of_rho
from tacit.mechanisms.slates import natural_epsilon, published_epsilon, published_sigma_for, sigma_for

ITEMS = (10, 100, 1000, 10_000, 100_000, 1_000_000)
EPSILON = 1.0
SLATES = (1, 10, 100, 1000, 10_000)
EACH, DELTA = 0.1, 1e-6
COST, JITTER, TOGETHER = "epsilon of the jitter for epsilon 1", "sigma for epsilon 1", "epsilon of slates at .1 each"
TIGHT, BASIC = "zCDP of a bounded range", "basic composition"


def growth(items: int) -> Part:
    """``items``: the size of the catalogue at hand, which is looked at as well."""
    return Part((*_bounds(sorted({*ITEMS, items})), *_many()), tuple(_claims(items)))


def _bounds(sizes: list[int]) -> Iterator[Row]:
    sigma = sigma_for(EPSILON)
    for n in sizes:
        yield Row(names.NATURAL, {"items": n}, COST, natural_epsilon(1.0, sigma))
        yield Row(names.PUBLISHED, {"items": n}, COST, published_epsilon(1.0, sigma, n))
        yield Row(names.NATURAL, {"items": n}, JITTER, sigma)
        yield Row(names.PUBLISHED, {"items": n}, JITTER, published_sigma_for(EPSILON, n))


def together(slates: int, each: float = EACH, delta: float = DELTA) -> float:
    """What ``slates`` slates cost, each of range ``each``: each^2/8 in zCDP, as an epsilon at delta; never above the sum."""
    return min(slates * each, epsilon_of_rho(slates * each**2 / 8.0, delta))


def _many() -> Iterator[Row]:
    for slates in SLATES:
        yield Row(TIGHT, {"slates": slates}, TOGETHER, together(slates))
        yield Row(BASIC, {"slates": slates}, TOGETHER, slates * EACH)


def _claims(items: int) -> Iterator[Claim]:
    sigma, asked = sigma_for(EPSILON), published_sigma_for(EPSILON, items)
    costs = [published_epsilon(1.0, sigma, n) for n in ITEMS]
    yield Claim(
        paper.NAME,
        "the privacy budget may become large: by the paper's bound it grows with the catalogue, at the same jitter",
        costs == sorted(costs) and costs[-1] > 10.0 * costs[0],
        f"sigma {sigma:.3f}: {', '.join(f'{cost:.4g} at {n:,} items' for n, cost in zip(ITEMS, costs, strict=True))}",
    )
    here = published_epsilon(1.0, sigma, items)
    yield Claim(
        paper.OURS,
        "the whole slate costs log(1 + 1/sigma) whatever the catalogue, less than the paper's bound asks for its eigenvalue step",
        natural_epsilon(1.0, sigma) < min(costs) and natural_epsilon(1.0, sigma) <= EPSILON + 1e-12,
        f"sigma {sigma:.3f}: epsilon {natural_epsilon(1.0, sigma):.4g} for the slate, {here:.4g} for the step at {items:,} items; "
        f"sigma for epsilon 1: {sigma:.3f} and {asked:.4g}, {asked / sigma:.0f} times as much",
    )
    found = together(100)
    yield Claim(
        paper.OURS,
        "100 slates at epsilon .1 each cost less than a quarter of their sum, at delta 1e-6",
        found < 0.25 * 100 * EACH,
        f"{found:.6f} instead of {100 * EACH:g}; 10 slates: {together(10):.3f} instead of {10 * EACH:g}",
    )
