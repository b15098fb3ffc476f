"""The curator: a trusted holder of raw ratings. It fits models, and releases slates, statistics and models of two domains."""

from tacit.curator.clicks import ClickCounts, ClickSum
from tacit.curator.cross_domain.domains import BothDomains
from tacit.curator.cross_domain.x_map import NXMap, PublishedXMap
from tacit.curator.curator import Curator
from tacit.curator.fit import PrivateTraining, factorise, fit
from tacit.curator.look_alikes import PrivateLookAlikes, genre_centre
from tacit.curator.private_slates.plan import Plan, plan
from tacit.curator.private_slates.routes import Route

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
    "factorise",
    "fit",
    "genre_centre",
    "plan",
]
