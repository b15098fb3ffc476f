"""What shuffled reports may claim: the conditions of amplification, several reports of one user, several batches.

The five conditions are facts of a deployment. Without all of them the local epsilon is reported, with a note of what is missing
(docs/proofs/shuffle-amplification).
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import Enum
from fractions import Fraction

from tacit.checks import probability, whole
from tacit.errors import InvalidGuarantee, InvalidParameter
from tacit.guarantees.amplification import MOST_REPORTS, ShuffleMethod, checked, shuffle
from tacit.guarantees.composition import compose, repeat
from tacit.guarantees.conversion import group
from tacit.guarantees.guarantee import Guarantee
from tacit.guarantees.neighbours import ONE_PROFILE, ONE_USER_REPLACED

PROOF = "shuffle-amplification"
_RESPONSE = "randomised-response"  # the proof that the blanket bound belongs to
_LEAST_GAIN = 0.01  # of epsilon0: for less a pure guarantee is not given up


class ShuffleCondition(Enum):
    """What must be true of the deployment before an amplified epsilon may be reported. All five, or epsilon0 stands."""

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

    Give ``k`` for k-ary randomised response with one best item, nothing for any other mechanism: the bound for it is
    refused for guarantees of another proof, and ``k`` joins ``assumes``. Without all five
    conditions, in a batch of fewer than ``least`` honest reports, or where less than 1 % is gained, the local guarantee is
    returned with a note of it: its epsilon holds anyway. Say ``honest_share`` unless n counts honest reports only.

    Where users send ``reports_each`` = r reports to one batch say whether ``everybody`` does. If so, n counts *users*: their r
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
            "out k and use the numerical bound, which holds for every mechanism."
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
    assumes = guarantee.assumes | _stated(each, everybody) | trust
    central = Guarantee(epsilon, ONE_USER_REPLACED, delta=delta, assumes=assumes, proof=PROOF)
    return central if everybody else _of_some(central, each, local)


def across_batches(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Several batches together: epsilons and deltas add. A batch that was not amplified counts with its local epsilon.

    A local guarantee holds against the reader of a batch too, so it may be read as one for a user's rows in it.
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
            f"only a local guarantee for one profile with epsilon above 0 and delta = 0 is amplified, not '{guarantee}'."
        )


def _stated(each: int, everybody: bool) -> set[str]:
    """The conditions in words, with what was said of the number of reports in the place of "one"."""
    words = {condition: condition.value for condition in ALL_CONDITIONS}
    if each > 1:
        who = f"every user sends {each} reports" if everybody else f"no user sends more than {each} reports"
        words[ShuffleCondition.ONE_REPORT_EACH] = f"{who} to a batch, and the public view is fixed within it"
    return set(words.values())


def _of_some(central: Guarantee, each: int, local: Guarantee) -> Guarantee:
    """One user's ``each`` reports, changed one after the other: group privacy, or the local guarantee where none is left."""
    several = group(central, each)
    if several.promises_nothing:  # its delta has reached 1
        return local.assuming(f"not amplified: nothing is gained for a user with {each} reports")
    return replace(several, protects=ONE_USER_REPLACED, proof=PROOF)
