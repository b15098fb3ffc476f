"""A device that talks to a server over HTTP, and waits for its answers.

with tacit.Client("https://films.example", "me.db", budget=tacit.Budget(epsilon=10, per="month")) as me:
    me.rate({"Toy Story (1995)": 5, "Heat (1995)": 3})
    print(me.titles(me.recommend(eta=0.1)))
"""

from time import sleep
from typing import TYPE_CHECKING, Self, Unpack, cast

from tacit.device.at_home import AtHome
from tacit.device.choice import Choice
from tacit.device.connection import no_answer
from tacit.device.conversation import Done
from tacit.device.exchange import Answer, Call, NoAnswer, Pause, Steps, T
from tacit.device.opening import ClientOptions, opening
from tacit.device.received import Received
from tacit.ledger.stores import Target
from tacit.messages.multi_selection import Eta

if TYPE_CHECKING:
    import httpx


class Client(AtHome):
    """One user's device and one server. ``ledger`` is the device's own file; budget, limits and the rest are those of ``Device``.

    The profile is in memory and stays there. What leaves: this slot's signal, requests for offers, what was shown, randomised
    clicks. ``name`` is the server's in the ledger (its address, if none is given): budgets and reports hang on it. ``timeout`` is
    in seconds, for each step of a call, by default 10; a call is made ``tries`` times at most, by default 4. ``form`` is how slates
    are asked for, "binary" (the default) or "json". ``insecure`` allows http:// beyond this machine,
    ``trust_env`` proxies from the environment; ``transport`` is httpx's.
    """

    def __init__(
        self,
        server: str,
        ledger: Target,
        *,
        transport: "httpx.BaseTransport | None" = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        conversation, self._httpx, settings, self._longest = opening(server, ledger, **options)
        super().__init__(conversation)
        self._http: httpx.Client = self._httpx.Client(transport=transport, **settings)
        try:
            self._run(self._conversation.begin())
        except BaseException:
            self.close()
            raise

    def recommend(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate of ``k``, best first. Sends this slot's signal, the same bytes each time, and
        picks here. Fetch the content of the whole slate, or the fetching tells what was picked.
        ``eta`` is the L1 distance of features between which one nat is lost: larger is more private.
        """
        return self._run(self._conversation.recommend(k, t, eta))

    def choose(self, context: str = "") -> Choice | None:
        """Asks for an offer and chooses from it privately. The choice is on the disk when it is returned; None: nothing to show."""
        return self._run(self._conversation.choose(context))

    def shown(self, choice: Choice) -> str:
        """Notes, durably, that the choice is on the screen, then reports it: "ok", "duplicate", "conflict", "unknown", "expired",
        or "pending" where there was no final answer: ``flush`` sends it again."""
        return self._run(self._conversation.shown(choice))

    def flush(self) -> int:
        """Sends the reports that have no final answer, and returns how many still have none."""
        return self._run(self._conversation.flush())

    def clicks(self) -> int:
        """Sends one randomised bit for every display whose window is over, clicked or not; how many still wait. Call it at times of
        the calendar."""
        return self._run(self._conversation.clicks())

    def close(self) -> None:
        """Closes the connection and the ledger. What was shown and not answered is sent by the next start's ``flush``."""
        self._http.close()
        self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = self._conversation.advance(steps, None)
            while not isinstance(step, Done):
                step = self._conversation.advance(steps, self._took(step))
            return step.value
        finally:
            steps.close()

    def _took(self, step: Call | Pause) -> Answer | NoAnswer | None:
        if isinstance(step, Pause):
            sleep(step.seconds)
            return None
        try:
            with self._http.stream(step.method, step.path, content=step.body, headers=step.headers) as response:
                received = Received(step, response.status_code, response.headers, self._longest)
                for chunk in cast(
                    "httpx.SyncByteStream", response.stream
                ):  # as they are sent: unpacking has its own limit
                    if not received.goes_on(chunk):
                        break
            return received.answer()
        except self._httpx.RequestError as problem:
            return no_answer(problem)
