"""The baseline to beat: ig-sig, which is told nothing about the user, and so costs her nothing; also with our exact weights.

For every eta: is the best method that uses the signal better, by more than choosing the best of several explains?
"""

from collections.abc import Iterable, Iterator

from tacit.evaluation.multi_selection.deciding import share
from tacit.evaluation.multi_selection.losses import D_F, D_I, Case, Losses
from tacit.evaluation.multi_selection.plan import DRAWS, IG_SIG_EXACT
from tacit.evaluation.result import Claim

BASELINE = "ig-sig"
FREE = (BASELINE, IG_SIG_EXACT)
STATED_BY = "tacit, against ig-sig"
K = 5
_ERRORS = 3.0  # not 2: the best of about a dozen was chosen by the same trials


def verdicts(found: Losses, etas: Iterable[float]) -> Iterator[Claim]:
    """One for each eta and measure, at k = 5; against the best of what needs no signal, whatever its local model."""
    for measure in (D_I, D_F):
        free = best([case for case in _cases(found, measure) if case.method in FREE], found)
        for eta in etas:
            told = best([case for case in _cases(found, measure) if case.eta == eta], found)
            gap, saved = found.gap(told, free), found.saved(told, free)
            yield Claim(
                STATED_BY,
                f"eta={eta:g}: the best method that uses the signal has a lower {measure} than the best that does not",
                gap.below(0.0, _ERRORS),
                f"{_named(told)} {found.mean(told).value:.4f}, {_named(free)} {found.mean(free).value:.4f}; "
                f"lower by {share(saved)}; difference {gap}",
            )


def best(cases: list[Case], found: Losses) -> Case:
    return min(cases, key=lambda case: found.mean(case).value)


def _cases(found: Losses, measure: str) -> list[Case]:
    return [case for case in found.cases(measure) if case.k == K and case.draws == DRAWS]


def _named(case: Case) -> str:
    return f"{case.method} with {case.local_model}" if case.local_model else case.method
