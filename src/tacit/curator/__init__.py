"""The curator: a trusted holder of raw ratings, who fits models from them and releases slates, statistics and transfers of them."""

from tacit.curator.clicks import ClickCounts, ClickSum
from tacit.curator.counterfactual import TermSum
from tacit.curator.cross_domain_rows import BothDomains
from tacit.curator.curator import Curator
from tacit.curator.factorise import factorise
from tacit.curator.fit import PrivateTraining, fit
from tacit.curator.look_alikes import PrivateLookAlikes, genre_centre
from tacit.curator.nx_map import NXMap
from tacit.curator.published_x_map import PublishedXMap
from tacit.curator.slate_plan import Plan, plan
from tacit.curator.slate_routes import Route

__all__ = [
    "BothDomains",
    "ClickCounts",
    "ClickSum",
    "Curator",
    "NXMap",
    "Plan",
    "PrivateLookAlikes",
    "PrivateTraining",
    "PublishedXMap",
    "Route",
    "TermSum",
    "factorise",
    "fit",
    "genre_centre",
    "plan",
]
