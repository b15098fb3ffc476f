"""What an entity's gate found, for its own eyes: what was taken, what held-out cells say, what the controls say."""

import math
from collections.abc import Iterator, Mapping

from tacit.cli.output import counted
from tacit.entity.blend import BlendedFit, BlendReport
from tacit.entity.gate import CONSTANT, DATA_FREE, GateReport
from tacit.entity.local_fit import LocalFit

_NAMES = {"local": "own rows", "blend": "blend", "global": "shared factors"}
_TAKEN = {
    "local": "your own rows alone",
    "blend": "the blend of your own rows with the shared model",
    "global": "the shared factors",
}


def gate_lines(fitted: LocalFit | BlendedFit) -> Iterator[str]:
    """Private, all of it. A blend is taken where nothing speaks against it: whether it knows anything, the controls tell."""
    yield "The gate (private: computed from your users' rows without noise; to show it to anybody is a release)"
    report = fitted.report
    if isinstance(report, BlendReport):
        yield f"  taken: {_TAKEN['blend' if report.keeps_blend else 'local']}"
        apart = f"; blend less own rows {report.difference:+.4f} ± {report.stderr:.4f}" if report.compared > 1 else ""
        how = f"NDCG of 20 items, higher is better; {counted(report.compared, 'user')}"
        yield from _found(report.means, how, "the blend", report.informative, apart)
    elif isinstance(report, GateReport):
        yield f"  taken: {_TAKEN[report.chosen]}"
        how = f"{report.measure}, lower is better; {counted(report.cells, 'cell')}"
        yield from _found(report.scores, how, "the shared factors", report.informative)
    else:
        yield f"  taken: {_TAKEN['local']}"
        yield "  held out: nothing; the shared model says itself that there is no information at this budget"


def _found(scores: Mapping[str, float], how: str, what: str, beaten: bool, more: str = "") -> Iterator[str]:
    if any(math.isnan(score) for score in scores.values()):
        yield "  held out: nothing could be, so nothing speaks against the shared model, or for it"
        return
    yield f"  held out ({how}): {_figures(scores, _NAMES)}{more}"
    verdict = f"beaten by {what}" if beaten else f"not both beaten by {what}: the release does not show here"
    yield f"  controls: {_figures(scores, {DATA_FREE: 'noise without data', CONSTANT: 'constant'})}; {verdict}"


def _figures(scores: Mapping[str, float], names: Mapping[str, str]) -> str:
    return ", ".join(f"{told} {scores[name]:.4f}" for name, told in names.items() if name in scores)
