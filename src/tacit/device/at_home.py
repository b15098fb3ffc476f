"""What a client does without a word to anybody: the same for the one that waits and the one that awaits."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.device.choice import Choice
from tacit.device.conversation import Conversation
from tacit.device.readings import Readings
from tacit.device.remote_catalogue import RemoteCatalogue
from tacit.errors import InvalidParameter
from tacit.ledger import Consent, Head, Statement
from tacit.messages.multi_selection import Eta, Signal


class AtHome:
    """Every method is that of ``tacit.Device``, for one server. Nothing leaves the device by any of them."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @property
    def catalogue(self) -> RemoteCatalogue:
        """What the server said of its items when this client was opened."""
        return self._conversation.catalogue

    def rate(self, ratings: Mapping[int | str, float]) -> None:
        """Adds ratings by the items' titles or ids, all or none of them."""
        with self._conversation.lock:
            self._conversation.device.rate(ratings)

    def forget(self, item: int | str) -> None:
        """Removes a rating from the profile. A signal that is already drawn stays what it is."""
        with self._conversation.lock:
            self._conversation.device.forget(item)

    def ask(self, eta: Eta = 0.1) -> Signal:
        """Draws this slot's signal now, to be sent by ``recommend`` at a time of the calendar.

        ``eta`` is the L1 distance of features between which one nat is lost: larger is more private.
        """
        with self._conversation.lock:
            return self._conversation.device.ask(eta)

    def titles(self, items: Iterable[int | str] | Choice) -> tuple[str, ...]:
        """The titles of picked items, by their ids, or of a choice."""
        if isinstance(items, Choice):
            return tuple(self.catalogue.title(item) for item in items.items)
        return self._conversation.device.titles(items)

    def readings(
        self, eta: Eta = 0.1, population: NDArray[Any] | None = None, *, rng: np.random.Generator | None = None
    ) -> Readings:
        """What one signal promises, in plain numbers; ``eta`` is an L1 distance of features. For her eyes only."""
        with self._conversation.lock:
            return self._conversation.device.readings(eta, population, rng=rng)

    def consent(self) -> Consent:
        """She agrees that offers are chosen from by what is private."""
        with self._conversation.lock:
            return self._conversation.device.consent()

    def revoke(self) -> Consent:
        """She no longer does; the profile is wiped."""
        with self._conversation.lock:
            return self._conversation.device.revoke()

    def consent_state(self) -> Consent:
        """What she last said about offers, and when; not granted before she said anything."""
        return self._conversation.device.consent_state()

    def note_click(self, choice: Choice) -> None:
        """Remembers, in memory, that she clicked. It leaves with ``clicks``, as a bit that chance may have flipped."""
        with self._conversation.lock:
            self._conversation.device.note_click(choice)

    def waiting(self) -> int:
        """How many reports of what was shown have no final answer yet."""
        return len(self._conversation.device.pending(self._conversation.name))

    def statement(self) -> Statement:
        """What signals have promised so far, and what is left."""
        return self._conversation.device.statement()

    def selection_statement(self) -> Statement:
        """The same for choices and clicks at this server."""
        return self._conversation.device.statement(self._conversation.name)

    def overall_statement(self) -> Statement:
        """The same for all of it, where there is an overall budget."""
        return self._conversation.device.statement(overall=True)

    def head(self) -> Head:
        """How far the file has come. Note it elsewhere; given to the next start, it refuses an older copy."""
        return self._conversation.device.head()

    def __repr__(self) -> str:
        known = repr(self.catalogue) if self._conversation.opened else "not open"
        return f"{type(self).__name__}({known})"  # public numbers only

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a client holds a private profile and is not written, copied or sent.")
