"""A device that talks: what it gets, what it picks and chooses, and that both clients are one."""

import asyncio
import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
import pytest

import tacit
from tacit.device import Limits, Overall
from tacit.device.wire import checked_address
from tacit.errors import Conflict, InvalidParameter, LedgerMissing, MissingExtra
from tacit.ledger import Budget
from tacit.messages.multi_selection import Reply
from tacit.messages.private_selection import BatchTerms
from tests.unit.device.tiny_server import (
    ADDRESS,
    BINARY,
    BUDGET,
    LISTED,
    ROWS,
    STORE,
    TinyServer,
    film,
    opened,
    pauses,
    server,
    told,
)

__all__ = ["opened", "pauses", "server"]
pytestmark = pytest.mark.usefixtures("pauses")
RATINGS = {film(3): 5, film(5): 1, 130: 4.5}
Opened = Callable[..., Any]


def features(ratings: dict[Any, float] = RATINGS) -> np.ndarray:
    codes = STORE.items.codes(list(ratings))
    return STORE.space.of(codes, np.array(list(ratings.values())))


def quality(ratings: dict[Any, float]) -> dict[int, float]:
    """Of the listed items, by the public model."""
    estimates = ROWS @ np.concatenate([[1.0], features(ratings)])
    return {item: estimates[STORE.items.code(item)] for item in LISTED}


def test_the_ten_lines(opened: Opened, server: TinyServer) -> None:
    with opened() as me:
        me.rate(RATINGS)
        (picked,) = me.recommend(eta=0.1)
        assert me.titles((picked,)) == (film(STORE.items.code(picked)),)
        assert "10 epsilon spent, 0 left" in str(me.statement())
        me.consent()
        choice = me.choose()
        assert int(choice.item) in LISTED
        assert me.titles(choice) == (film(STORE.items.code(int(choice.item))),)
        assert me.shown(choice) == "ok"
        assert me.waiting() == me.flush() == 0
        assert "1 epsilon spent" in str(me.selection_statement())
    (counted,) = [total for total in server.shop.ledger.items() if total.impressions]
    assert (counted.item, counted.impressions) == (choice.item, 1)


def test_the_pick_is_the_best_of_the_slate_at_the_true_features(opened: Opened, server: TinyServer) -> None:
    replies = []

    def kept(request: httpx.Request) -> httpx.Response:
        replies.append(server.answer(request).read())
        return told(replies[-1], kind=BINARY)

    server.instead["/v1/multi-selection"] = kept
    me = opened()
    me.rate(RATINGS)
    picked = me.recommend(k=7, t=3)
    reply = Reply.from_bytes(replies[0])
    estimates = reply.model.matrix @ np.concatenate([[1.0], features()])
    # By estimate, not by item: two items may tie up to the last digit, and this sum has another order than the device's.
    value = dict(zip(reply.items, estimates.tolist(), strict=True))
    assert [value[int(item)] for item in picked] == pytest.approx(sorted(value.values(), reverse=True)[:3])
    assert len(server.sent("multi-selection")) == 1


def test_offers_are_chosen_from_by_the_servers_public_model_at_the_true_features(
    opened: Opened, tmp_path: Path
) -> None:
    server = TinyServer(tmp_path / "other.db", epsilon=30.0)
    me = opened(server=server, limits=Limits(most_epsilon=30.0, budget=Budget(30, per="day")))
    ratings = {film(5): 1.0, film(34): 5.0}
    found = quality(ratings)
    best = max(found.values())
    assert best > max(found[item] for item in LISTED[:10]) + 0.01  # it is in the model's second part
    assert best > found[int(server.shop.offer().candidates[0].item)] + 0.01  # and not the public choice
    me.rate(ratings)
    me.consent()
    assert found[int(me.choose().item)] == pytest.approx(best, abs=1e-5)  # but once in 10^12
    server.shop.close()


def test_a_private_model_of_the_application_takes_its_place(opened: Opened, tmp_path: Path) -> None:
    server = TinyServer(tmp_path / "other.db", epsilon=30.0)
    wanted = str(LISTED[13])
    me = opened(
        server=server,
        limits=Limits(most_epsilon=30.0, budget=Budget(30, per="day")),
        private_scorer=lambda _, items: [5.0 * (item == wanted) for item in items],
    )
    me.consent()
    assert me.choose().item == wanted
    assert server.sent("scorer") == []
    server.shop.close()


@pytest.mark.parametrize("consents", [True, False])
def test_all_of_the_model_is_fetched_once_before_the_first_offer_whatever_is_chosen(
    opened: Opened, server: TinyServer, consents: bool
) -> None:
    me = opened()
    if consents:
        me.consent()
    me.choose()
    me.choose("sport")
    paths = [f"{one.url.path.rpartition('/')[2]}{one.url.query.decode()}" for one in server.requests]
    assert paths == ["catalogue", "scorerpart=0", "scorerpart=1", "offers", "offers"]


def test_in_json_the_same_is_said(opened: Opened, server: TinyServer) -> None:
    binary, json_ = opened(), opened(form="json")
    for me in (binary, json_):
        me.rate(RATINGS)
        me.choose()
    assert binary.recommend(k=4, t=4) == json_.recommend(k=4, t=4)  # one file, one signal, one slate
    first, second = server.sent("multi-selection")
    assert first != second
    assert b'"steps"' in second
    assert {one.headers["accept"] for one in server.requests[2:]} == {"application/json", "application/vnd.tacit"}
    with pytest.raises(InvalidParameter, match="form"):
        opened("other.db", form="xml")


def test_nothing_to_offer_is_nothing_to_show(opened: Opened, server: TinyServer) -> None:
    server.instead["/v1/private-selection/offers"] = lambda _: httpx.Response(204)
    assert opened().choose() is None


def test_an_offer_whose_report_is_to_be_shuffled_is_none_for_this_client(opened: Opened, server: TinyServer) -> None:
    def shuffled(request: httpx.Request) -> httpx.Response:
        offer = server.shop.offer().to_json()
        prices = (0,) * len(offer["candidates"])
        return told({**offer, "batch": BatchTerms("batch", prices).to_json()})

    server.instead["/v1/private-selection/offers"] = shuffled
    me = opened()
    me.consent()
    assert me.choose() is None
    assert me.selection_statement().charges == 0


def test_clicks_leave_as_one_bit_for_each_display_and_again_the_same_after_a_restart(
    opened: Opened, server: TinyServer
) -> None:
    me = opened()
    me.consent()
    choices = [me.choose() for _ in range(3)]
    for choice in choices:
        me.shown(choice)
    me.note_click(choices[1])
    assert me.clicks() == 0
    assert server.sent("engagements") == []  # no window is over
    server.clock.set(2026, 11, 16, 15)
    assert me.clicks() == 0
    assert me.clicks() == 0  # nothing is left to send
    first = server.sent("engagements")
    assert len(first) == 3
    me.close()
    assert opened().clicks() == 0
    assert server.sent("engagements")[3:] == first


def test_a_choice_of_another_server_is_not_reported_to_this_one(opened: Opened, server: TinyServer) -> None:
    choice = opened().choose()
    other = opened(name="another shop")
    with pytest.raises(InvalidParameter, match="this server"):
        other.shown(choice)
    with pytest.raises(InvalidParameter, match="this server"):
        other.shown(choice.item)
    assert server.sent("impressions") == []


def test_every_server_has_a_budget_of_its_own_under_its_address(opened: Opened) -> None:
    long = f"https://{'a' * 50}.example/{'b' * 30}"
    for me, name in (
        (opened(), "127.0.0.1:8000"),
        (opened(address="https://Films.example/shop/"), "films.example/shop"),
        (opened(name="films"), "films"),
        (opened(address=long), None),
    ):
        me.consent()
        me.choose()
        subject = me.selection_statement().subject
        assert me.selection_statement().charges == 1
        assert subject == f"selection {name}" if name else len(subject) == len("selection ") + 32


def test_what_a_device_takes_a_client_takes(opened: Opened) -> None:
    me = opened(overall=Overall(2.0, Budget(100, per="month")), refresh="day", per_period=2)
    me.recommend()
    assert me.overall_statement().charges == 1
    head = me.head()
    me.close()
    with pytest.raises(Conflict):
        opened(budget=Budget(11, per="month"))
    with pytest.raises(LedgerMissing):
        opened("new.db", head=head)


@pytest.mark.parametrize(
    ("ways", "address"),
    [
        (["https://films.example", "https://films.example:443", "HTTPS://Films.Example:443/"], "https://films.example"),
        (["https://films.example/shop", "https://films.example:443/shop/"], "https://films.example/shop"),
        (["http://localhost", "http://localhost:80", "http://LOCALHOST:080/"], "http://localhost"),
        (["http://[::1]", "http://[::1]:80"], "http://[::1]"),
        (["https://films.example:80"], "https://films.example:80"),
        (["http://localhost:443"], "http://localhost:443"),
        (["https://films.example:8443"], "https://films.example:8443"),
    ],
)
def test_an_address_is_written_in_one_way_without_the_usual_port(ways: list[str], address: str) -> None:
    assert {checked_address(way) for way in ways} == {address}


def test_a_server_has_one_budget_whether_its_usual_port_is_said_or_not(opened: Opened) -> None:
    short, said = opened(address="https://films.example"), opened(address="https://films.example:443")
    short.consent()
    assert short.choose() is not None
    assert said.selection_statement().charges == 1


def test_a_reinstalled_device_tells_nothing(opened: Opened, server: TinyServer) -> None:
    me = opened(reinstalled=True)
    me.rate(RATINGS)
    me.recommend()
    assert server.sent("multi-selection")[0][16:] == bytes(40)


def test_revoking_wipes_the_profile_and_tells_the_next_request(opened: Opened, server: TinyServer) -> None:
    me = opened()
    me.rate(RATINGS)
    me.consent()
    assert me.consent_state().granted
    me.revoke()
    me.choose()
    assert me.readings().one_rating.removed is None  # no rating is left
    assert server.sent("offers") == [b'{"version":1,"context":"","consent":0}']


def test_its_text_shows_public_numbers_only(opened: Opened) -> None:
    me = opened()
    client = getattr(me, "client", me)
    empty = repr(client)
    assert "300 items, 10 features" in empty
    me.rate(RATINGS)
    assert repr(client) == str(client) == empty


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_it_is_not_written_or_copied(opened: Opened, way: Callable[[Any], Any]) -> None:
    me = opened()
    with pytest.raises(InvalidParameter, match="private"):
        way(getattr(me, "client", me))


def test_what_she_tried_to_rate_is_in_no_error(opened: Opened) -> None:
    with pytest.raises(tacit.errors.UnknownName) as caught:
        opened().rate({"Secret Film (1999)": 5})
    assert "Secret" not in str(caught.value)


def test_a_profile_does_not_change_while_a_signal_is_drawn_from_it(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = opened()
    device, drawing, go_on = getattr(me, "client", me)._conversation.device, Event(), Event()
    request = device.request

    def slow(*args: Any, **options: Any) -> Any:
        drawing.set()
        assert go_on.wait(10)
        return request(*args, **options)

    monkeypatch.setattr(device, "request", slow)
    with ThreadPoolExecutor(2) as threads:
        asked = threads.submit(me.recommend)
        assert drawing.wait(10)
        rated = threads.submit(me.rate, RATINGS)
        with pytest.raises(TimeoutError):
            rated.result(0.2)
        go_on.set()
        assert len(asked.result(10)) == 1
        rated.result(10)


def test_without_the_package_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    for kind in (tacit.Client, tacit.AsyncClient):
        with pytest.raises(MissingExtra, match=r"pip install 'tacit\[client\]'"):
            kind(ADDRESS, tmp_path / "me.db")
    assert list(tmp_path.glob("me.db*")) == []


def test_devices_that_do_not_talk_load_nothing_that_does() -> None:
    code = "import sys, tacit; tacit.Device, tacit.Client; print('httpx' in sys.modules, 'anyio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_both_are_names_of_the_package() -> None:
    assert {"Client", "AsyncClient"} <= set(tacit.__all__) & set(dir(tacit))
    assert tacit.Client is tacit.device.Client
    assert tacit.AsyncClient is tacit.device.AsyncClient


class TestAwaiting:
    """What only the one that awaits can get wrong."""

    def made(self, tmp_path: Path, server: Any) -> tacit.AsyncClient:
        transport = httpx.MockTransport(server)
        return tacit.AsyncClient(ADDRESS, tmp_path / "me.db", budget=BUDGET, transport=transport)

    def test_before_it_is_open_it_says_so(self, tmp_path: Path, server: TinyServer) -> None:
        async def main() -> None:
            me = self.made(tmp_path, server)
            assert repr(me) == "AsyncClient(not open)"
            with pytest.raises(InvalidParameter, match="async with"):
                me.rate({film(3): 5})
            with pytest.raises(InvalidParameter, match="async with"):
                await me.recommend()
            async with me:
                with pytest.raises(InvalidParameter, match="open already"):
                    await me.__aenter__()

        asyncio.run(main())

    def test_many_at_once_send_one_signal(self, tmp_path: Path, server: TinyServer) -> None:
        async def main() -> None:
            async with self.made(tmp_path, server) as me:
                me.rate(RATINGS)
                await asyncio.gather(*(me.recommend() for _ in range(8)))
                assert me.statement().charges == 1

        asyncio.run(main())
        assert len(server.sent("multi-selection")) == 8
        assert len(set(server.sent("multi-selection"))) == 1

    def test_a_report_that_is_cancelled_is_pending(self, tmp_path: Path, server: TinyServer) -> None:
        async def handler(request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("impressions"):
                await asyncio.Event().wait()
            return server(request)

        async def main() -> None:
            server.clock.at = tacit.ledger.chain.now()
            async with self.made(tmp_path, handler) as me:
                choice = await me.choose()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(me.shown(choice), 0.3)
                assert me.waiting() == 1

        asyncio.run(main())
