"""The same client for programs that await: what talks is awaited, what stays at home is not.

async with tacit.AsyncClient("https://films.example", "me.db", budget=tacit.Budget(epsilon=10, per="month")) as me:
    me.rate({"Toy Story (1995)": 5, "Heat (1995)": 3})
    print(me.titles(await me.recommend(eta=0.1)))
"""

from functools import partial
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


class AsyncClient(AtHome):
    """``tacit.Client`` for asyncio and trio. It opens with ``async with``; a thread beside the loop draws and writes.

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
        conversation, self._httpx, settings, self._longest = opening(server, ledger, **options)
        super().__init__(conversation)
        self._http: httpx.AsyncClient = self._httpx.AsyncClient(transport=transport, **settings)

    async def recommend(self, k: int = 5, t: int = 1, *, eta: Eta = 0.1) -> tuple[int | str, ...]:
        """The ids of the ``t`` best items of a slate of ``k``, best first, as ``Client.recommend`` gives them.

        ``eta`` is the L1 distance of features between which one nat is lost: larger is more private.
        """
        return await self._run(self._conversation.recommend(k, t, eta))

    async def choose(self, context: str = "") -> Choice | None:
        """Asks for an offer and chooses from it privately, as ``Client.choose``; None: nothing to show."""
        return await self._run(self._conversation.choose(context))

    async def shown(self, choice: Choice) -> str:
        """Notes that the choice is on the screen, reports it, and gives the answer in a word, as ``Client.shown``."""
        return await self._run(self._conversation.shown(choice))

    async def flush(self) -> int:
        """Sends the reports that have no final answer, and returns how many still have none."""
        return await self._run(self._conversation.flush())

    async def clicks(self) -> int:
        """Sends one randomised bit for every display whose window is over, clicked or not; how many still wait."""
        return await self._run(self._conversation.clicks())

    async def aclose(self) -> None:
        """Closes the connection and the ledger. What was shown and not answered is sent by the next start's ``flush``."""
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
        from anyio.to_thread import run_sync  # comes with httpx

        try:
            # A thread that draws or writes is waited for, also by a task that is cancelled meanwhile.
            step = await run_sync(self._conversation.advance, steps, None)
            while not isinstance(step, Done):
                step = await run_sync(partial(self._conversation.advance, steps, await self._took(step)))
            return step.value
        finally:
            steps.close()

    async def _took(self, step: Call | Pause) -> Answer | NoAnswer | None:
        from anyio import sleep

        if isinstance(step, Pause):
            await sleep(step.seconds)
            return None
        try:
            async with self._http.stream(step.method, step.path, content=step.body, headers=step.headers) as response:
                received = Received(step, response.status_code, response.headers, self._longest)
                async for chunk in cast("httpx.AsyncByteStream", response.stream):
                    if not received.goes_on(chunk):
                        break
            return received.answer()
        except self._httpx.RequestError as problem:
            return no_answer(problem)
