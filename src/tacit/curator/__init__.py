"""The curator: a trusted holder of raw ratings, who fits models from them and releases slates and statistics of them."""

from tacit.curator.clicks import ClickCounts, ClickSum
from tacit.curator.counterfactual import TermSum
from tacit.curator.curator import Curator
from tacit.curator.factorise import factorise
from tacit.curator.fit import PrivateTraining, fit
from tacit.curator.look_alikes import PrivateLookAlikes, genre_centre
from tacit.curator.slate_plan import Plan, plan
from tacit.curator.slate_routes import Route

__all__ = [
    "ClickCounts",
    "ClickSum",
    "Curator",
    "Plan",
    "PrivateLookAlikes",
    "PrivateTraining",
    "Route",
    "TermSum",
    "factorise",
    "fit",
    "genre_centre",
    "plan",
]
