"""Choosing: from who holds the data, and how much of it there is, to a system, a mode, a guarantee and what may be expected."""

from tacit.evaluation.advice.advising import Advice, Verdict, advise
from tacit.evaluation.advice.decision import System, decide
from tacit.evaluation.advice.expectation import Expectation, Worth
from tacit.evaluation.advice.measured import Measured, measured
from tacit.evaluation.advice.situation import Holder, Situation, Wants

__all__ = [
    "Advice",
    "Expectation",
    "Holder",
    "Measured",
    "Situation",
    "System",
    "Verdict",
    "Wants",
    "Worth",
    "advise",
    "decide",
    "measured",
]
