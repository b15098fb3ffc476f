"""What a batch of shuffled reports may claim (docs/proofs/shuffle-amplification)."""

from collections.abc import Collection

from tacit.guarantees import ONE_PROFILE, Guarantee, ShuffleCondition, amplify, nothing, pure, repeat
from tacit.guarantees.amplification import MOST_REPORTS
from tacit.messages.private_selection import Policy, Rule

N_MIN = 1000


def local_guarantee(policy: Policy) -> Guarantee:
    """Of one report under ``policy``, against everybody."""
    if policy.rule is Rule.GREEDY and policy.m > 1:
        return nothing(ONE_PROFILE, "greedy: the privately best candidate is always shown")
    # The index of the privately best candidate, once, by m-ary randomised response: the blanket bound is for this and no other.
    proof = "randomised-response" if _is_response(policy) else ""
    return pure(policy.cost, ONE_PROFILE, proof=proof)


def batch_guarantee(
    policy: Policy,
    *,
    n: int,
    delta: float,
    honest_share: float,
    conditions: Collection[ShuffleCondition],
    n_min: int = N_MIN,
    reports_each: int = 1,
    everybody: bool = True,
) -> Guarantee:
    """The guarantee of a user in a group of ``n`` reports that were all drawn under ``policy``.

    Blanket bound for rr with d = 1, one slot and one report each, else the numerical bound of all slots together, which holds
    for every mechanism. The local guarantee, with a note, where a condition is missing, the group is smaller than ``n_min``, or
    next to nothing is gained. ``public``, ``uniform`` and a single candidate need no cover: epsilon is 0.
    """
    local = local_guarantee(policy)
    users = n // reports_each if everybody else n
    if local.promises_nothing or local.epsilon == 0.0:
        return repeat(local, reports_each)
    if users < 1:
        return repeat(local, reports_each).assuming(f"not amplified: fewer than {n_min} honest reports")
    return amplify(
        local,
        n=min(users, MOST_REPORTS),
        delta=delta,
        conditions=conditions,
        k=policy.m if _is_response(policy) and (reports_each == 1 or not everybody) else None,
        honest_share=honest_share,
        least=n_min,
        reports_each=reports_each,
        everybody=everybody,
    )


def _is_response(policy: Policy) -> bool:
    return policy.rule is Rule.RR and policy.d == 1 and policy.slots == 1
