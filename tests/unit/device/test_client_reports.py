"""Reports and retries: what was shown is told at least once and counted once, the same bytes each time, also after a crash."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.errors import ServerRefused, ServerUnavailable
from tests.unit.device.tiny_server import JSON, KINDS, TinyServer, client_of, opened, pauses, problem, server, told

__all__ = ["opened", "pauses", "server"]
pytestmark = pytest.mark.usefixtures("pauses")
IMPRESSIONS = "/v1/private-selection/impressions"
ENGAGEMENTS = "/v1/private-selection/engagements"
SLATES = "/v1/multi-selection"
Opened = Callable[..., Any]


@pytest.fixture
def consenting(opened: Opened) -> Opened:
    """Opens clients whose user consents."""

    def open_client(**options: Any) -> Any:
        client = opened(**options)
        client.consent()
        return client

    return open_client


def silent(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("nobody is there")


def counted(server: TinyServer) -> int:
    return sum(total.impressions for total in server.shop.ledger.items())


def in_turn(*answers: Any) -> Callable[[httpx.Request], httpx.Response | None]:
    """These answers, one for each request; None is the server's own. The last one stays."""
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response | None:
        made = left.pop(0) if len(left) > 1 else left[0]
        return made(request) if callable(made) else made

    return answer


NOT_FINAL = {
    "silence": silent,
    "408": lambda _: problem("too-slow", 408),
    "429": lambda _: problem("too-many-requests", 429),
    "500": lambda _: problem("internal-error", 500),
    "503": lambda _: problem("not-ready", 503),
    "502 of a gateway": lambda _: httpx.Response(502, text="<html>"),
    "200 of a gateway": lambda _: httpx.Response(200, headers={"content-type": "text/html"}, text="<html>log in"),
    "404 of a gateway": lambda _: httpx.Response(404, text="<html>"),
    "a redirect": lambda _: httpx.Response(302, headers={"location": "http://127.0.0.1:8000/elsewhere"}),
    "an unknown outcome": lambda _: told({"outcome": "fine"}),
    "a list for an outcome": lambda _: told({"outcome": ["ok"]}),
    "two outcomes": lambda _: told(b'{"outcome":"conflict","outcome":"ok"}'),
    "no JSON": lambda _: told(b"{"),
    "no message": lambda _: told({"outcome": "ok", "next": 1}),
    "another type": lambda _: told({"outcome": "ok"}, kind="text/plain"),
    "too much": lambda _: told(b" " * 5000 + b'{"outcome":"ok"}'),
}


@pytest.mark.parametrize("answer", NOT_FINAL.values(), ids=NOT_FINAL.keys())
def test_without_a_final_answer_a_report_is_pending_and_leaves_again_the_same(
    consenting: Opened, server: TinyServer, answer: Any
) -> None:
    server.instead[IMPRESSIONS] = answer
    me = consenting()
    choice = me.choose()
    assert me.shown(choice) == "pending"
    assert me.waiting() == me.flush() == 1
    me.close()
    later = consenting()
    assert later.waiting() == 1
    server.instead.clear()
    assert later.flush() == 0
    assert len(set(server.sent("impressions"))) == 1
    assert counted(server) == 1


def test_an_answer_that_was_lost_on_the_way_is_a_duplicate_the_second_time(
    consenting: Opened, server: TinyServer
) -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        server.answer(request)
        raise httpx.ReadTimeout("too late")

    server.instead[IMPRESSIONS] = in_turn(lost, None)
    me = consenting()
    choice = me.choose()
    assert me.shown(choice) == "duplicate"
    assert me.waiting() == 0
    assert counted(server) == 1


@pytest.mark.parametrize("outcome", ["ok", "duplicate", "conflict", "unknown", "expired"])
def test_every_outcome_is_final(consenting: Opened, server: TinyServer, outcome: str) -> None:
    server.instead[IMPRESSIONS] = lambda _: told({"outcome": outcome})
    me = consenting()
    assert me.shown(me.choose()) == outcome
    assert me.waiting() == me.flush() == 0
    assert len(server.sent("impressions")) == 1


@pytest.mark.parametrize(("code", "status"), [("invalid-message", 422), ("malformed-body", 400), ("not-found", 404)])
def test_a_refusal_in_the_servers_own_words_is_final_and_told(
    consenting: Opened, server: TinyServer, code: str, status: int
) -> None:
    server.instead[IMPRESSIONS] = lambda _: problem(code, status)
    me = consenting()
    with pytest.raises(ServerRefused, match=code) as caught:
        me.shown(me.choose())
    assert (caught.value.problem, caught.value.status) == (code, status)
    assert me.waiting() == me.flush() == 0
    assert len(server.sent("impressions")) == 1


def test_a_refusal_does_not_hold_up_the_others(consenting: Opened, server: TinyServer) -> None:
    me = consenting()
    server.instead[IMPRESSIONS] = silent
    for _ in range(3):
        me.shown(me.choose())
    server.instead[IMPRESSIONS] = in_turn(lambda _: problem("invalid-message", 422), None)
    with pytest.raises(ServerRefused, match="invalid-message"):
        me.flush()
    assert me.waiting() == 0
    assert counted(server) == 2


def test_nor_does_a_report_that_the_server_stumbles_over(consenting: Opened, server: TinyServer) -> None:
    me = consenting()
    server.instead[IMPRESSIONS] = silent
    for _ in range(3):
        me.shown(me.choose())
    stumbling = min(
        set(server.sent("impressions"))
    )  # pending ones are sent in the order of their tokens: this is the first
    server.instead[IMPRESSIONS] = lambda request: (
        problem("internal-error", 500) if request.content == stumbling else None
    )
    assert me.flush() == 1
    assert counted(server) == 2


def test_where_nobody_answers_the_others_are_not_even_tried(consenting: Opened, server: TinyServer) -> None:
    me = consenting(tries=2)
    server.instead[IMPRESSIONS] = silent
    for _ in range(5):
        me.shown(me.choose())
    server.requests.clear()
    assert me.flush() == 5
    assert len(server.sent("impressions")) == 2


def test_what_was_not_shown_is_not_reported(consenting: Opened, server: TinyServer) -> None:
    me = consenting()
    me.choose()
    assert me.flush() == 0
    assert server.sent("impressions") == []


def test_shown_twice_is_counted_once(consenting: Opened, server: TinyServer) -> None:
    me = consenting()
    choice = me.choose()
    assert [me.shown(choice), me.shown(choice)] == ["ok", "duplicate"]
    assert counted(server) == 1


def killed(kind: str, folder: Path) -> None:
    """Shows something, and is killed while the report is on its way."""
    server = TinyServer(folder / "server.db")

    def kill(request: httpx.Request) -> httpx.Response:
        (folder / "sent").write_bytes(request.content)
        os._exit(9)

    server.instead[IMPRESSIONS] = kill
    me = client_of(kind, folder / "me.db", server)
    me.consent()
    me.shown(me.choose())


# Other tests of the same process may have started threads; the child touches nothing of theirs.
@pytest.mark.filterwarnings("ignore:os.fork\\(\\) was called:RuntimeWarning")
@pytest.mark.parametrize("kind", list(KINDS))
def test_killed_between_the_showing_and_the_answer_it_sends_the_same_again(kind: str, tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=killed, args=(kind, tmp_path))
    child.start()
    child.join(60)
    assert child.exitcode == 9
    server = TinyServer(tmp_path / "server.db")
    with client_of(kind, tmp_path / "me.db", server) as me:
        assert me.waiting() == 1
        assert me.flush() == 0
    assert server.sent("impressions") == [(tmp_path / "sent").read_bytes()]
    assert counted(server) == 1
    server.shop.close()


def test_clicks_wait_for_a_final_answer_too(consenting: Opened, server: TinyServer) -> None:
    me = consenting()
    for _ in range(3):
        me.shown(me.choose())
    server.clock.set(2026, 11, 16, 15)
    server.instead[ENGAGEMENTS] = in_turn(None, lambda _: told({"outcome": "?"}), silent)
    assert me.clicks() == 2
    server.instead.clear()
    assert me.clicks() == 0
    sent = server.sent("engagements")
    assert len(set(sent)) == 3  # the same bit each time


class TestRetries:
    def test_the_same_bytes_after_each_failure_and_ever_longer_pauses(
        self, consenting: Opened, server: TinyServer, pauses: list[float]
    ) -> None:
        failures = [silent, lambda _: problem("internal-error", 500), lambda _: problem("too-slow", 408)]
        server.instead[SLATES] = in_turn(*failures, None)
        me = consenting()
        pauses.clear()
        assert len(me.recommend()) == 1
        assert len(server.sent("multi-selection")) == 4
        assert len(set(server.sent("multi-selection"))) == 1
        assert me.statement().charges == 1
        for pause, most in zip(pauses[1:], (0.5, 1.0, 2.0), strict=True):
            assert most / 2 <= pause <= most

    def test_few_times(self, consenting: Opened, server: TinyServer) -> None:
        server.instead[SLATES] = silent
        me = consenting(tries=3)
        with pytest.raises(ServerUnavailable, match="does not answer") as caught:
            me.recommend()
        assert caught.value.status is None
        assert len(server.sent("multi-selection")) == 3

    def test_the_pause_that_the_server_asks_for(
        self, consenting: Opened, server: TinyServer, pauses: list[float]
    ) -> None:
        busy = problem("too-many-requests", 429, **{"retry-after": "7"})
        server.instead[SLATES] = in_turn(busy, None)
        me = consenting()
        pauses.clear()
        me.recommend()
        assert pauses[1:] == [7.0]

    @pytest.mark.parametrize("asked", ["31", "86400", "9" * 100, "9" * 400])
    def test_who_asks_for_too_long_a_pause_is_not_waited_for(
        self, consenting: Opened, server: TinyServer, pauses: list[float], asked: str
    ) -> None:
        server.instead[SLATES] = lambda _: problem("not-ready", 503, **{"retry-after": asked})
        me = consenting()
        pauses.clear()
        with pytest.raises(ServerUnavailable, match="503") as caught:
            me.recommend()
        assert caught.value.status == 503
        assert caught.value.retry_after is not None
        assert caught.value.retry_after > 30
        assert len(server.sent("multi-selection")) == 1
        assert sum(pauses) <= 0.1

    @pytest.mark.parametrize("asked", ["", "soon", "-5", "1e9", "nan", "²", "Wed, 21 Oct 2026 07:28:00 GMT"])
    def test_what_is_no_number_of_seconds_is_the_usual_pause(
        self, consenting: Opened, server: TinyServer, pauses: list[float], asked: str
    ) -> None:
        busy = httpx.Response(503, headers=[(b"retry-after", asked.encode())])
        server.instead[SLATES] = in_turn(busy, None)
        me = consenting()
        pauses.clear()
        me.recommend()
        assert len(pauses) == 2
        assert pauses[1] <= 0.5

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 409, 413, 415, 422])
    def test_every_other_answer_is_final(self, consenting: Opened, server: TinyServer, status: int) -> None:
        server.instead[SLATES] = lambda _: problem("invalid-message", status, "ask for fewer.\x1b[31m")
        with pytest.raises(ServerRefused) as caught:
            consenting().recommend()
        assert str(caught.value) == "server-refused: the server says invalid-message: ask for fewer. [31m"
        assert (caught.value.problem, caught.value.status) == ("invalid-message", status)
        assert len(server.sent("multi-selection")) == 1

    def test_so_is_the_way_to_the_catalogue(self, consenting: Opened, server: TinyServer, tmp_path: Path) -> None:
        server.instead["/v1/catalogue"] = in_turn(silent, silent, None)
        consenting()
        server.instead["/v1/catalogue"] = silent
        with pytest.raises(ServerUnavailable):
            consenting()

    def test_an_answer_that_trickles_is_none(
        self, consenting: Opened, server: TinyServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each byte comes in time, all of them never do."""
        me, at = consenting(), [0.0]
        monkeypatch.setattr("tacit.device.wire.monotonic", lambda: at[0])

        class Trickle(httpx.SyncByteStream, httpx.AsyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                while at[0] < 10_000:
                    at[0] += 9.0
                    yield b" "

            async def __aiter__(self) -> Any:
                for byte in iter(self):
                    yield byte

        server.instead[SLATES] = lambda _: httpx.Response(200, headers={"content-type": JSON}, stream=Trickle())
        with pytest.raises(ServerUnavailable, match="took too long"):
            me.recommend()
        assert at[0] < 1000
