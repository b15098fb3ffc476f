"""What another, public way to choose would have brought: from offers in which chance chose among all candidates.

Under `rr` and its like the probability of what was shown depends on private scores, and tells whether it was the best: no server
may see it (what devices do with it is in tacit.models.propensity). A `uniform` offer was decided by the server, costs no
epsilon, and shows each of its m candidates with probability 1/m, so that m times the target's probability of what was shown,
times its reward, is the target's reward on average. The reward is a click, known as a randomised bit only.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tacit.checks import positive
from tacit.errors import InvalidParameter
from tacit.ledger.clock import SECOND, Clock, now
from tacit.ledger.offers import GRACE
from tacit.messages.private_selection import Engagement, Impression, Offer, Rule
from tacit.server.clicks import reward

Target = Callable[
    [str, tuple[str, ...]], ArrayLike
]  # (context, candidates) -> the probability of each, from public data


class Explored(NamedTuple):
    """A uniform offer that was shown, and for which a bit was received. No token, no time."""

    context: str
    items: tuple[str, ...]
    shown: str
    bit: int


class Estimate(NamedTuple):
    """Clicks per offer, with their standard errors: by inverse propensities, and with these brought to a mean of 1.

    The first has no bias; the second a small one, and often a smaller error. NaN where there is nothing to tell it from.
    """

    value: float
    error: float
    normalised: float
    normalised_error: float
    offers: int


def publicly_best(context: str, items: tuple[str, ...]) -> Sequence[float]:
    """The target `public`: the candidates of an offer stand in falling order of their public scores."""
    return [1.0] + [0.0] * (len(items) - 1)


def estimate(explored: Iterable[Explored], click_epsilon: float, target: Target = publicly_best) -> Estimate:
    """Clicks per offer under a public ``target``, from uniform offers whose clicks were randomised at ``click_epsilon``.

    ``click_epsilon`` is in nats.
    """
    rows = list(explored)
    by_bit = {bit: reward(bit, click_epsilon) for bit in (0, 1)}
    weights = np.array([len(row.items) * _probability(target, row) for row in rows])
    rewards = np.array([by_bit[row.bit] for row in rows])
    n, total = len(rows), float(weights.sum()) if rows else 0.0
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, math.nan, 0)
    terms = weights * rewards
    value = float(terms.mean())
    error = float(terms.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if total <= 0.0:
        return Estimate(value, error, math.nan, math.nan, n)
    normalised = float(terms.sum()) / total
    spread = float(np.sqrt(np.sum((weights * (rewards - normalised)) ** 2))) / total
    return Estimate(value, error, normalised, spread, n)


def _probability(target: Target, row: Explored) -> float:
    law = np.asarray(target(row.context, row.items), dtype=np.float64)
    if law.shape != (len(row.items),) or not (law.min() >= 0.0 and abs(law.sum() - 1.0) < 1e-9):
        raise InvalidParameter("a target gives one probability for each candidate, 1 in all.")
    return float(law[row.items.index(row.shown)])


class Exploration:
    """Follows uniform offers from offer to click, in memory: what is under way when a process ends is left out, whatever it was.

    Tokens are forgotten as soon as their bit has come, or when it cannot come any more; ``rows`` counts what has been explored.
    ``click_epsilon`` is in nats.
    """

    def __init__(self, click_epsilon: float, *, clock: Clock = now) -> None:
        self.click_epsilon = positive("click_epsilon", click_epsilon)
        self.rows: Counter[Explored] = Counter()
        self._open: dict[str, tuple[Explored, int]] = {}  # by token: until when
        self._clock, self._lock = clock, Lock()

    def offered(self, offer: Offer, context: str) -> None:
        """Notes a uniform offer of one slot, whose probabilities are known; refuses others."""
        if offer.policy.rule is not Rule.UNIFORM or offer.policy.slots != 1:
            raise InvalidParameter("only uniform offers of one slot are explored: of others no probability is known.")
        with self._lock:
            self._forget()
            self._open[offer.token] = Explored(context, offer.items, "", -1), offer.expires

    def shown(self, impression: Impression) -> None:
        """Notes which item of an explored offer was shown."""
        with self._lock:
            found = self._open.get(impression.token)
            if found is not None:
                self._open[impression.token] = found[0]._replace(shown=impression.items[0]), found[1]

    def engaged(self, engagement: Engagement) -> None:
        """Notes the randomised click of an explored offer that was shown."""
        with self._lock:
            found = self._open.pop(engagement.token, None)
            if found is not None and found[0].shown:
                self.rows[found[0]._replace(bit=engagement.bit)] += 1

    def estimate(self, target: Target = publicly_best) -> Estimate:
        """Clicks per offer under a public ``target``."""
        with self._lock:
            rows = self.rows.copy()
        return estimate(rows.elements(), self.click_epsilon, target)

    def _forget(self) -> None:
        """The oldest stand first: offers of one server expire in the order in which they were made."""
        late = self._clock() // SECOND - 2 * GRACE  # a report may come within one day, its bit in another
        for token in list(islice(self._open, 2)):
            if self._open[token][1] < late:
                del self._open[token]
