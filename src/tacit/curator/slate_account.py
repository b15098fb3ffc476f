"""The curator's account in a ledger: one subject for all users of some ratings. Charged, then drawn, kept and re-sent verbatim."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.checks import member
from tacit.curator.agreeing import agree, known_terms, require_fits, require_named, require_unrelated
from tacit.errors import Conflict, InvalidParameter, LedgerDamaged
from tacit.guarantees import ONE_USER, Guarantee, Release
from tacit.guarantees.zcdp import rho_exactly
from tacit.ledger import Accounting, Budget, Head, PrivacyLedger, Receipt, Statement, Terms
from tacit.ledger.accounting import allowance
from tacit.ledger.amounts import NOTHING_SPENT
from tacit.ledger.beginning import begun
from tacit.ledger.clock import Clock
from tacit.ledger.names import name
from tacit.ledger.privacy import MOST_BYTES
from tacit.ledger.statements import stated as statement_of
from tacit.ledger.stores import Target
from tacit.mechanisms import NaturalSlate, Noise
from tacit.mechanisms.drawn import released
from tacit.messages.private_slates_parts import MOST_ITEMS

PUBLISHED = "published"
_SALT = 32  # characters
_NUMBER = 18  # bytes of a released number at most: 2^53 has 16 digits; a sign, a comma
_FRAME = 2_000  # bytes of all that is neither an id nor a number nor the guarantee: digests, names of members, a step
_NOTHING = b"null"  # kept where nothing could be drawn

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind:
    """What an account is kept for: its budget where none is said, what it releases in words, and names for lists of reasons.

    ``concentrated`` says how charges add up where a budget has a delta and nobody said how: by zCDP, which suits many releases, or
    by basic composition, which lets a single one use the whole budget. ``late``: terms are agreed with the first charge, if it
    fits, and a new subject of a ledger that has others must be named.
    """

    budget: Budget
    noun: str
    concentrated: bool
    used_up: str
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    late: bool = False


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
        kind: "Kind | None" = None,
        *,
        named: bool = True,
        head: Head | None = None,
    ) -> None:
        self.subject, self._noise, self._clock = name("the subject", subject), noise, clock
        self._named, self._new = named, False
        self.sent_again = False  # whether the last release was found as it had been kept
        self.kind = SLATES if kind is None else kind
        wished = None if budget is None else self._terms(budget, accounting, unprotected)
        self._own = not isinstance(ledger, PrivacyLedger)
        self.ledger = (
            ledger
            if isinstance(ledger, PrivacyLedger)
            else begun(ledger, with_budget=budget is not None, head=head, clock=clock)
        )
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

        An error while drawing may tell of what was drawn. It is seen by nobody, and the id is used up: if it drew again, one charge
        would pay for as many answers as there are errors. A process that dies here shows nothing: then the id draws when it is
        used again.
        """

        def content() -> bytes:
            self.sent_again = False
            salt = os.urandom(16).hex()
            head = f"{what}\n{salt}{_seal(salt, asked)}\n".encode()
            try:
                with np.errstate(all="ignore"):  # or what a caller has set would make errors of what is drawn
                    drawn = head + draw()
            except Exception:
                return head + _NOTHING
            return drawn if len(drawn) <= MOST_BYTES else head + _NOTHING

        self._meet(guarantee)
        self.sent_again = True  # unless it is drawn now
        kept = self.ledger.release(self.subject, release_id, guarantee, content)
        try:
            head, seal, message = kept.decode().split("\n", 2)
            found = json.loads(message)
        except ValueError as problem:
            raise LedgerDamaged(
                f"a stored {self.kind.noun} cannot be read. Run `tacit ledger check`, restore a backup."
            ) from problem
        if head != what or seal[_SALT:] != _seal(seal[:_SALT], asked):
            raise Conflict(
                f"this request_id was used before, for a {self.kind.noun} of another kind or for another request. A new "
                f"{self.kind.noun} needs a new id."
            )
        if found is None:
            raise Conflict(
                "nothing could be drawn for this request_id, for a reason that is not told, as it may depend on the ratings. The "
                f"charge stands and the id is used up: ask with a new one{self.kind.used_up}."
            ) from None
        return found

    def require_room(self, id_bytes: NDArray[np.int64], named: int, numbers: int, guarantee: Guarantee) -> None:
        """Refuses, before it is charged, what may turn out too long to be kept: ``named`` of the ids, and so many numbers."""
        most = int(id_bytes[-named:].sum()) + _NUMBER * numbers + len(self.packed(guarantee.to_json())) + _FRAME
        if named > MOST_ITEMS or most > MOST_BYTES:
            raise InvalidParameter(
                f"a message of {named:,} of these items may be longer than what is sent and kept ({MOST_ITEMS:,} items, "
                f"{MOST_BYTES:,} bytes): name a public part of them in `among`, or give them shorter ids."
            )

    def require_size(self, most: int) -> None:
        """Refuses, before it is charged, a message of so many bytes at most, if that is more than is kept."""
        if most + _FRAME > MOST_BYTES:
            raise InvalidParameter(
                f"what is released of so many items may be longer than what a ledger keeps ({MOST_BYTES:,} bytes): leave items "
                "out of the catalogues, or give them shorter ids."
            )

    def digest(self, *parts: object) -> str:
        """Of public parameters only: what the ledger keeps is not to tell what a person asked for."""
        return sha256("\n".join(map(repr, parts)).encode()).hexdigest()

    def packed(self, message: dict[str, Any]) -> bytes:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()

    def charge(self, release_id: str, guarantee: Guarantee) -> Receipt:
        """For what is made and not kept."""
        self._meet(guarantee)
        self.sent_again = False
        return self.ledger.charge(self.subject, release_id, guarantee)

    def statement(self) -> Statement:
        if self._new and known_terms(self.ledger, self.subject) is None:
            nothing = NOTHING_SPENT, (NOTHING_SPENT,) * len(self.terms.budgets)
            return statement_of(self.subject, self.terms, self._clock(), {}, *nothing)
        return self.ledger.statement(self.subject)

    def close(self) -> None:
        if self._own:
            self.ledger.close()

    def _agreed(self, wished: Terms | None, accounting: Accounting | str | None, unprotected: Collection[str]) -> Terms:
        """The terms that stand; without a budget of one's own those that were agreed before, or else the default."""
        known = known_terms(self.ledger, self.subject)
        if wished is None:
            stands = known or self._terms(self.kind.budget, accounting, unprotected)
            same = accounting is None and not unprotected
            wished = stands if same else self._terms(stands.budgets, accounting or stands.accounting, unprotected)
        _require_sums(wished.accounting)
        if wished.protects != ONE_USER:
            raise Conflict("this subject of the ledger is protected in another unit: name another subject.")
        self._new = known is None and self.kind.late
        if not self._new:
            if known is None and not self._named:
                require_unrelated(self.ledger, self.subject)
            agree(self.ledger, self.subject, wished)
            return wished
        if not self._named:
            require_named(self.ledger, self.subject)
        for budget in wished.budgets:
            allowance(budget, wished)  # refuses a budget that nothing could be charged to
        return wished

    def _meet(self, guarantee: Guarantee) -> None:
        """Agrees the terms of a new subject, now that something is charged; refused where that would not fit."""
        if self._new:
            if not self._named:
                require_named(self.ledger, self.subject)
            require_fits(guarantee, self.terms)
            agree(self.ledger, self.subject, self.terms)
            self._new = False

    def _terms(
        self, budget: Budget | Sequence[Budget], accounting: Accounting | str | None, unprotected: Collection[str]
    ) -> Terms:
        listed = (
            tuple(budget) if isinstance(budget, Iterable) else (budget,)
        )  # what is no Budget is refused by the terms
        if accounting is None:
            spent = all(isinstance(one, Budget) and one.delta for one in listed)
            accounting = Accounting.ZCDP if spent and listed and self.kind.concentrated else Accounting.BASIC
        _require_sums(member("accounting", Accounting, accounting))
        if isinstance(unprotected, str):
            raise InvalidParameter("`unprotected` must be a collection of names, such as ['published'].")
        named = [reason for one in unprotected for reason in self.kind.reasons.get(one, (one,))]
        return Terms.of(listed, ONE_USER, accounting, unprotected=named)


def _seal(salt: str, asked: bytes) -> str:
    return sha256(salt.encode() + asked).hexdigest()


def _require_sums(accounting: Accounting) -> None:
    if accounting is Accounting.PLD:
        raise InvalidParameter("releases of several kinds add up by 'basic' or 'zcdp', not by 'pld'.")


SLATES = Kind(
    Budget(epsilon=1.0),
    "slate",
    concentrated=True,
    used_up=" (counts or a kernel: with another epsilon, or by popularity or similarity with a request_id)",
    reasons={PUBLISHED: tuple(NaturalSlate.published(2, 1, 1.0).guarantee.assumes)},
)
