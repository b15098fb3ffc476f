"""The server: sees released values and public data only. It cannot reach a mechanism."""

from tacit.models.private_selection import Spread
from tacit.server.clicks import ClickEstimate, Estimate, Exploration, ExploredOffer, click_estimate, estimate
from tacit.server.federated_prototypes import Federation, Verdict
from tacit.server.listings import Listings, Population, PriceRule, Ranking, listings_of, ranked
from tacit.server.multi_selection import Algorithm, AnswerSettings, LocalModel, MultiSelection
from tacit.server.private_selection import PrivateSelection, View
from tacit.server.private_slates import PrivateSlates
from tacit.server.shuffled import BlindTokens, OnDisk, PlainTokens, SettledBatch, ShuffledSelection

__all__ = [
    "Algorithm",
    "AnswerSettings",
    "BlindTokens",
    "ClickEstimate",
    "Estimate",
    "Exploration",
    "ExploredOffer",
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
