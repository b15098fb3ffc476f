"""What the figures decide: statements of the paper, and of what goes beyond it. Of two means one is ahead by 2 standard errors."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

from tacit.evaluation.private_slates import names, paper
from tacit.evaluation.private_slates.films import Films
from tacit.evaluation.private_slates.measures import COVERAGE, GENRES, POPULARITY, covered
from tacit.evaluation.private_slates.table import Measured
from tacit.evaluation.private_slates.tries import INF
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import Estimate, difference

Found = Mapping[tuple[str, float | str], Measured]
NEXT_TO = 0.03
NO_LESS = 0.01
_ONE = 1.0


def verdicts(films: Films, found: Found, cap: float) -> Iterator[Claim]:
    yield from _balance(films, found)
    yield from _usable(found)
    yield from _alternatives(found)
    yield from _beyond(found, cap)


def ahead(found: Found, one: tuple[str, float | str], other: tuple[str, float | str], metric: str) -> Estimate:
    """How far ``one`` is ahead; slates are independent, and a slate without chance has no error of its own."""
    first, second = found[one].estimate(metric), found[other].estimate(metric)
    errors = [error for error in (first.stderr, second.stderr) if math.isfinite(error)]
    return Estimate(first.value - second.value, math.hypot(*errors), min(first.n, second.n))


def _balance(films: Films, found: Found) -> Iterator[Claim]:
    apart = ahead(found, (names.K_DPP, INF), (names.TOP, INF), GENRES)
    less = ahead(found, (names.TOP, INF), (names.K_DPP, INF), POPULARITY)
    yield Claim(
        paper.NAME,
        "a determinantal point process balances popularity and diversity: more diverse than top-k, more popular than chance",
        apart.above(0.0) and ahead(found, (names.K_DPP, INF), (names.UNIFORM, 0.0), POPULARITY).above(0.0),
        f"k-DPP of co-likes against top-k: genre diversity {apart}; popularity {_level(found, names.K_DPP, INF)}, "
        f"uniform {_level(found, names.UNIFORM, 0.0)}",
    )
    yield Claim(
        paper.OURS,
        "even without privacy a k-DPP of co-likes spends most of its slots on the long tail: less than half of top-k's popularity",
        less.above(0.5),
        f"popularity {_level(found, names.K_DPP, INF)}",
    )
    # the same held-out users judge both slates
    greedy, top = (covered(films, found[name, INF].tried.slates)[0] for name in (names.GREEDY, names.TOP))
    gain = difference(greedy, top)
    yield Claim(
        paper.OURS,
        "the greedy slate of co-likes has something for more held-out users than the most liked films",
        gain.above(0.0),
        f"coverage {gain}, {gain.n:,} held-out users",
    )


def _usable(found: Found) -> Iterator[Claim]:
    ours = ahead(found, (names.NATURAL, _ONE), (names.UNIFORM, 0.0), POPULARITY)
    theirs = ahead(found, (names.PUBLISHED, _ONE), (names.UNIFORM, 0.0), POPULARITY)
    yield Claim(
        paper.OURS,
        f"by the paper's bound slates at epsilon 1 are next to uniform: less than {NEXT_TO:g} more popular",
        theirs.below(NEXT_TO),
        f"popularity over uniform slates {theirs}; the bound covers the eigenvalue step only",
    )
    yield Claim(
        paper.OURS,
        "by the theorem the same slates are usable at epsilon 1: more popular than chance, and than by the paper's bound",
        ours.above(0.0) and ahead(found, (names.NATURAL, _ONE), (names.PUBLISHED, _ONE), POPULARITY).above(0.0),
        f"popularity over uniform slates {ours}",
    )


def _alternatives(found: Found) -> Iterator[Claim]:
    for metric in (POPULARITY, COVERAGE):
        gain = ahead(found, (names.SPARSE, _ONE), (names.PUBLISHED, _ONE), metric)
        more = ahead(found, (names.SPARSE, _ONE), (names.NATURAL, _ONE), metric)
        yield Claim(
            paper.NAME,
            f"with sparse vector in front the trade-off is better: {metric} at epsilon 1",
            gain.above(0.0) and more.above(0.0),
            f"over the natural slate by the paper's bound {gain}, by the theorem {more}",
        )


def _beyond(found: Found, cap: float) -> Iterator[Claim]:
    shared = sorted(_epsilons(found, names.GUMBEL) & _epsilons(found, names.TEMPERED))
    diverse = {one: ahead(found, (names.TEMPERED, one), (names.GUMBEL, one), GENRES) for one in shared}
    yield Claim(
        paper.OURS,
        "tempered slates are more diverse than Gumbel top-k at equal epsilon",
        bool(diverse) and all(gain.above(0.0) for gain in diverse.values()),
        "genre diversity " + "; ".join(f"epsilon {one:g}: {gain}" for one, gain in diverse.items()),
    )
    best = ahead(found, (names.TEMPERED, cap), (names.NATURAL, 3.0), POPULARITY)
    yield Claim(
        paper.OURS,
        f"with public similarity, tempered slates at epsilon {cap:g} (the limit of floats) are more popular than natural ones at 3",
        best.above(0.0),
        f"popularity {_level(found, names.TEMPERED, cap)} and {_level(found, names.NATURAL, 3.0)}",
    )
    rising = sorted(_epsilons(found, names.SEARCHED))
    gains = {
        more: ahead(found, (names.SEARCHED, more), (names.SEARCHED, less), POPULARITY)
        for less, more in pairwise(rising)
    }
    yield Claim(
        paper.OURS,
        f"tempered slates that find their range are no less popular (by {NO_LESS:g} or more) where epsilon is larger",
        bool(gains) and all(gain.above(-NO_LESS) for gain in gains.values()),
        f"popularity {', '.join(_level(found, names.SEARCHED, one) for one in rising)} at epsilon "
        f"{', '.join(f'{one:g}' for one in rising)}; steps {'; '.join(map(str, gains.values()))}",
    )
    two = ahead(found, (names.TWO_STAGE, _ONE), (names.NATURAL, _ONE), POPULARITY)
    yield Claim(
        paper.OURS,
        "candidates first, then a natural slate among them: more popular than a natural slate of all films at the same epsilon, 1",
        two.above(0.0),
        f"popularity {two}",
    )
    release = ahead(found, (names.LAPLACE, _ONE), (names.NATURAL, _ONE), POPULARITY)
    kept = ahead(found, (names.LAPLACE, _ONE), (names.TOP, INF), GENRES)
    yield Claim(
        paper.OURS,
        "slates of one release of counts at epsilon 1 are more popular than a natural slate and more diverse than top-k",
        release.above(0.0) and kept.above(0.0),
        f"popularity {release}; genre diversity over top-k {kept}",
    )


def _level(found: Found, name: str, epsilon: float | str) -> str:
    return f"{found[name, epsilon].estimate(POPULARITY).value:.3f}"


def _epsilons(found: Found, method: str) -> set[float]:
    return {epsilon for name, epsilon in found if name == method and isinstance(epsilon, float)}
