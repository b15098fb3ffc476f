"""The curator: a trusted holder of raw ratings, who fits models from them and releases statistics about them."""

from tacit.curator.clicks import ClickCounts, ClickSum
from tacit.curator.counterfactual import TermSum
from tacit.curator.factorise import factorise
from tacit.curator.fit import PrivateTraining, fit

__all__ = ["ClickCounts", "ClickSum", "PrivateTraining", "TermSum", "factorise", "fit"]
