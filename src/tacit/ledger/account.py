"""The account of a party in its ledger: agree on terms, charge, draw, keep, and send the same bytes again.

    account = Account.agree("curator.db", "users", Proposal(Budget(epsilon=1.0)), wording=SLATES, encoding=ENCODING)
    content = account.release(release_id, request, guarantee, draw)

A curator and an entity keep one. Each brings its own words (`Wording`) and its own bytes (`Encoding`); the order of the steps is
here, once. A device calls `PrivacyLedger.release` itself: an account uses up the id of a failed draw, and a device must be able to
draw again later, because its draw also charges the overall budget, which may have no room now.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Generic, Self, TypeVar

import numpy as np

from tacit.checks import member
from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, LedgerMissing, UnknownSubject
from tacit.guarantees import ONE_USER, Guarantee
from tacit.ledger.budgets import (
    DELTA_DIGITS,
    MEASURES,
    NOTHING_SPENT,
    Accounting,
    Budget,
    Cost,
    Statement,
    Terms,
    allowance,
    price,
    shortfall,
    shown,
    stated,
)
from tacit.ledger.chain import Clock, Head, checked_name, now
from tacit.ledger.privacy import MOST_BYTES, PrivacyLedger
from tacit.ledger.stores import Target
from tacit.ledger.transaction import Receipt

Request = TypeVar("Request")
Content = TypeVar("Content")

_NOT_PLD = "releases of several kinds add up by 'basic' or 'zcdp' accounting, not by 'pld'."


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of one party in the errors of its account."""

    release: str  # what the party releases: "slate"
    release_id: str  # what the caller names a release by: "request_id"
    data: str  # the private data that a release is drawn from: "ratings"
    reused: str  # the error for an id that was used for another request
    retry: str  # what to do after a failed draw: "ask with a new request_id"


class OtherRequest(Exception):
    """Raised by an encoding's ``unpack`` if the kept bytes answer another request."""


@dataclass(frozen=True, slots=True)
class Encoding(Generic[Request, Content]):
    """How a party writes a release into the ledger, and reads it again.

    ``pack`` takes the request and the bytes that were drawn, or None if drawing failed. ``unpack`` takes the kept bytes and the
    present request. It returns the content, or None if drawing had failed; it raises `OtherRequest` if the bytes answer another
    request, and ValueError if it cannot read them.
    """

    pack: Callable[[Request, bytes | None], bytes]
    unpack: Callable[[bytes, Request], Content | None]


PLAIN: Encoding[None, bytes] = Encoding(lambda _, drawn: drawn or b"", lambda kept, _: kept or None)
"""The drawn bytes as they are; no bytes if drawing failed. The release id alone stands for the request."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The terms that the owner of an account states. Parts left out are those agreed before, or else the defaults.

    ``concentrated`` chooses the default accounting of budgets with a delta: zCDP, which suits many releases, or basic composition,
    which lets a single release use the whole budget.
    """

    default: Budget
    budget: Budget | Sequence[Budget] | None = None
    accounting: Accounting | str | None = None
    unprotected: Collection[str] = ()
    concentrated: bool = True

    def terms(self, agreed: Terms | None) -> Terms:
        """The terms to agree on with a subject. ``agreed`` are its terms so far; None for a new subject."""
        if self.budget is not None:
            return self._terms(self.budget, self.accounting)
        if agreed is None:
            return self._terms(self.default, self.accounting)
        if agreed.accounting is Accounting.PLD:
            raise InvalidParameter(_NOT_PLD)
        if agreed.protects != ONE_USER:
            raise Conflict("this subject of the ledger is charged in another unit: name another subject.")
        if self.accounting is None and not self.unprotected:
            return agreed
        return self._terms(agreed.budgets, self.accounting or agreed.accounting)

    def _terms(self, budget: Budget | Sequence[Budget], accounting: Accounting | str | None) -> Terms:
        budgets = tuple(budget) if isinstance(budget, Iterable) else (budget,)  # Terms checks that each is a Budget
        if accounting is None:
            has_delta = bool(budgets) and all(isinstance(each, Budget) and each.delta for each in budgets)
            accounting = Accounting.ZCDP if has_delta and self.concentrated else Accounting.BASIC
        if member("accounting", Accounting, accounting) is Accounting.PLD:
            raise InvalidParameter(_NOT_PLD)
        if isinstance(self.unprotected, str):
            raise InvalidParameter("`unprotected` must be a collection of names, such as ['published'].")
        return Terms.of(budgets, ONE_USER, accounting, unprotected=list(self.unprotected))


class Account(Generic[Request, Content]):
    """One subject of a ledger, its terms, and its releases. Make one with `agree`.

    ``sent_again`` is True if the last release came from the ledger and was not drawn.
    """

    def __init__(
        self,
        ledger: PrivacyLedger,
        subject: str,
        terms: Terms,
        *,
        wording: Wording,
        encoding: Encoding[Request, Content],
        clock: Clock = now,
        owns_ledger: bool = False,
    ) -> None:
        self.ledger, self.subject, self.terms = ledger, subject, terms
        self.sent_again = False
        self._wording, self._encoding, self._clock, self._owns_ledger = wording, encoding, clock, owns_ledger
        self._agreed = True
        self._require_new: Callable[[PrivacyLedger], None] | None = None

    @classmethod
    def agree(
        cls,
        ledger: Target | PrivacyLedger,
        subject: str,
        terms: Terms | Proposal,
        *,
        wording: Wording,
        encoding: Encoding[Request, Content],
        clock: Clock = now,
        head: Head | None = None,
        at_first_charge: bool = False,
        require_new: Callable[[PrivacyLedger], None] | None = None,
    ) -> Self:
        """The account of ``subject`` under these terms, which stand for good.

        A ledger that is not open yet is opened. A missing file is created only if a budget is stated: tacit never recreates a lost
        ledger, because that would hand the same people a fresh budget. With a ``head`` noted earlier, an older copy is refused.

        ``at_first_charge`` delays the agreement with a new subject until something is charged, so that a refused release leaves
        nothing behind. ``require_new`` may refuse a new subject; it is called before the agreement.

        Raises Conflict if the ledger has other terms for this subject.
        """
        checked_name("the subject", subject)
        proposal = terms if isinstance(terms, Proposal) else None
        if proposal is not None and proposal.budget is not None:
            proposal.terms(None)  # refuses wrong terms before it opens or creates a file
        owns_ledger = not isinstance(ledger, PrivacyLedger)
        if not isinstance(ledger, PrivacyLedger):
            may_create = proposal is None or proposal.budget is not None
            ledger = open_ledger(ledger, may_create=may_create, head=head, clock=clock)
        try:
            earlier = known_terms(ledger, subject)
            agreed = terms if isinstance(terms, Terms) else terms.terms(earlier)
            account = cls(
                ledger, subject, agreed, wording=wording, encoding=encoding, clock=clock, owns_ledger=owns_ledger
            )
            account._begin(earlier is None, at_first_charge, require_new)
        except BaseException:
            if owns_ledger:
                ledger.close()
            raise
        return account

    @property
    def delta(self) -> float:
        """The least delta of the budgets: what a release may use."""
        return min(budget.delta for budget in self.terms.budgets)

    def release(self, release_id: str, request: Request, guarantee: Guarantee, draw: Callable[[], bytes]) -> Content:
        """Charges, draws and keeps a release, or returns what was kept for this id before.

        An error while drawing may depend on private data, so nobody sees it, and the id is used up: if the id drew again, one
        charge would pay for as many answers as there are errors. A process that dies while drawing shows nothing; its id draws
        when it is used again.

        Raises Conflict if the id was used for another request, or if its draw failed.
        """

        def content() -> bytes:
            self.sent_again = False
            try:
                with np.errstate(all="ignore"):  # the caller's setting must not turn drawn values into errors
                    drawn = self._encoding.pack(request, draw())
            except Exception:
                return self._encoding.pack(request, None)
            return drawn if len(drawn) <= MOST_BYTES else self._encoding.pack(request, None)

        self._agree_now(guarantee)
        self.sent_again = True  # unless content() runs
        kept = self.ledger.release(self.subject, release_id, guarantee, content)
        try:
            unpacked = self._encoding.unpack(kept, request)
        except OtherRequest:
            raise Conflict(self._wording.reused) from None
        except (TypeError, ValueError, RecursionError) as problem:
            raise LedgerDamaged(
                f"a stored {self._wording.release} cannot be read. Run `tacit ledger check`, then restore a backup."
            ) from problem
        if unpacked is None:
            wording = self._wording
            raise Conflict(
                f"nothing could be drawn for this {wording.release_id}. The reason is not shown, because it may depend on the "
                f"{wording.data}. The charge stands and the {wording.release_id} is used up: {wording.retry}."
            )
        return unpacked

    def charge(self, release_id: str, guarantee: Guarantee) -> Receipt:
        """Charges a release that the ledger does not keep."""
        self._agree_now(guarantee)
        self.sent_again = False
        return self.ledger.charge(self.subject, release_id, guarantee)

    def kept(self, release_id: str) -> bytes | None:
        """The bytes that the ledger keeps for this id, as they were packed; None if it keeps none."""
        return self.ledger.kept(self.subject, release_id)

    def cost(self, guarantees: Sequence[Guarantee]) -> Cost:
        """What these releases would be charged in all; raises if one of them cannot be charged."""
        return reduce(add, (price(guarantee, self.terms) for guarantee in guarantees), NOTHING_SPENT)

    def require_left(self, guarantees: Sequence[Guarantee]) -> None:
        """Raises BudgetExhausted if these releases do not fit into the budget together. Charges nothing."""
        needed = self.cost(guarantees)
        for window in self.statement().windows:
            short = shortfall(needed, window.spent, allowance(window.budget, self.terms), self.terms)
            if short is not None:
                raise short.error(
                    f"the run needs {short.requested:f} {short.measure}; {short.left:f} of {short.budget:f} is left for these "
                    f"users ({window.budget}). Nothing was charged and nothing is sent."
                )

    def statement(self) -> Statement:
        """The guarantee that the subject has so far, what is spent, and what is left."""
        if not self._agreed and known_terms(self.ledger, self.subject) is None:
            before = (NOTHING_SPENT,) * len(self.terms.budgets)
            return stated(self.subject, self.terms, self._clock(), {}, NOTHING_SPENT, before)
        return self.ledger.statement(self.subject)

    def close(self) -> None:
        """Closes the ledger, if this account opened it."""
        if self._owns_ledger:
            self.ledger.close()

    def _begin(self, is_new: bool, at_first_charge: bool, require_new: Callable[[PrivacyLedger], None] | None) -> None:
        if is_new and require_new is not None:
            require_new(self.ledger)
        if not (is_new and at_first_charge):
            self._enrol()
            return
        for budget in self.terms.budgets:
            allowance(budget, self.terms)  # refuses a budget that nothing could be charged to
        self._agreed = False
        self._require_new = require_new

    def _agree_now(self, guarantee: Guarantee) -> None:
        """Agrees the terms of a new subject when it is first charged; refuses a charge that would never fit."""
        if self._agreed:
            return
        if self._require_new is not None:
            self._require_new(self.ledger)
        self._require_fits(guarantee)
        self._enrol()
        self._agreed = True

    def _enrol(self) -> None:
        try:
            self.ledger.enrol_many([self.subject], self.terms)
        except Conflict:
            terms = known_terms(self.ledger, self.subject)
            agreed = ""
            if terms is not None:
                agreed = f" ({', '.join(map(str, terms.budgets))}; {terms.accounting.value} accounting)"
            raise Conflict(
                "these users have another budget, another accounting or other exceptions (unprotected) in this ledger"
                f"{agreed}. Terms never change. Open the ledger with the original terms, or leave `budget` out."
            ) from None

    def _require_fits(self, guarantee: Guarantee) -> None:
        """Refuses a charge that these terms never allow, before they are agreed."""
        cost = price(guarantee, self.terms)
        for budget in self.terms.budgets:
            allowed = allowance(budget, self.terms)
            short = shortfall(cost, NOTHING_SPENT, allowed, self.terms)
            if short is None:
                continue
            larger = "budget=Budget(epsilon, delta)"
            if self.terms.accounting is Accounting.BASIC:
                epsilon = shown(max(cost.amount, allowed.amount), MEASURES[self.terms.accounting][1])
                larger = f"budget=Budget({epsilon:f}, {float(shown(max(cost.delta, allowed.delta), DELTA_DIGITS))!r})"
            raise short.error(
                f"this release takes {short.requested:f} {short.measure}, and these users would be promised no more than "
                f"{budget}. Nothing was agreed or charged. Ask for less; or agree a larger budget with the first release, "
                f"{larger}, on the command line --budget. The budget then stands for good."
            )


def known_terms(ledger: PrivacyLedger, subject: str) -> Terms | None:
    """The terms of a subject; None if the ledger does not know the subject."""
    try:
        return ledger.terms(subject)
    except UnknownSubject:
        return None


def open_ledger(target: Target, *, may_create: bool, head: Head | None, clock: Clock) -> PrivacyLedger:
    """The ledger at ``target``. Creates a missing one if its owner states a budget, and raises LedgerMissing otherwise.

    An owner who states no budget relies on earlier terms, so there must have been a ledger. With a ``head`` noted earlier, nothing
    is created in either case.
    """
    if may_create:
        return PrivacyLedger.open_or_create(target, head=head, clock=clock)
    try:
        return PrivacyLedger.open(target, head=head, clock=clock)
    except LedgerMissing as problem:
        raise LedgerMissing(
            f"{problem.args[0]} To begin a new ledger, state the budget: budget=Budget(epsilon, delta), on the command line "
            "--budget. If the ledger was lost, restore it from a backup: its users were charged already."
        ) from None
