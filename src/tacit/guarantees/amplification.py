"""Shuffle amplification: n local reports, permuted by a party that does not collude with their reader, hide each other.

``amplify`` says what a batch of shuffled reports may claim; ``shuffle`` and ``shuffle_delta`` are the bounds behind it. The five
conditions of ``ShuffleCondition`` are facts about a deployment. Unless all of them are stated, the local epsilon is reported, with
a note of what is missing. Bounds and checks: docs/proofs/shuffle-amplification. No bound exceeds epsilon0.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

from tacit.checks import finite, positive, probability, whole
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.arithmetic import down, precise, up_from
from tacit.guarantees.composition import group, repeat
from tacit.guarantees.guarantee import ONE_PROFILE, ONE_USER_REPLACED, Guarantee, compose

ShuffleMethod = Literal["numerical", "closed", "erlingsson", "two-point-2023", "blanket"]
MOST_REPORTS = 10**8
MOST_ITEMS = 1 << 20  # as many as randomised response offers
_NO_LOSS = 1e-9  # below it floats cannot tell e^epsilon0 from 1 well enough: delta is bounded by epsilon0 itself
_NO_COVER = 100.0  # above it no report is expected to hide another: nothing is claimed


def shuffle(epsilon0: float, n: int, delta: float, method: ShuffleMethod = "numerical", k: int | None = None) -> float:
    """The epsilon at ``delta`` of n shuffled reports that are epsilon0-private each, rounded up; at most epsilon0.

    ``numerical`` and ``closed`` (Feldman, McMillan, Talwar 2021) and ``erlingsson`` (2019) hold for every randomiser;
    ``blanket`` holds for k-ary randomised response; ``two-point-2023`` is informative only: its proof was not checked here.
    Outside the range in which a closed form is proved, the answer is epsilon0.
    Both epsilons are in nats, ``delta`` is a probability, ``k`` the number of values that a report can take.
    """
    epsilon0, n, k = checked(epsilon0, n, method, k)
    return _shuffle(epsilon0, n, probability("delta", delta), method, k)


def shuffle_delta(
    epsilon0: float, n: int, epsilon: float, method: ShuffleMethod = "numerical", k: int | None = None
) -> float:
    """The delta at ``epsilon`` >= 0 of n shuffled reports that are epsilon0-private each, rounded up; 1 if no bound is proved.

    Both epsilons are in nats; ``k`` is the number of values that a report can take.
    """
    epsilon0, n, k = checked(epsilon0, n, method, k)
    if finite("epsilon", epsilon) < 0.0:
        raise InvalidParameter(f"epsilon must be a finite number of at least 0, not {epsilon!r}.")
    if epsilon >= epsilon0:
        return 0.0
    if epsilon0 > _NO_COVER:
        return 1.0
    if method in ("closed", "erlingsson"):
        return _delta_of_closed(epsilon0, n, float(epsilon), method)
    if epsilon0 < _NO_LOSS:
        return epsilon0  # the total variation of two epsilon0-close laws is at most tanh(epsilon0/2)
    return _exact(epsilon0, n, method, k, 50.0 + epsilon0)(float(epsilon))


@lru_cache(maxsize=1024)
def _shuffle(epsilon0: float, n: int, delta: float, method: ShuffleMethod, k: int | None) -> float:
    if epsilon0 > _NO_COVER:
        return epsilon0
    if method == "closed":
        return min(epsilon0, _closed_form(epsilon0, n, delta))
    if method == "erlingsson":
        return min(epsilon0, _erlingsson_form(epsilon0, n, delta))
    if epsilon0 < _NO_LOSS:
        return 0.0 if epsilon0 <= delta else epsilon0
    # The mass that is left out is a share of 1e-9 of delta, also after the blanket's factor e^epsilon0.
    at = _exact(epsilon0, n, method, k, -math.log(delta) + epsilon0 + math.log(1e9))
    return _solve_epsilon(
        at, delta, epsilon0, guess=max(1e-12, min(epsilon0 / 2.0, _closed_form(epsilon0, n, delta) / 4.0))
    )


def _exact(epsilon0: float, n: int, method: ShuffleMethod, k: int | None, log_left: float) -> Callable[[float], float]:
    from tacit.guarantees.binomial import Blanket, Decoys  # numpy: on first use

    if method == "blanket" and k is not None:
        return Blanket(epsilon0, n, k, log_left).delta
    shrunk = math.exp(-epsilon0)
    return Decoys(epsilon0, n, shrunk if method == "numerical" else 2.0 * shrunk / (1.0 + shrunk), log_left).delta


def _solve_epsilon(at: Callable[[float], float], delta: float, most: float, guess: float) -> float:
    """The smallest epsilon up to ``most`` with at(epsilon) <= delta, from above and to seven digits; at(most) = 0."""
    low, high, x = 0.0, most, guess
    height_low = height_high = math.nan
    if at(0.0) <= delta:
        return 0.0
    for _ in range(200):
        reached = at(x)
        height = math.log(reached / delta) if reached > 0.0 else -math.inf
        if height <= 0.0:
            high, height_high = x, height
        else:
            low, height_low = x, height
        if high - low <= 1e-7 * high:
            break
        # ln delta falls smoothly: aim where the chord says, a little to the right or left so that the ends close in.
        if low == 0.0:
            x = high / 2.0
        elif not math.isfinite(height_high):
            x = min(low * 1.5, (low + high) / 2.0)
        else:
            chord = low + (high - low) * height_low / (height_low - height_high)
            nudge = 2e-8 * high
            x = chord + nudge if chord - low < high - chord else chord - nudge
            x = x if low < x < high else (low + high) / 2.0
    return high


def _closed_form(epsilon0: float, n: int, delta: float) -> float:
    """Feldman, McMillan, Talwar (2021), Theorem 3.1: proved for epsilon0 <= ln(n / (16 ln(2/delta)))."""
    mp = precise(160)
    e0, exact_delta = mp.mpf(epsilon0), mp.mpf(delta)
    if not mp.exp(e0) * 16 * mp.log(2 / exact_delta) <= n * (1 - mp.ldexp(1, -60)):
        return epsilon0
    spread = 8 * mp.sqrt(mp.exp(e0) * mp.log(4 / exact_delta) / n) + 8 * mp.exp(e0) / n
    return up_from(mp.log1p(mp.tanh(e0 / 2) * spread))


def _erlingsson_form(epsilon0: float, n: int, delta: float) -> float:
    """Erlingsson et al. (2019): 12 epsilon0 sqrt(ln(1/delta)/n), proved for epsilon0 < 1/2, n >= 1000, delta < 1/100."""
    if not (epsilon0 < 0.5 and n >= 1000 and delta < 0.01):
        return epsilon0
    mp = precise(160)
    return up_from(12 * mp.mpf(epsilon0) * mp.sqrt(-mp.log(mp.mpf(delta)) / n))


def _delta_of_closed(epsilon0: float, n: int, epsilon: float, method: ShuffleMethod) -> float:
    """The smallest delta found at which the closed form stays within ``epsilon``; 1 if there is none."""
    form = _closed_form if method == "closed" else _erlingsson_form
    largest = 0.5 if method == "closed" else down(Fraction(0.01)) * (1.0 - 1e-15)
    if form(epsilon0, n, largest) > epsilon:
        return 1.0
    low, high = -745.0, math.log(largest)
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (low, middle) if form(epsilon0, n, math.exp(middle)) <= epsilon else (middle, high)
    return math.exp(high)


def checked(epsilon0: float, n: int, method: ShuffleMethod, k: int | None) -> tuple[float, int, int | None]:
    """The checked parameters of a bound. Only the blanket bound takes a ``k``, and it needs one."""
    if method not in get_args(ShuffleMethod):
        raise InvalidParameter(f"`method` must be one of {', '.join(get_args(ShuffleMethod))}, not {method!r}.")
    if method == "blanket" and k is None:
        raise InvalidParameter("the blanket bound needs k, the number of items of the randomised response.")
    if method != "blanket" and k is not None:
        raise InvalidParameter(f"only the blanket bound depends on k; leave k out for {method!r}.")
    items = None if k is None else whole("k", k, least=2, most=MOST_ITEMS)
    return positive("epsilon0", epsilon0), whole("n", n, least=1, most=MOST_REPORTS), items


PROOF = "shuffle-amplification"
_RESPONSE = "randomised-response"  # the proof that the blanket bound belongs to
_LEAST_GAIN = 0.01  # of epsilon0: for less a pure guarantee is not given up


class ShuffleCondition(Enum):
    """What must be true of the deployment before an amplified epsilon may be reported: all five conditions."""

    SAME_RANDOMIZER = "all n reports are honest, of one batch, and drawn by the same randomiser on the same public view"
    NO_LINK_BY_PRICE = "a report carries nothing that links it to its request, such as a price of its own"
    UNLINKABLE_TOKENS = "deduplication tokens are unlinkable to the requests they came from"
    ONE_REPORT_EACH = "every user sends one report to a batch, and the public view is fixed within it"
    NO_OTHER_PATH = "reports, content fetches and clicks reach the reader by no other path than the shuffler"


ALL_CONDITIONS = frozenset(ShuffleCondition)


def amplify(
    guarantee: Guarantee,
    *,
    n: int,
    delta: float,
    conditions: Collection[ShuffleCondition],
    k: int | None = None,
    method: ShuffleMethod | None = None,
    honest_share: float = 1.0,
    least: int = 1000,
    reports_each: int = 1,
    everybody: bool = True,
) -> Guarantee:
    """The central guarantee of n shuffled local reports, each under ``guarantee``.

    Give ``k`` for k-ary randomised response with one best item, and leave it out for any other mechanism: its bound raises
    InvalidParameter for a guarantee with another proof. ``k`` joins ``assumes``. If a condition is missing, if the batch has
    fewer than ``least`` honest reports, or if less than 1 % is gained, you get the local guarantee back with a note of the
    reason: its epsilon holds anyway. Give ``honest_share`` unless n counts honest reports only.

    If users send ``reports_each`` = r reports to one batch, say whether ``everybody`` does. If so, n counts *users*: their r
    reports are one report at r epsilon0. If only some do, n counts reports, ``delta`` is that of one report, and the answer is
    that of a group of r reports: (r epsilon, delta (e^(r epsilon) - 1)/(e^epsilon - 1)).
    Epsilon is in nats, ``delta`` a probability, ``k`` the number of values that a report can take.
    """
    n, least = whole("n", n, least=1, most=MOST_REPORTS), whole("least", least, least=1)
    delta, each = probability("delta", delta), whole("reports_each", reports_each, least=1)
    if not (isinstance(honest_share, (int, float)) and 0.0 < honest_share <= 1.0):
        raise InvalidParameter(f"honest_share must lie above 0 and be at most 1, not {honest_share!r}.")
    _require_local(guarantee)
    local = repeat(guarantee, each)  # what holds of a user in any case
    report = local if everybody else guarantee
    chosen: ShuffleMethod = method or ("numerical" if k is None else "blanket")
    if chosen == "two-point-2023":
        raise InvalidParameter(
            "two-point-2023 is informative only and makes no guarantee; use numerical, blanket or closed."
        )
    epsilon0, n, k = checked(report.epsilon, n, chosen, k)
    if chosen == "blanket" and report.proof != _RESPONSE:
        raise InvalidParameter(
            f"the blanket bound holds for one report by {_RESPONSE} only, not for '{report.proof or 'no proof'}': leave "
            "k out and use the numerical bound, which holds for every mechanism."
        )
    missing = sorted(condition.name for condition in ALL_CONDITIONS - frozenset(conditions))
    if missing:
        return local.assuming(f"not amplified: {', '.join(missing)} not stated")
    honest = math.floor(Fraction(honest_share) * n)
    if honest < least:
        return local.assuming(f"not amplified: fewer than {least} honest reports")
    epsilon = shuffle(epsilon0, honest, delta, chosen, k)
    if epsilon > (1.0 - _LEAST_GAIN) * epsilon0:
        return local.assuming(f"not amplified: nothing is gained at n = {honest}")
    trust = {"the shuffler does not collude with the reader", f"at least {honest} honest reports, by {chosen} bound"}
    if k is not None:
        trust |= {f"k-ary randomised response with k = {k}"}
    assumes = guarantee.assumes | _conditions_in_words(each, everybody) | trust
    central = Guarantee(epsilon, ONE_USER_REPLACED, delta=delta, assumes=assumes, proof=PROOF)
    return central if everybody else _group_guarantee(central, each, local)


def across_batches(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Several batches together: epsilons and deltas add. A batch that was not amplified counts with its local epsilon.

    A local guarantee also holds against the reader of a batch, so it counts as one for a user's rows in it.
    """
    parts = list(guarantees)
    if len({part.protects for part in parts}) > 1:
        parts = [replace(part, protects=ONE_USER_REPLACED) if part.protects == ONE_PROFILE else part for part in parts]
    return compose(parts)


def _require_local(guarantee: Guarantee) -> None:
    if (
        guarantee.protects != ONE_PROFILE
        or not guarantee.is_pure
        or guarantee.promises_nothing
        or guarantee.epsilon == 0.0
    ):
        raise InvalidGuarantee(
            f"only a local guarantee for one profile, with epsilon above 0 and delta = 0, can be amplified, not '{guarantee}'."
        )


def _conditions_in_words(each: int, everybody: bool) -> set[str]:
    """The conditions in words, with the stated number of reports instead of "one"."""
    words = {condition: condition.value for condition in ALL_CONDITIONS}
    if each > 1:
        who = f"every user sends {each} reports" if everybody else f"no user sends more than {each} reports"
        words[ShuffleCondition.ONE_REPORT_EACH] = f"{who} to a batch, and the public view is fixed within it"
    return set(words.values())


def _group_guarantee(central: Guarantee, each: int, local: Guarantee) -> Guarantee:
    """Group privacy for one user's ``each`` reports; the local guarantee if the group has none left."""
    several = group(central, each)
    if several.promises_nothing:  # its delta has reached 1
        return local.assuming(f"not amplified: nothing is gained for a user with {each} reports")
    return replace(several, protects=ONE_USER_REPLACED, proof=PROOF)
