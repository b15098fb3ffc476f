"""Private selection on one device, from the offer to the report: what is written, when, and what may then leave."""

from contextlib import suppress

from tacit.device.accounts import Accounts
from tacit.device.choice import Choice, read_offer
from tacit.device.choosing import Choosing, Quality
from tacit.device.clicks import Clicks
from tacit.device.limits import Limits, server_name
from tacit.device.revocations import Revocations
from tacit.errors import InvalidParameter, UnknownName
from tacit.ledger import Consent, DisplayLedger, Settlement
from tacit.ledger.clock import SECOND, Clock
from tacit.mechanisms import Noise
from tacit.messages import fields
from tacit.messages.private_selection import Engagement, Impression, ShuffledReport

_TIDY_EVERY = 3600 * SECOND


class Selecting:
    """The displays are in the file of the privacy ledger. What she clicked is in memory only, as her profile is."""

    def __init__(
        self,
        displays: DisplayLedger,
        accounts: Accounts,
        limits: Limits,
        quality: Quality | None,
        *,
        noise: Noise,
        clock: Clock,
    ) -> None:
        self._displays = displays
        self._choosing = Choosing(self._displays, accounts, limits, quality, noise, clock)
        self._clicks = Clicks(self._displays, accounts, limits, noise, clock)
        self._clicked: set[tuple[str, str]] = set()  # private
        self._revocations = Revocations(displays, self._clicked.clear)
        self._engaged: set[tuple[str, str]] = set()  # reported, with a final answer
        self._report_tokens: dict[tuple[str, str], str] = {}
        self._clock, self._tidied = clock, 0

    def consent(self, granted: bool) -> Consent:
        if not granted:
            self._clicked.clear()
        return self._displays.consent(granted)

    def consent_state(self) -> Consent:
        return self._displays.consent_state()

    def choose(self, offer: object, server: str, report_token: str | None) -> Choice | None:
        server, found = server_name(server), read_offer(offer)
        if report_token is not None:
            fields.hexadecimal(report_token, "the token of a shuffled report", least=32, most=400)
        if not 0 <= self._clock() - self._tidied < _TIDY_EVERY:  # else servers would decide how many rows there are
            self._tidied = self._clock()
            self._displays.forget()
        return None if found is None else self._choosing.choose(found, server, report_token)

    def shown(self, choice: Choice) -> Impression:
        """Marks first, then gives what may leave."""
        if not isinstance(choice, Choice):
            raise InvalidParameter(
                "what was shown is a Choice; where device.choose(offer) gave None, nothing is shown."
            )
        choice.impression()  # refuses what is to be shuffled
        return Choice.of(self._displays.mark_shown(choice.server, choice.token)).impression()

    def shuffled_report(self, choice: Choice, token: str | None) -> ShuffledReport:
        kept = Choice.of(self._displays.mark_shown(choice.server, choice.token))
        return self._with_token(kept, token).shuffled()

    def pending(self, server: str) -> list[Impression]:
        return [one.impression() for one in self._unreported(server) if one.batch is None]

    def pending_reports(self, server: str) -> list[ShuffledReport]:
        found = [self._with_token(one, None) for one in self._unreported(server) if one.batch is not None]
        return [one.shuffled() for one in found if one.report_token is not None]

    def settled(self, what: Choice | Impression | ShuffledReport | Engagement, outcome: str, server: str) -> None:
        if not isinstance(what, Choice | Impression | ShuffledReport | Engagement):
            raise InvalidParameter("what was answered is a Choice, an Impression, a ShuffledReport or an Engagement.")
        server = what.server if isinstance(what, Choice) else server_name(server)
        try:
            Settlement(outcome)  # every answer that a ledger gives is final; what is none of them is asked again
        except ValueError:
            raise InvalidParameter(f"a final answer is one of {', '.join(Settlement)}.") from None
        if isinstance(what, Engagement):
            self._engaged.add((server, what.token))
            return
        token = what.token
        if isinstance(what, ShuffledReport):
            waiting = [self._with_token(one, None) for one in self._unreported(server) if one.batch is not None]
            token = next((one.token for one in waiting if one.report_token == what.token), "")
        if token:
            with suppress(UnknownName):  # forgotten meanwhile: more than a day after its offer expired
                self._displays.mark_reported(server, token)

    def note_click(self, choice: Choice) -> None:
        self._revocations.obey()  # else this click would be wiped with those before
        self._clicked.add((choice.server, choice.token))

    def clicked(self, what: Choice | Impression, clicked: bool, server: str) -> Engagement | None:
        if type(clicked) is not bool:
            raise InvalidParameter("clicked must be True or False.")
        server = what.server if isinstance(what, Choice) else server_name(server)
        return self._clicks.report(server, what.token, clicked)

    def clicks_due(self, server: str) -> list[Engagement]:
        server, found = server_name(server), []
        due = self._clicks.due(server)
        self._revocations.obey()
        for token in due:
            if (server, token) not in self._engaged:
                found.append(self._clicks.report(server, token, (server, token) in self._clicked))
        return [one for one in found if one is not None]

    def _unreported(self, server: str) -> list[Choice]:
        self._displays.forget()
        return [Choice.of(display) for display in self._displays.pending(server_name(server))]

    def _with_token(self, choice: Choice, token: str | None) -> Choice:
        """With the report token that came first: one that was given to ``choose`` is on the disk, a later one in memory."""
        key = (choice.server, choice.token)
        first = choice.report_token or self._report_tokens.get(key) or token
        if first is not None:
            self._report_tokens.setdefault(key, first)
        return choice.with_token(self._report_tokens.get(key))
