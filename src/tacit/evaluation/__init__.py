"""Each paper's tables and figures on data at hand, one run of each system, one report, and advice on which system fits."""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.evaluation.advice import Advice, Situation, advise, measured
    from tacit.evaluation.curve import Curve
    from tacit.evaluation.demonstration.all import demonstrations
    from tacit.evaluation.demonstration.demonstration import Demonstration
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.registry import SYSTEMS, curves, evaluate
    from tacit.evaluation.report import Report, write_html
    from tacit.evaluation.result import Claim, Result, Row
else:
    __getattr__, __dir__ = lazy(
        __name__,
        advice="Advice Situation advise measured",
        curve="Curve",
        effort="Effort",
        registry="SYSTEMS curves evaluate",
        report="Report write_html",
        result="Claim Result Row",
        **{"demonstration.all": "demonstrations", "demonstration.demonstration": "Demonstration"},
    )

__all__ = [
    "SYSTEMS",
    "Advice",
    "Claim",
    "Curve",
    "Demonstration",
    "Effort",
    "Report",
    "Result",
    "Row",
    "Situation",
    "advise",
    "curves",
    "demonstrations",
    "evaluate",
    "measured",
    "write_html",
]
