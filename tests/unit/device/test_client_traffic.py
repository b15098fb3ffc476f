"""What leaves a client: messages, the same from everybody where nothing may be told, and at times that say nothing."""

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import tacit
from tacit.device.conversation import STEP, call_for
from tacit.errors import InvalidParameter
from tacit.messages.multi_selection import Request
from tests.unit.device.tiny_server import ADDRESS, KINDS, TinyServer, client_of, film, pauses

__all__ = ["pauses"]
pytestmark = pytest.mark.usefixtures("pauses")
VALUE = 3.14159265  # a rating that nothing else looks like
PROFILES: dict[str, dict[Any, float]] = {
    "nothing": {},
    "one": {film(7): VALUE},
    "likes": {film(place): 5.0 for place in range(0, 60, 2)},
    "dislikes": {film(place): VALUE for place in range(1, 200, 3)},
}
HEADERS = {
    "GET": {"accept", "accept-encoding", "connection", "host", "user-agent"},
    "POST": {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"},
}


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def conversed(
    kind: str, folder: Path, ratings: dict[Any, float], *, consents: bool = True, **options: Any
) -> TinyServer:
    """The server, after everything that a client can say was said."""
    folder.mkdir()
    server = TinyServer(folder / "server.db")
    with client_of(kind, folder / "me.db", server, **options) as me:
        me.rate(ratings)
        if consents:
            me.consent()
        me.recommend(eta=0.1)
        me.recommend(k=9, t=2, eta=0.2)
        for context in ("", "sport"):
            choice = me.choose(context)
            me.note_click(choice)
            assert me.shown(choice) == "ok"
        server.clock.set(2026, 11, 16, 15)
        assert me.flush() == me.clicks() == 0
    server.shop.close()
    return server


def without_tokens(traffic: list[bytes]) -> list[bytes]:
    """Tokens are the server's own coins."""
    return [re.sub(rb'"token":"[0-9a-f]{32}"', b'"token":"-"', one) for one in traffic]


def test_whoever_may_tell_nothing_says_the_same_whatever_the_profile(kind: str, tmp_path: Path) -> None:
    said = [
        without_tokens(conversed(kind, tmp_path / name, ratings, reinstalled=True).traffic())
        for name, ratings in PROFILES.items()
    ]
    assert len(said[0]) >= 8
    assert all(one == said[0] for one in said)


def test_so_does_whoever_does_not_consent_and_has_spent_her_budget(kind: str, tmp_path: Path) -> None:
    said = []
    for name, ratings in PROFILES.items():
        server = TinyServer(tmp_path / f"{name} server.db")
        with client_of(kind, tmp_path / f"{name}.db", server) as me:
            me.rate(ratings)
            me.recommend(eta=0.1)  # all of the month's budget
            server.requests.clear()
            me.recommend(eta=0.2)
            me.shown(me.choose())
        said.append(without_tokens(server.traffic()))
        server.shop.close()
    assert all(one == said[0] for one in said)
    assert said[0][0].endswith(bytes(40))  # a signal that tells nothing


def test_no_title_and_no_rating_is_in_the_traffic(kind: str, tmp_path: Path) -> None:
    for name in ("one", "dislikes"):
        for form in ("binary", "json"):
            server = conversed(kind, tmp_path / f"{name} {form}", PROFILES[name], form=form)
            traffic = b"\n".join(server.traffic())
            assert b"engagements" in traffic
            for private in (b"Film", b"film", str(VALUE).encode(), struct.pack("<d", VALUE), struct.pack("<f", VALUE)):
                assert private not in traffic


def test_every_body_is_one_message_and_nothing_beside_it(kind: str, tmp_path: Path) -> None:
    server = conversed(kind, tmp_path / "all", PROFILES["one"])
    assert {len(one) for one in server.sent("multi-selection")} == {16 + 4 * 10}
    assert [set(json.loads(one)) for one in server.sent("offers")] == [{"version", "context", "consent"}] * 2
    assert [set(json.loads(one)) for one in server.sent("impressions")] == [{"version", "token", "items"}] * 2
    assert [set(json.loads(one)) for one in server.sent("engagements")] == [{"version", "token", "bit", "epsilon"}] * 2
    assert {one.content for one in server.requests if one.method == "GET"} == {b""}


def test_no_header_tells_one_machine_from_another(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server sets a cookie and a tag with its first answer; neither comes back."""
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid")
    server = conversed(kind, tmp_path / "all", {})
    for request in server.requests:
        assert set(request.headers) == HEADERS[request.method]
        assert request.headers["user-agent"] == "tacit"
        assert request.headers["accept-encoding"] == "gzip"
        assert request.headers["host"] == "127.0.0.1:8000"
    with client_of(kind, tmp_path / "all" / "me.db", server) as me:  # nor do they after a restart
        me.recommend()
    assert set(server.requests[-1].headers) == HEADERS["POST"]


def test_a_second_request_of_a_slot_is_the_same_bytes_whatever_was_rated_meanwhile(kind: str, tmp_path: Path) -> None:
    server = TinyServer(tmp_path / "server.db")
    for ratings in PROFILES.values():
        with client_of(kind, tmp_path / "me.db", server) as me:
            me.rate(ratings)
            me.recommend(eta=0.1)
            me.rate({film(9): 1})
            me.recommend(eta=0.1)
    assert len(server.sent("multi-selection")) == 2 * len(PROFILES)
    assert len(set(server.sent("multi-selection"))) == 1
    server.shop.close()


def test_what_was_asked_before_is_what_is_sent(kind: str, tmp_path: Path) -> None:
    server = TinyServer(tmp_path / "server.db")
    with client_of(kind, tmp_path / "me.db", server) as me:
        me.rate(PROFILES["likes"])
        signal = me.ask(eta=0.1)
        assert server.sent("multi-selection") == []
        me.recommend(k=5, t=1, eta=0.1)
    assert server.sent("multi-selection") == [Request(signal, 5, 1).to_bytes()]
    server.shop.close()


def test_a_spent_budget_sends_the_older_signal_of_the_same_eta(kind: str, tmp_path: Path) -> None:
    server = TinyServer(tmp_path / "server.db")
    with client_of(kind, tmp_path / "me.db", server, refresh="day") as me:
        me.recommend(eta=0.1)
        server.clock.set(2026, 11, 17, 12)
        me.recommend(eta=0.1)
        assert me.statement().charges == 1
        server.clock.set(2026, 12, 1, 12)
        me.recommend(eta=0.1)
        assert me.statement().charges == 2
    first, second, third = server.sent("multi-selection")
    assert first == second != third
    server.shop.close()


def delayed(work: Callable[..., Any], at: list[float], took: float) -> Callable[..., Any]:
    def slow(*args: Any, **options: Any) -> Any:
        at[0] += took
        return work(*args, **options)

    return slow


@pytest.mark.parametrize("took", [0.0, 0.001, 0.037, 0.0999, 0.25])
def test_what_private_work_took_is_not_seen(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float], took: float
) -> None:
    """A signal leaves, and a choice is returned, at a full step after the call, however long drawing and scoring took."""
    server, at = TinyServer(tmp_path / "server.db"), [0.0]
    monkeypatch.setattr("tacit.device.conversation.monotonic", lambda: at[0])
    with client_of(kind, tmp_path / "me.db", server) as me:
        device = getattr(me, "client", me)._conversation.device
        for name in ("request", "choose", "clicks_due"):
            monkeypatch.setattr(device, name, delayed(getattr(device, name), at, took))
        for call in (me.recommend, me.choose, me.clicks):
            pauses.clear()
            call()
            assert len(pauses) == 1
            steps = (took + pauses[0]) / STEP
            assert steps == pytest.approx(round(steps))
            assert 0 < pauses[0] <= STEP
    server.shop.close()


def test_only_messages_leave() -> None:
    for other in (b"bytes", {"rating": 5}, "text", None, object()):
        with pytest.raises(InvalidParameter, match="only these may leave"):
            call_for(other)  # type: ignore[arg-type]


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            "http://127.0.0.1:8000",
            "http://localhost",
            "http://[::1]:80",
            "http://127.9.9.9",
            "https://films.example/shop/",
        ],
    )
    def test_this_machine_or_a_certificate(self, tmp_path: Path, address: str) -> None:
        server = TinyServer(tmp_path / "server.db")
        with client_of("waiting", tmp_path / "me.db", server, address=address) as me:
            me.recommend()
        assert [str(one.url) for one in server.requests] == [
            f"{address.rstrip('/').replace(':80/', '/')}{path}"
            if not address.endswith(":80")
            else f"http://[::1]{path}"
            for path in ("/v1/catalogue", "/v1/multi-selection")
        ]
        server.shop.close()

    @pytest.mark.parametrize(
        "address",
        [
            "http://films.example",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "http://0x7f000001",
            "http://2130706433",
            "http://[::2]",
        ],
    )
    @pytest.mark.parametrize("kind", [tacit.Client, tacit.AsyncClient])
    def test_no_plain_http_beyond_this_machine(self, tmp_path: Path, kind: Any, address: str) -> None:
        with pytest.raises(InvalidParameter, match="insecure=True"):
            kind(address, tmp_path / "me.db")
        assert list(tmp_path.iterdir()) == []

    def test_unless_it_is_said_openly(self, tmp_path: Path) -> None:
        server = TinyServer(tmp_path / "server.db")
        with client_of("waiting", tmp_path / "me.db", server, address="http://films.example", insecure=True) as me:
            me.recommend()
        assert server.requests[0].url.host == "films.example"
        server.shop.close()

    @pytest.mark.parametrize(
        "address",
        [
            "films.example",
            "ftp://films.example",
            "https://",
            "https://me:secret@films.example",
            "https://@films.example",
            "http://127.0.0.1\\@films.example",
            "http://127.0.0.1@films.example",
            "https://films.example?user=7",
            "https://films.example#x",
            "https://films.example/a b",
            "https://films.example/../x",
            "https://films.example:port",
            "https://films.example:99999",
            "https://films\n.example",
            "https://[fe80::1%eth0]",
            "",
            None,
            7,
            b"https://films.example",
        ],
    )
    def test_what_is_no_address_is_refused_and_not_repeated(self, tmp_path: Path, address: Any) -> None:
        with pytest.raises(InvalidParameter, match="a server must be named") as caught:
            tacit.Client(address, tmp_path / "me.db")
        assert "secret" not in str(caught.value)

    def test_certificates_are_checked_and_the_environment_is_not_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made: list[dict[str, Any]] = []

        class Noted(httpx.Client):
            def __init__(self, **options: Any) -> None:
                made.append(options)
                super().__init__(**options)

        server = TinyServer(tmp_path / "server.db")
        monkeypatch.setattr(httpx, "Client", Noted)
        client_of("waiting", tmp_path / "me.db", server).close()
        client_of("waiting", tmp_path / "me.db", server, trust_env=True, timeout=3).close()
        assert [one["trust_env"] for one in made] == [False, True]
        assert [one["verify"] for one in made] == [True, True]
        assert [one["follow_redirects"] for one in made] == [False, False]
        assert [one["timeout"] for one in made] == [10.0, 3.0]
        for odd in ({"timeout": 0}, {"timeout": None}, {"trust_env": "yes"}, {"tries": 0}):
            with pytest.raises(InvalidParameter):
                tacit.Client(ADDRESS, tmp_path / "me.db", **odd)
        server.shop.close()
