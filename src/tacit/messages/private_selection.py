"""The messages of private selection: what crosses between device, shuffler and server.

device  -> server    OfferRequest      a context, and whether she consents
server  -> device    Offer             candidates, public scores, a policy, a token; nothing of it is private
device  -> server    Impression        token and items: what was shown, exactly
device  -> shuffler  ShuffledReport    item, group and an unlinkable token
shuffler-> server    Batch             the reports of one group, in the order of their tokens
device  -> server    Engagement        a click, as a randomised bit
"""

from tacit.messages.private_selection_impression import Batch, Engagement, Impression, ShuffledReport
from tacit.messages.private_selection_offer import BatchTerms, Candidate, Offer, OfferRequest
from tacit.messages.private_selection_policy import MOST_CANDIDATES, MOST_EPSILON, Bounding, Policy, Rule

__all__ = [
    "MOST_CANDIDATES",
    "MOST_EPSILON",
    "Batch",
    "BatchTerms",
    "Bounding",
    "Candidate",
    "Engagement",
    "Impression",
    "Offer",
    "OfferRequest",
    "Policy",
    "Rule",
    "ShuffledReport",
]
