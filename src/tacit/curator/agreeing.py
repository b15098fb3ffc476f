"""What is asked of a ledger before terms are agreed with a new subject in it: they stand for good, and nothing is undone.

Terms are agreed with the first charge, so that a release that was refused leaves nothing behind.
"""

from contextlib import closing
from itertools import islice

from tacit.errors import BudgetExhausted, Conflict, InvalidParameter, UnknownSubject
from tacit.guarantees import Guarantee
from tacit.ledger import Accounting, PrivacyLedger, Terms
from tacit.ledger.accounting import MEASURES, allowance, price
from tacit.ledger.amounts import DELTA_DIGITS, shown

_NAMED = 5  # subjects that a refusal names
_LOOKED_AT = 1000  # at most: a ledger may hold millions of people
OF_TWO_DOMAINS = ("moments", "prs_valid")  # how ids of releases begin that are kept of two domains
CALLED_AFTER_DATA = "users of "  # how subjects begin that were named after data, and not by somebody


def known_terms(ledger: PrivacyLedger, subject: str) -> Terms | None:
    """What was agreed with a subject; None where the ledger has not met it."""
    try:
        return ledger.terms(subject)
    except UnknownSubject:
        return None


def require_named(ledger: PrivacyLedger, subject: str) -> None:
    """Refuses a new subject that nobody named, in a ledger that has others: after a file was renamed they would be the same people,
    with a second budget. Other names may be those of persons, and are not shown."""
    names = list(islice(ledger.subjects(), _LOOKED_AT))
    if names and known_terms(ledger, subject) is None:  # in this order: another process may just have met it
        known = [repr(one) for one in names if one.startswith(CALLED_AFTER_DATA)]
        others = ", ".join(known[:_NAMED]) or "others"
        if known and (len(known) > _NAMED or len(known) < len(names)):
            others += " and others"
        raise InvalidParameter(
            f"this ledger does not know {subject!r}, as these users are called after their files or data sets. It knows {others}. "
            "The same people must have the same name, or they get a second budget: name them, subject='...', on the command line "
            "--subject NAME; a new name if nobody of them is known."
        )


def require_unrelated(ledger: PrivacyLedger, subject: str) -> None:
    """Refuses a new subject that nobody named, if its data set is one of two domains of which something was released already.

    By its name alone "rock and roll" may be one data set.
    """
    data = subject.removeprefix(CALLED_AFTER_DATA)
    for known in list(ledger.subjects()):
        pair = known.removeprefix(CALLED_AFTER_DATA)
        if pair == known or not (pair.startswith(f"{data} and ") or pair.endswith(f" and {data}")):
            continue
        with closing(ledger.stored(known)) as kept:
            of_two = any(one.release_id.split(" ")[0] in OF_TWO_DOMAINS for one in kept)
        if of_two:
            raise InvalidParameter(
                f"this ledger knows {known!r}, and {data!r} is one of these two domains: its people would get a second budget. "
                f"Name them alike, subject={known!r}; or by another name, if nobody of them is known."
            )


def require_fits(guarantee: Guarantee, terms: Terms) -> None:
    """Refuses what a new subject could never be charged under these terms, before they are agreed."""
    cost = price(guarantee, terms)
    for budget in terms.budgets:
        allowed = allowance(budget, terms)
        measure, digits = MEASURES[terms.accounting]
        asked, most = cost.amount, allowed.amount
        if asked <= most:
            measure, digits, asked, most = "delta", DELTA_DIGITS, cost.delta, allowed.delta
        if asked <= most:
            continue
        larger = "budget=Budget(epsilon, delta)"
        if terms.accounting is Accounting.BASIC:
            epsilon = shown(max(cost.amount, allowed.amount), MEASURES[terms.accounting][1])
            larger = f"budget=Budget({epsilon:f}, {float(shown(max(cost.delta, allowed.delta), DELTA_DIGITS))!r})"
        raise BudgetExhausted(
            f"this release takes {shown(asked, digits):f} {measure}, and these users would be promised no more than {budget}. "
            f"Nothing was agreed or charged. Ask for less; or agree a larger budget with the first release, {larger}, "
            "on the command line --budget: it stands for good.",
            measure=measure,
            spent=shown(0, digits),
            requested=shown(asked, digits),
            left=shown(most, digits),
            budget=shown(most, digits),
            renews=None,
        )


def agree(ledger: PrivacyLedger, subject: str, terms: Terms) -> None:
    """For good. Refused where the ledger has other terms for this subject."""
    try:
        ledger.enrol_many([subject], terms)
    except Conflict:
        found = known_terms(ledger, subject)
        stands = (
            "" if found is None else f" ({', '.join(map(str, found.budgets))}; {found.accounting.value} accounting)"
        )
        raise Conflict(
            f"these users have another budget, another accounting or other exceptions (unprotected) in this ledger{stands}. What "
            "was promised stays promised: open it as it was made, or without a budget of your own."
        ) from None
