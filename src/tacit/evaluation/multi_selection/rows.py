"""From losses to rows of a result: means, paired differences to the baseline, shares kept, and the smallest k for a level."""

from collections.abc import Iterator

from tacit.evaluation.multi_selection.baseline import BASELINE
from tacit.evaluation.multi_selection.losses import D_F, D_I, Losses
from tacit.evaluation.multi_selection.plan import DRAWS, SIZES
from tacit.evaluation.result import Row
from tacit.evaluation.statistics import Estimate

LEVELS = (0.02, 0.03, 0.05, 0.1)  # of d_i


def loss_rows(found: Losses, **further: int | float | str) -> Iterator[Row]:
    """The mean of every case; ``further`` goes into every setting."""
    for measure in (D_I, D_F):
        for case in found.cases(measure):
            yield Row.of(case.method, measure, found.mean(case), **case.setting(), **further)


def comparison_rows(found: Losses) -> Iterator[Row]:
    """Against ig-sig, trial by trial (negative: better), and the share of the best utility that is kept."""
    for measure in (D_I, D_F):
        for case in found.cases(measure):
            rival = case._replace(method=BASELINE, eta=None)
            if case.draws != DRAWS or case.k not in SIZES:
                continue
            if case.method != BASELINE and rival in found:
                yield Row.of(case.method, f"{measure} against {BASELINE}", found.gap(case, rival), **case.setting())
            if measure == D_F or case.k == 1:
                yield Row.of(case.method, "kept", found.kept(case), **case.setting())


def level_rows(found: Losses) -> Iterator[Row]:
    """Figures 8 and 12: the smallest slate whose mean d_i is at most a level. No row where the largest slate does not reach it.

    The error is half the distance between the k that reach the level with the mean 1 error higher and 1 error lower.
    """
    curves: dict[tuple[str, float | None], dict[int, Estimate]] = {}
    for case in found.cases(D_I):
        if case.draws == DRAWS:
            curves.setdefault((case.method, case.eta), {})[case.k] = found.mean(case)
    for (method, eta), curve in curves.items():
        for level in LEVELS:
            k = _reaching(curve, level, 0.0)
            if k is None or len(curve) <= max(SIZES):
                continue
            low, high = _reaching(curve, level, -1.0), _reaching(curve, level, 1.0)
            error = 0.5 * (high - low) if low is not None and high is not None else None
            setting = {"level": level} if eta is None else {"eta": eta, "level": level}
            yield Row(method, setting, "smallest k", float(k), error, curve[k].n)


def _reaching(curve: dict[int, Estimate], level: float, errors: float) -> int | None:
    return next((k for k in sorted(curve) if curve[k].value + errors * curve[k].stderr <= level), None)
