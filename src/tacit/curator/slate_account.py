"""The curator's account in a ledger: one subject for all users of some ratings. Charged, then drawn, kept and re-sent verbatim."""

import json
import os
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from tacit.checks import member
from tacit.errors import Conflict, InvalidParameter, LedgerDamaged, UnknownSubject
from tacit.guarantees import ONE_USER, Guarantee, Release
from tacit.guarantees.zcdp import rho_exactly
from tacit.ledger import Accounting, Budget, PrivacyLedger, Statement, Terms
from tacit.ledger.clock import Clock
from tacit.ledger.names import name
from tacit.ledger.stores import Target
from tacit.mechanisms import NaturalSlate, Noise
from tacit.mechanisms.drawn import released

DEFAULT = Budget(epsilon=1.0)
PUBLISHED = "published"
_SALT = 32  # characters

T = TypeVar("T")


class SlateAccount:
    """Terms are agreed when the ledger first meets the subject, and never change: opened with other ones, it is refused."""

    def __init__(
        self,
        ledger: Target | PrivacyLedger,
        subject: str,
        budget: Budget | Sequence[Budget] | None,
        accounting: Accounting | str | None,
        unprotected: Collection[str],
        noise: Noise,
        clock: Clock,
    ) -> None:
        self.subject, self._noise = name("the subject", subject), noise
        wished = None if budget is None else _terms(budget, accounting, unprotected)
        self._own = not isinstance(ledger, PrivacyLedger)
        self.ledger = ledger if isinstance(ledger, PrivacyLedger) else PrivacyLedger.open_or_create(ledger, clock=clock)
        try:
            self.terms = self._agreed(wished, accounting, unprotected)
        except BaseException:
            self.close()
            raise

    @property
    def delta(self) -> float:
        """What the budget allows: the least delta of its periods."""
        return min(budget.delta for budget in self.terms.budgets)

    def promised(self, guarantee: Guarantee, assumptions: tuple[str, ...]) -> Guarantee:
        """What a release under ``guarantee`` will promise with this account's noise: that is charged before it is drawn."""
        stated = guarantee if guarantee.promises_nothing else guarantee.assuming(*assumptions)
        return released(None, stated, self._noise).guarantee

    def stated(self, release: Release[T], promised: Guarantee) -> Release[T]:
        """The release as it was charged. That it promises less than that would be a fault of the program, and nothing leaves."""
        weaker = release.guarantee.epsilon > promised.epsilon or release.guarantee.delta > promised.delta
        rho, charged = rho_exactly(release.guarantee), rho_exactly(promised)
        weaker |= charged is not None and (rho is None or rho > charged)
        if weaker or release.guarantee.protects != promised.protects:
            raise InvalidParameter("a release promises less than was charged for it: it is not sent.")
        return released(release.value, promised, self._noise)

    def release(
        self, release_id: str, what: str, guarantee: Guarantee, draw: Callable[[], bytes], *, asked: bytes = b""
    ) -> Any:
        """The JSON of what was drawn for this id, now or before; refused where the id stands for something else.

        ``asked`` is a requester's own weights. They are kept as a salted digest, so that an id used again by another person does
        not give away what was drawn for the first one; who reads the ledger can at most try out what may have been asked.
        """

        def content() -> bytes:
            salt = os.urandom(16).hex()
            return f"{what}\n{salt}{_seal(salt, asked)}\n".encode() + draw()

        kept = self.ledger.release(self.subject, release_id, guarantee, content)
        try:
            head, seal, message = kept.decode().split("\n", 2)
            found = json.loads(message)
        except ValueError as problem:
            raise LedgerDamaged(
                "a stored slate cannot be read. Run `tacit ledger check`, restore a backup."
            ) from problem
        if head != what or seal[_SALT:] != _seal(seal[:_SALT], asked):
            raise Conflict(
                "this request_id was used before, for a slate of another kind or for another request. A new slate needs a new id."
            )
        return found

    def digest(self, *parts: object) -> str:
        """Of public parameters only: what the ledger keeps is not to tell what a person asked for."""
        return sha256("\n".join(map(repr, parts)).encode()).hexdigest()

    def packed(self, message: dict[str, Any]) -> bytes:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()

    def statement(self) -> Statement:
        return self.ledger.statement(self.subject)

    def close(self) -> None:
        if self._own:
            self.ledger.close()

    def _agreed(self, wished: Terms | None, accounting: Accounting | str | None, unprotected: Collection[str]) -> Terms:
        """The terms that stand; without a budget of one's own those that were agreed before, or else the default."""
        if wished is None:
            try:
                known = self.ledger.terms(self.subject)
            except UnknownSubject:
                known = _terms(DEFAULT, accounting, unprotected)
            wished = known if accounting is None and not unprotected else _terms(known.budgets, accounting, unprotected)
        if wished.protects != ONE_USER:
            raise Conflict("this subject of the ledger is protected in another unit: name another subject.")
        try:
            self.ledger.enrol_many([self.subject], wished)
        except Conflict:
            raise Conflict(
                "these users have another budget, another accounting or other exceptions (unprotected) in this ledger. What was "
                "promised stays promised: open it as it was made."
            ) from None
        return wished


def _seal(salt: str, asked: bytes) -> str:
    return sha256(salt.encode() + asked).hexdigest()


def _terms(
    budget: Budget | Sequence[Budget], accounting: Accounting | str | None, unprotected: Collection[str]
) -> Terms:
    listed = (budget,) if isinstance(budget, Budget) else tuple(budget)
    if accounting is None:
        spent = all(isinstance(one, Budget) and one.delta for one in listed)
        accounting = Accounting.ZCDP if spent and listed else Accounting.BASIC
    if member("accounting", Accounting, accounting) is Accounting.PLD:
        raise InvalidParameter("slates of several kinds add up by 'basic' or 'zcdp', not by 'pld'.")
    if isinstance(unprotected, str):
        raise InvalidParameter("`unprotected` must be a collection of names, such as ['published'].")
    named = [reason for one in unprotected for reason in (_PUBLISHED_REASONS if one == PUBLISHED else (one,))]
    return Terms.of(listed, ONE_USER, accounting, unprotected=named)


_PUBLISHED_REASONS = tuple(NaturalSlate.published(2, 1, 1.0).guarantee.assumes)
