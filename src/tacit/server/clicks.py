"""How often something was clicked, estimated from bits that devices randomised.

    click_estimate(received=10_000, ones=4_100, epsilon=1.0)         # clicks with a known error
    estimate(explored, click_epsilon=1.0, target=my_policy)          # clicks per offer under another public policy

There is no price per click. Billing per click would need each click exactly, and what a user reacts to is as private as what
was chosen for them. An offer with one candidate costs no epsilon, but a click on it is an answer about that candidate: only the
epsilon of the bit protects it.

Explored offers estimate how many clicks another public policy, the target, would have brought. Under `rr` and similar rules the
probability of the shown item depends on private scores, so the server must not see it. A `uniform` offer is the server's own
decision and costs no epsilon: it shows each of its m candidates with probability 1/m. Therefore the reward, times m, times the
target's probability of the shown item, equals the target's reward on average. The reward is a click, known only as a randomised
bit.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tacit.checks import positive, whole
from tacit.errors import InvalidParameter
from tacit.ledger.chain import GRACE, SECOND, Clock, now
from tacit.messages.private_selection import Engagement, Impression, Offer, Rule

# (context, candidates) -> the probability of each candidate, from public data
Target = Callable[[str, tuple[str, ...]], ArrayLike]


class ClickEstimate(NamedTuple):
    """An unbiased estimate of the ``clicks`` among ``received`` impressions. It may be negative, or above ``received``.

    ``sd`` is the standard deviation of the devices' randomisation.
    """

    clicks: float
    sd: float
    received: int


def click_estimate(received: int, ones: int, epsilon: float) -> ClickEstimate:
    """The number of clicks behind ``ones`` among ``received`` randomised bits.

    Each bit is kept with probability p = e^epsilon / (1 + e^epsilon) and flipped otherwise; ``epsilon`` is in nats. The
    estimate is (ones - n (1-p)) / (2p - 1), where n is the number of bits *received*. Using the number of impressions
    instead would make the estimate too small: by 582 clicks if 1,000 of 10,000 bits are missing at epsilon 1.
    """
    n, y = whole("received", received, least=0), whole("ones", ones, least=0)
    if y > n:
        raise InvalidParameter("ones must be at most received.")
    half = positive("epsilon", epsilon) / 2.0
    # 1 - p = (1 - tanh(epsilon/2)) / 2, and p (1-p) = 1 / (2 cosh(epsilon/2))^2
    flipped, kept = (1.0 - math.tanh(half)) / 2.0, math.tanh(half)
    sd = math.sqrt(n) / (2.0 * math.sinh(half)) if half < 350.0 else 0.0
    return ClickEstimate((y - n * flipped) / kept, sd, n)


def reward(bit: int, epsilon: float) -> float:
    """An unbiased estimate of one click from its randomised bit."""
    return click_estimate(1, bit, epsilon).clicks


class ExploredOffer(NamedTuple):
    """A uniform offer that was shown, with the randomised click. It holds no token and no time."""

    context: str
    items: tuple[str, ...]
    shown: str
    bit: int


class Estimate(NamedTuple):
    """Clicks per offer with standard errors, estimated twice; NaN where there is no data.

    ``value`` weighs by inverse propensities and has no bias. ``normalised`` divides by the sum of these weights: it has a small
    bias, and often a smaller error.
    """

    value: float
    error: float
    normalised: float
    normalised_error: float
    offers: int


def publicly_best(context: str, items: tuple[str, ...]) -> Sequence[float]:
    """The target that always shows the publicly best candidate: an offer lists its candidates in falling public score."""
    return [1.0] + [0.0] * (len(items) - 1)


def estimate(explored: Iterable[ExploredOffer], click_epsilon: float, target: Target = publicly_best) -> Estimate:
    """Clicks per offer under a public ``target``, from uniform offers whose clicks were randomised at ``click_epsilon``
    (nats).
    """
    offers = list(explored)
    by_bit = {bit: reward(bit, click_epsilon) for bit in (0, 1)}
    if not offers:
        return Estimate(math.nan, math.nan, math.nan, math.nan, 0)
    weights = np.array([len(offer.items) * _probability_of_shown(target, offer) for offer in offers])
    rewards = np.array([by_bit[offer.bit] for offer in offers])
    terms, n = weights * rewards, len(offers)
    value = float(terms.mean())
    error = float(terms.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    total = float(weights.sum())
    if total <= 0.0:
        return Estimate(value, error, math.nan, math.nan, n)
    normalised = float(terms.sum()) / total
    normalised_error = float(np.sqrt(np.sum((weights * (rewards - normalised)) ** 2))) / total
    return Estimate(value, error, normalised, normalised_error, n)


def _probability_of_shown(target: Target, offer: ExploredOffer) -> float:
    law = np.asarray(target(offer.context, offer.items), dtype=np.float64)
    if law.shape != (len(offer.items),) or not (law.min() >= 0.0 and abs(law.sum() - 1.0) < 1e-9):
        raise InvalidParameter("a target must return one probability for each candidate, with sum 1.")
    return float(law[offer.items.index(offer.shown)])


class Exploration:
    """Follows uniform offers from offer to click, in memory. Offers under way when the process ends are lost.

    It forgets a token as soon as its bit has come, or can no longer come. ``rows`` counts the explored offers.
    ``click_epsilon`` is in nats.
    """

    def __init__(self, click_epsilon: float, *, clock: Clock = now) -> None:
        self.click_epsilon = positive("click_epsilon", click_epsilon)
        self.rows: Counter[ExploredOffer] = Counter()
        self._open: dict[str, tuple[ExploredOffer, int]] = {}  # by token, with the expiry
        self._clock, self._lock = clock, Lock()

    def offered(self, offer: Offer, context: str) -> None:
        """Records a uniform offer of one slot. Raises InvalidParameter for others: their probabilities are not known."""
        if offer.policy.rule is not Rule.UNIFORM or offer.policy.slots != 1:
            raise InvalidParameter(
                "only uniform offers of one slot can be explored: other probabilities are not known."
            )
        with self._lock:
            self._forget()
            self._open[offer.token] = ExploredOffer(context, offer.items, "", -1), offer.expires

    def shown(self, impression: Impression) -> None:
        """Records which item of an explored offer was shown."""
        with self._lock:
            entry = self._open.get(impression.token)
            if entry is not None:
                self._open[impression.token] = entry[0]._replace(shown=impression.items[0]), entry[1]

    def engaged(self, engagement: Engagement) -> None:
        """Records the randomised click of an explored offer that was shown."""
        with self._lock:
            entry = self._open.pop(engagement.token, None)
            if entry is not None and entry[0].shown:
                self.rows[entry[0]._replace(bit=engagement.bit)] += 1

    def estimate(self, target: Target = publicly_best) -> Estimate:
        """Clicks per offer under a public ``target``."""
        with self._lock:
            rows = self.rows.copy()
        return estimate(rows.elements(), self.click_epsilon, target)

    def _forget(self) -> None:
        """Drops up to two expired offers. The oldest come first, because the offers of one server expire in the order they were
        made.
        """
        late = self._clock() // SECOND - 2 * GRACE  # a report may take one day, and its bit another
        for token in list(islice(self._open, 2)):
            if self._open[token][1] < late:
                del self._open[token]
