"""One part of the evaluation: the same shape as everywhere."""

from tacit.evaluation.part import Part, Progress, Run, untold

__all__ = ["Part", "Progress", "Run", "untold"]
