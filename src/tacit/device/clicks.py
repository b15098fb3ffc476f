"""Clicks, which leave as a bit that chance may have flipped, and for every display alike: clicked or not, at a public time."""

from dataclasses import dataclass

from tacit.device.accounts import Accounts
from tacit.device.choice import Choice
from tacit.device.choosing import charged
from tacit.device.limits import Limits
from tacit.ledger import DisplayLedger, DisplayState
from tacit.ledger.clock import SECOND, Clock
from tacit.mechanisms import Noise, RandomisedResponse
from tacit.messages.private_selection import Engagement


@dataclass(frozen=True)
class Clicks:
    displays: DisplayLedger
    accounts: Accounts
    limits: Limits
    noise: Noise
    clock: Clock

    def due(self, server: str) -> list[str]:
        """The tokens whose window is over: those of all displays under consent, whatever she did."""
        now, window = self.clock(), self.limits.click_window
        shown = [Choice.of(display) for display in self.displays.shown(server)] if self._allowed() else []
        return [one.token for one in shown if _wanted(one) and now >= (one.expires + window) * SECOND]

    def report(self, server: str, token: str, clicked: bool) -> Engagement | None:
        """The bit of a display: charged and drawn the first time, after that the same bit, whatever is said then.

        None without a display under consent that was shown, or where nothing is left: which follows from how much was offered.
        """
        display = self.displays.find(server, token)
        if display is None or display.state is DisplayState.CHOSEN or not _wanted(Choice.of(display)):
            return None
        if self.limits.click_epsilon is None or not self._allowed():
            return None
        mechanism, what = RandomisedResponse(2, self.limits.click_epsilon), ("click", token)
        receipt = self.accounts.pay(server, what, charged(mechanism.guarantee, self.noise))
        if receipt is None:
            kept = self.accounts.kept(server, what)  # from when there was room
            return None if kept is None else _kept_as(token, kept)
        kept = self.accounts.awaited(server, what, receipt)
        if kept is not None:
            return _kept_as(token, kept)
        epsilon = mechanism.guarantee.epsilon
        drawn = Engagement.from_release(mechanism.release(int(clicked), self.noise), token, epsilon)
        return _kept_as(token, self.accounts.keep(server, what, f"{drawn.bit} {drawn.epsilon!r}".encode()))

    def _allowed(self) -> bool:
        return self.limits.click_epsilon is not None and self.displays.consent_state().granted


def _kept_as(token: str, content: bytes) -> Engagement:
    """A bit with the epsilon that it was drawn at, which may not be today's."""
    bit, epsilon = content.decode().split(" ")
    return Engagement(token, int(bit), float(epsilon))


def _wanted(choice: Choice) -> bool:
    """Chosen under consent; and a token whose report is shuffled must not come with a click."""
    return choice.consented and choice.batch is None
