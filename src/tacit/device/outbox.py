"""Reports on their way: each was noted on the disk before it is sent, and is sent, the same, until the server gave a final answer.

Final are the outcomes of a settlement, and a refusal in the server's own words. Silence, a page of some gateway on the way, or an
answer that cannot be read are none: such a report stays, and leaves again with the next ``flush``, also after a restart.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.device.choice import Choice
from tacit.device.device import Device
from tacit.device.exchange import Patience, Steps, accepted, answered, read_json
from tacit.device.outgoing import posted
from tacit.errors import InvalidMessage, InvalidParameter, ServerRefused, ServerUnavailable
from tacit.ledger import Settlement
from tacit.messages import fields
from tacit.messages.private_selection import Engagement, Impression

PENDING = "pending"
_MOST_OUTCOME = 1 << 12  # bytes
_ASKS_FOR_A_PAUSE = (None, 408, 429, 503)  # nobody is there, or too much is: whatever is sent next fares the same


@dataclass(frozen=True)
class Outbox:
    device: Device
    server: str  # its name in the device's ledger
    patience: Patience
    rng: np.random.Generator

    def shown(self, choice: Choice) -> Steps[str]:
        """Notes, then reports. "pending" without a final answer."""
        if not isinstance(choice, Choice) or choice.server != self.server:
            raise InvalidParameter("only a choice from an offer of this server is reported to it.")
        impression = self.device.shown(choice)
        try:
            return (yield from self._report(impression, self.patience))
        except (ServerUnavailable, InvalidMessage):
            return PENDING

    def flush(self) -> Steps[int]:
        """Sends what was shown and has no final answer; how many still wait. Raises a refusal after all others were sent."""
        yield from self._send(self.device.pending(self.server))
        return len(self.device.pending(self.server))

    def clicks(self, due: list[Engagement]) -> Steps[int]:
        """Sends the bits that are due; how many of them still wait."""
        return (yield from self._send(due))

    def _send(self, reports: Sequence[Impression | Engagement]) -> Steps[int]:
        patience, waiting, refusal = self.patience, 0, None
        for place, report in enumerate(reports):
            try:
                yield from self._report(report, patience)
            except InvalidMessage:
                waiting += 1
            except ServerRefused as refused:
                refusal = refusal or refused
            except ServerUnavailable as problem:
                if problem.status in _ASKS_FOR_A_PAUSE:
                    waiting += len(reports) - place
                    break
                # It may be about this one report: the others are tried too, once each, lest one holds up all.
                waiting, patience = waiting + 1, Patience(tries=1)
        if refusal is not None:
            raise refusal
        return waiting

    def _report(self, report: Impression | Engagement, patience: Patience) -> Steps[str]:
        call = posted(report, most=_MOST_OUTCOME)
        answer = yield from answered(call, patience, self.rng)
        try:
            outcome = _outcome(accepted(answer, call))
        except ServerRefused as refused:
            if refused.problem is None:
                raise InvalidMessage("the answer to a report is not in the server's own words.") from None
            # The server will never count it. To the device all final answers are alike: it is not sent again.
            self.device.settled(report, Settlement.UNKNOWN, self.server)
            raise
        self.device.settled(report, outcome, self.server)
        return outcome.value


def _outcome(content: bytes) -> Settlement:
    found = fields.members(read_json(content), "an outcome", ("outcome",))["outcome"]
    try:
        return Settlement(found)
    except ValueError:
        raise InvalidMessage(f"an outcome is one of {', '.join(Settlement)}.") from None
