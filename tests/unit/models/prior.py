"""The draws of the prior of `auto`, and V, laid open."""

from numpy.typing import ArrayLike

from tacit.models.arrays import Floats
from tacit.models.private_selection import Spread, Tastes, _values, prior_of


def prior_draws(public: ArrayLike, spread: Spread | Tastes, *, bids: ArrayLike | None = None) -> Floats:
    """The draws of the prior: a row for each candidate, whose mean is its public score."""
    prior = prior_of(public, spread, bids)
    return prior.draws(0, prior.size)


def value(
    public: ArrayLike, spread: Spread | Tastes, epsilon: float, *, bids: ArrayLike | None = None, most_d: int = 1
) -> Floats:
    """V(m, d) for every m (a row) and d (a column); -inf if d is above m."""
    prior = prior_of(public, spread, bids)
    return _values(prior, epsilon, min(most_d, prior.size))
