"""The world `trained` judged by the truth: how good its models are, what rules gain, and whether shrinking private scores helps."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part
from tacit.evaluation.private_selection import paper, reference
from tacit.evaluation.private_selection.automatic import AUTO, chosen, first_response
from tacit.evaluation.private_selection.measures import percent, public_law
from tacit.evaluation.private_selection.rules import RR, Scored, by_click, rr
from tacit.evaluation.private_selection.selection_laws import Floats
from tacit.evaluation.private_selection.trained import Fit, trained
from tacit.evaluation.private_selection.worlds import World
from tacit.evaluation.result import Claim, Row, Setting
from tacit.evaluation.statistics import Estimate, difference, reduction

METRIC = "CTR lift, by the truth"
EPSILONS = (1.0, 3.0, 5.0)
MIXES = (0.25, 0.5, 0.75, 1.0)
SMALLER = (50_000, 200_000)
_AUC = {"truth": 0.75, "private model": 0.73, "public model": 0.61}
_NEAR = 0.02
_AUCTIONS = 2500


def truth(fit: Fit, effort: Effort, *, seed: int) -> Part:
    world = fit.world
    found = {"truth": fit.truth_auc, "private model": fit.private_auc, "public model": fit.public_auc}
    rows = [Row(name, {"world": world.name}, "area under the curve", value) for name, value in found.items()]
    claims = [
        Claim(
            reference.NAME,
            f"{world.name}: areas under the curve are 0.75 (truth), 0.73 (private) and 0.61 (public), within {_NEAR:g}",
            all(abs(found[name] - value) <= _NEAR for name, value in _AUC.items()),
            ", ".join(f"{name} {value:.3f}" for name, value in found.items()),
        )
    ]
    some = world.of(np.arange(len(world)) < _AUCTIONS)
    for epsilon in (*EPSILONS, np.inf):
        for name, law in _laws(some, by_click(some), epsilon):
            setting = {"world": world.name, "epsilon": "inf" if np.isinf(epsilon) else epsilon}
            rows.append(Row.of(name, METRIC, _gain(some, law), **setting))
    if effort is not Effort.QUICK:
        more, decided = _shrunk(seed)
        rows, claims = [*rows, *more], [*claims, *decided]
    return Part(tuple(rows), tuple(claims))


def _laws(world: World, scored: Scored, epsilon: float) -> Iterator[tuple[str, Floats]]:
    yield RR, rr(scored, epsilon)
    if np.isfinite(epsilon):
        yield AUTO, first_response(scored, epsilon, chosen(scored, world.spread, epsilon)[0])


def _clicks(world: World, law: Floats) -> Floats:
    real = world.private if world.truth is None else world.truth
    return np.asarray((law * real).sum(axis=1), dtype=np.float64)


def _gain(world: World, law: Floats) -> Estimate:
    found = reduction(_clicks(world, law), _clicks(world, public_law(world.public, world.mask)))
    return Estimate(0.0 - found.value, found.stderr, found.n)


def _shrunk(seed: int) -> tuple[list[Row], list[Claim]]:
    """Private scores mixed with public ones, from models of fewer impressions: a noisier model might gain from shrinking."""
    rows: list[Row] = []
    ahead, told = [], []
    for impressions in SMALLER:
        world = trained(_AUCTIONS, impressions, seed).world
        for epsilon in (1.0, 3.0, np.inf):
            laws = {mix: _mixed_law(world, mix, epsilon) for mix in MIXES}
            gains = {mix: _gain(world, law) for mix, law in laws.items()}
            setting: Setting = {
                "world": world.name,
                "impressions": impressions,
                "epsilon": "inf" if np.isinf(epsilon) else epsilon,
            }
            rows += [
                Row.of(AUTO if np.isfinite(epsilon) else RR, METRIC, gain, **setting, mix=mix)
                for mix, gain in gains.items()
            ]
            plain = _clicks(world, laws[1.0])
            apart = {mix: difference(_clicks(world, law), plain) for mix, law in laws.items() if mix < 1.0}
            ahead += [mix for mix, gap in apart.items() if gap.above(0.0)]
            best = max(gains, key=lambda mix: gains[mix].value)
            told.append(
                f"{impressions:,}, epsilon {epsilon:g}: best {best:g} {percent(gains[best])}, unmixed {percent(gains[1.0])}"
            )
    statement = "trained: mixing public into private scores is nowhere shown to gain, once m is chosen publicly"
    return rows, [Claim(paper.OURS, statement, not ahead, "; ".join(told))]


def _mixed_law(world: World, mix: float, epsilon: float) -> Floats:
    scored = by_click(replace(world, private=mix * world.private + (1.0 - mix) * world.public))
    *_, (_, law) = _laws(world, scored, epsilon)
    return law
