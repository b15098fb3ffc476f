"""A device that talks to a server over HTTP: ``Client`` blocks, ``AsyncClient`` awaits.

with tacit.Client("https://films.example", "me.db", budget=tacit.Budget(epsilon=10, per="month")) as me:
    me.rate({"Toy Story (1995)": 5, "Heat (1995)": 3})
    print(me.titles(me.recommend(eta=0.1)))

async with tacit.AsyncClient("https://films.example", "me.db", budget=tacit.Budget(epsilon=10, per="month")) as me:
    me.rate({"Toy Story (1995)": 5, "Heat (1995)": 3})
    print(me.titles(await me.recommend(eta=0.1)))
"""

from collections.abc import Iterable, Mapping
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from tacit.device.catalogue import RemoteCatalogue
from tacit.device.conversation import Conversation, DeviceOptions, StepsResult
from tacit.device.multi_selection import Readings
from tacit.device.private_selection import Choice
from tacit.device.wire import (
    Call,
    NoResponse,
    Pause,
    Response,
    ResponseReader,
    Retries,
    Steps,
    T,
    checked_address,
    connection_settings,
    import_httpx,
    name_of,
    no_response,
)
from tacit.errors import InvalidParameter
from tacit.ledger import Consent, Head, Statement, Target
from tacit.messages.multi_selection import Eta, Signal

if TYPE_CHECKING:
    import httpx

LONGEST = 6.0  # timeouts that a whole response may take


class ClientOptions(DeviceOptions, total=False):
    """The options of both clients, beside server, ledger and transport. ``tacit.Client`` explains each of them."""

    form: str
    name: str | None
    insecure: bool
    trust_env: bool
    timeout: float  # seconds
    tries: int


class BaseClient:
    """The part that both clients share: opening, and the methods of ``tacit.Device`` that send nothing."""

    def __init__(
        self,
        server: str,
        ledger: Target,
        *,
        form: str = "binary",
        name: str | None = None,
        insecure: bool = False,
        trust_env: bool = False,
        timeout: float = 10.0,
        tries: int = 4,
        **device: Unpack[DeviceOptions],
    ) -> None:
        """Checks all options. Nothing is sent, and no file is made."""
        address, self._httpx = checked_address(server, insecure=insecure), import_httpx()
        self._settings = connection_settings(address, timeout, trust_env)
        self._longest = LONGEST * self._settings["timeout"]
        self._conversation = Conversation(ledger, name or name_of(address), form, Retries(tries), device)

    @property
    def catalogue(self) -> RemoteCatalogue:
        """The server's catalogue, as it was when this client was opened."""
        return self._conversation.catalogue

    def rate(self, ratings: Mapping[int | str, float]) -> None:
        """Adds ratings by the items' titles or ids, all or none of them."""
        with self._conversation.lock:
            self._conversation.device.rate(ratings)

    def forget(self, item: int | str) -> None:
        """Removes a rating from the profile. A signal that was already drawn does not change."""
        with self._conversation.lock:
            self._conversation.device.forget(item)

    def ask(self, eta: Eta = 0.1) -> Signal:
        """Draws the signal of the current slot now, so that ``recommend`` can send it at a fixed time of the calendar.

        ``eta`` is the L1 distance of features between which one nat is lost: larger is more private.
        """
        with self._conversation.lock:
            return self._conversation.device.ask(eta)

    def titles(self, items: Iterable[int | str] | Choice) -> tuple[str, ...]:
        """The titles of picked items, by their ids, or of a choice."""
        return self._conversation.device.titles(items)

    def readings(
        self, eta: Eta = 0.1, population: NDArray[Any] | None = None, *, rng: np.random.Generator | None = None
    ) -> Readings:
        """The guarantee of one signal in plain numbers. Show it to the user only. ``eta`` is an L1 distance of features."""
        with self._conversation.lock:
            return self._conversation.device.readings(eta, population, rng=rng)

    def consent(self) -> Consent:
        """Records the user's consent to private selection. Without consent, offers are answered from public data only."""
        with self._conversation.lock:
            return self._conversation.device.consent()

    def revoke(self) -> Consent:
        """Revokes consent, and wipes the profile."""
        with self._conversation.lock:
            return self._conversation.device.revoke()

    def consent_state(self) -> Consent:
        """Whether the user consents, and since which day. Without an answer there is no consent."""
        return self._conversation.device.consent_state()

    def note_click(self, choice: Choice) -> None:
        """Remembers a click, in memory. It leaves with ``clicks``, as a bit that may have been flipped at random."""
        with self._conversation.lock:
            self._conversation.device.note_click(choice)

    def waiting(self) -> int:
        """The number of impressions without a final answer."""
        return len(self._conversation.device.pending(self._conversation.name))

    def statement(self) -> Statement:
        """The guarantee of all signals so far, and what is left."""
        return self._conversation.device.statement()

    def selection_statement(self) -> Statement:
        """The guarantee of choices and clicks at this server so far, and what is left."""
        return self._conversation.device.statement(self._conversation.name)

    def overall_statement(self) -> Statement:
        """The guarantee of everything together so far, and what is left, if there is an overall budget."""
        return self._conversation.device.statement(overall=True)

    def head(self) -> Head:
        """How far the file has come. Note it elsewhere; the next start, given this head, refuses an older copy."""
        return self._conversation.device.head()

    def __repr__(self) -> str:
        content = repr(self.catalogue) if self._conversation.opened else "not open"
        return f"{type(self).__name__}({content})"  # public numbers only

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidParameter("a client holds a private profile and cannot be written, copied or sent.")


class Client(BaseClient):
    """One user's device and one server. ``ledger`` is the device's own file; budget, limits and the rest are those of ``Device``.

    The profile stays in memory. These leave: the signal of the current slot, requests for offers, what was shown, and randomised
    clicks. ``name`` is the server's name in the ledger, by default its address: budgets and reports belong to it. ``timeout`` is
    in seconds, for each step of a call (default 10); a call is made at most ``tries`` times (default 4). ``form`` is how slates
    are asked for, "binary" (default) or "json". ``insecure`` allows http:// beyond this machine, ``trust_env`` allows proxies from
    the environment; ``transport`` is httpx's.
    """

    def __init__(
        self,
        server: str,
        ledger: Target,
        *,
        transport: "httpx.BaseTransport | None" = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        super().__init__(server, ledger, **options)
        self._http: httpx.Client = self._httpx.Client(transport=transport, **self._settings)
        try:
            self._run(self._conversation.begin())
        except BaseException:
            self.close()
            raise

    def recommend(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate of ``k``, best first.

        It sends the signal of the current slot, the same bytes each time, and picks on the device. Fetch the content of the whole
        slate: fetching only the pick would tell the server.
        ``eta`` is the L1 distance of features between which one nat is lost: larger is more private.
        """
        return self._run(self._conversation.recommend(k, t, eta))

    def choose(self, context: str = "") -> Choice | None:
        """Asks for an offer and chooses from it privately. The choice is on the disk when it is returned. None: show nothing."""
        return self._run(self._conversation.choose(context))

    def shown(self, choice: Choice) -> str:
        """Records, durably, that the choice is on the screen, then reports it.

        Returns "ok", "duplicate", "conflict", "unknown" or "expired"; or "pending" without a final answer, and then ``flush`` sends
        the report again.
        """
        return self._run(self._conversation.shown(choice))

    def flush(self) -> int:
        """Sends the impressions that have no final answer, and returns how many still have none."""
        return self._run(self._conversation.flush())

    def clicks(self) -> int:
        """Sends one randomised bit for every display whose window is over, clicked or not, and returns how many still wait.

        Call it at fixed times of the calendar.
        """
        return self._run(self._conversation.clicks())

    def close(self) -> None:
        """Closes the connection and the ledger. The next start's ``flush`` sends the impressions that have no final answer."""
        self._http.close()
        self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, steps: Steps[T]) -> T:
        try:
            step = self._conversation.advance(steps, None)
            while not isinstance(step, StepsResult):
                step = self._conversation.advance(steps, self._perform(step))
            return step.value
        finally:
            steps.close()

    def _perform(self, step: Call | Pause) -> Response | NoResponse | None:
        if isinstance(step, Pause):
            sleep(step.seconds)
            return None
        try:
            with self._http.stream(step.method, step.path, content=step.body, headers=step.headers) as response:
                reader = ResponseReader(step, response.status_code, response.headers, self._longest)
                # Bytes as they arrive, still packed: the reader limits what they unpack to.
                for chunk in cast("httpx.SyncByteStream", response.stream):
                    if not reader.feed(chunk):
                        break
            return reader.response()
        except self._httpx.RequestError as problem:
            return no_response(problem)


class AsyncClient(BaseClient):
    """``tacit.Client`` for asyncio and trio. Open it with ``async with``. A thread beside the loop draws and writes.

    ``timeout`` is in seconds, for each of ``tries`` attempts.
    """

    def __init__(
        self,
        server: str,
        ledger: Target,
        *,
        transport: "httpx.AsyncBaseTransport | None" = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        super().__init__(server, ledger, **options)
        self._http: httpx.AsyncClient = self._httpx.AsyncClient(transport=transport, **self._settings)

    async def recommend(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate of ``k``, best first, as ``Client.recommend`` gives them.

        ``eta`` is the L1 distance of features between which one nat is lost: larger is more private.
        """
        return await self._run(self._conversation.recommend(k, t, eta))

    async def choose(self, context: str = "") -> Choice | None:
        """Asks for an offer and chooses from it privately, as ``Client.choose`` does. None: show nothing."""
        return await self._run(self._conversation.choose(context))

    async def shown(self, choice: Choice) -> str:
        """Records that the choice is on the screen and reports it. Returns the outcome, as ``Client.shown`` does."""
        return await self._run(self._conversation.shown(choice))

    async def flush(self) -> int:
        """Sends the impressions that have no final answer, and returns how many still have none."""
        return await self._run(self._conversation.flush())

    async def clicks(self) -> int:
        """Sends one randomised bit for every display whose window is over, clicked or not, and returns how many still wait."""
        return await self._run(self._conversation.clicks())

    async def aclose(self) -> None:
        """Closes the connection and the ledger. The next start's ``flush`` sends the impressions that have no final answer."""
        await self._http.aclose()
        self._conversation.close()

    async def __aenter__(self) -> Self:
        try:
            await self._run(self._conversation.begin())
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _run(self, steps: Steps[T]) -> T:
        from anyio.to_thread import run_sync  # anyio comes with httpx

        try:
            # Even a cancelled task waits for the thread that draws or writes.
            step = await run_sync(self._conversation.advance, steps, None)
            while not isinstance(step, StepsResult):
                step = await run_sync(partial(self._conversation.advance, steps, await self._perform(step)))
            return step.value
        finally:
            steps.close()

    async def _perform(self, step: Call | Pause) -> Response | NoResponse | None:
        from anyio import sleep

        if isinstance(step, Pause):
            await sleep(step.seconds)
            return None
        try:
            async with self._http.stream(step.method, step.path, content=step.body, headers=step.headers) as response:
                reader = ResponseReader(step, response.status_code, response.headers, self._longest)
                async for chunk in cast("httpx.AsyncByteStream", response.stream):
                    if not reader.feed(chunk):
                        break
            return reader.response()
        except self._httpx.RequestError as problem:
            return no_response(problem)
