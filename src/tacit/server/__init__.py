"""The server: sees released values and public data only. It cannot reach a mechanism."""

from tacit.models.policy_choice import Spread
from tacit.server.algorithms import Algorithm, LocalModel, Settings
from tacit.server.blind_tokens import BlindTokens, OnDisk, PlainTokens
from tacit.server.clicks import ClickEstimate, click_estimate
from tacit.server.counterfactual import Estimate, Exploration, Explored, estimate
from tacit.server.federation import Federation, Verdict
from tacit.server.listings import Listings
from tacit.server.multi_selection import MultiSelection
from tacit.server.policies import View
from tacit.server.population import Population
from tacit.server.pricing import PriceRule, Ranking, ranked
from tacit.server.private_selection import PrivateSelection
from tacit.server.private_slates import PrivateSlates
from tacit.server.shuffled import SettledBatch, ShuffledSelection
from tacit.server.store_listings import listings_of

__all__ = [
    "Algorithm",
    "BlindTokens",
    "ClickEstimate",
    "Estimate",
    "Exploration",
    "Explored",
    "Federation",
    "Listings",
    "LocalModel",
    "MultiSelection",
    "OnDisk",
    "PlainTokens",
    "Population",
    "PriceRule",
    "PrivateSelection",
    "PrivateSlates",
    "Ranking",
    "Settings",
    "SettledBatch",
    "ShuffledSelection",
    "Spread",
    "Verdict",
    "View",
    "click_estimate",
    "estimate",
    "listings_of",
    "ranked",
]
