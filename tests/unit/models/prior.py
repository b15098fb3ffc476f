"""The draws of the prior of `auto`, laid open."""

from numpy.typing import ArrayLike

from tacit.models.arrays import Floats
from tacit.models.private_selection import Spread, Tastes, prior_of


def prior_draws(public: ArrayLike, spread: Spread | Tastes, *, bids: ArrayLike | None = None) -> Floats:
    """The draws of the prior: a row for each candidate, whose mean is its public score."""
    prior = prior_of(public, spread, bids)
    return prior.draws(0, prior.size)
