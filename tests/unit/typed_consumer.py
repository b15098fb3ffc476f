"""A user's program, as the README has it: checked by mypy in test_typed_consumer.py, never run.

Every ``assert_type`` fails where tacit tells a type checker less than it knows, and Any is never what is asserted.
"""

from typing import assert_type

import tacit
from tacit.curator import Curator
from tacit.data import Ratings, TwoDomains
from tacit.device import Choice
from tacit.guarantees import Guarantee
from tacit.ledger import Head, Statement
from tacit.messages.cross_domain import TransferModel
from tacit.messages.multi_selection import Reply, Signal
from tacit.messages.private_selection import Offer
from tacit.messages.private_slates import Popularity, Slate


def multi_selection() -> None:
    ratings = tacit.data.load("movielens-small")
    assert_type(ratings, Ratings)
    store = tacit.fit(ratings, epochs=2)
    assert_type(store, tacit.Store)
    server = tacit.server.MultiSelection(store)
    device = tacit.Device("me.db", store, budget=tacit.Budget(epsilon=10, per="month"))
    device.rate({"Toy Story (1995)": 5, "Heat (1995)": 3, "Fargo (1996)": 4.5})
    signal = device.ask(eta=0.1)
    assert_type(signal, Signal)
    reply = server.answer(signal, k=5)
    assert_type(reply, Reply)
    item = device.pick(reply)
    assert_type(item, tuple[int | str, ...])
    assert_type(device.titles(item), tuple[str, ...])
    assert_type(signal.guarantee, Guarantee)
    assert_type(device.statement(), Statement)


def slates(ratings: Ratings) -> None:
    with tacit.Curator(ratings, ledger="front-page.db", budget=tacit.Budget(epsilon=1)) as curator:
        assert_type(curator, Curator)
        slate = curator.slate(k=10, epsilon=1, request_id="front page")
        assert_type(slate, Slate)
        assert_type(curator.titles(slate), tuple[str, ...])
        assert_type(slate.guarantee.epsilon, float)
        assert_type(curator.popularity(0.5), Popularity)
        assert_type(curator.head(), Head)


def cross_domain(ratings: Ratings) -> None:
    halves = tacit.data.TwoDomains.by_items(ratings, [True] * ratings.n_items)
    assert_type(halves, TwoDomains)
    shop = tacit.Curator(halves, ledger="comedies.db", budget=tacit.Budget(epsilon=2, delta=1e-6))
    model = shop.release(epsilon=2, delta=1e-6, users=700)
    assert_type(model, TransferModel)
    assert_type(model.remark, str)
    shop.titles(model.recommend({1: 5.0, 608: 4.5}, k=2))


def selection(device: tacit.Device, shop: tacit.server.PrivateSelection) -> None:
    offer = shop.offer(device.offer_request("sport"))
    assert_type(offer, Offer | None)
    choice = device.choose(offer)
    assert_type(choice, Choice | None)
    if choice is not None:
        shop.bill(device.shown(choice))


def federation(entity: tacit.Entity, manifest: bytes) -> None:
    assert_type(entity.release(manifest), bytes)
    assert_type(entity.answer(manifest), bytes | None)
    assert_type(entity.statement(), Statement)


def client() -> None:
    with tacit.Client("http://127.0.0.1:8000", "me.db", budget=tacit.Budget(epsilon=10, per="month")) as me:
        assert_type(me.recommend(eta=0.1), tuple[int | str, ...])
        assert_type(me.choose(), Choice | None)


def wrong(ratings: Ratings) -> None:
    """Each line has a mistake that a type checker must see; one that it does not is an unused ignore, and fails."""
    tacit.nonsense  # type: ignore[attr-defined]  # noqa: B018
    tacit.data.nonsense  # type: ignore[attr-defined]  # noqa: B018
    tacit.systems.nonsense  # type: ignore[attr-defined]  # noqa: B018
    tacit.Curator(ratings, ledger="x.db", budgets=tacit.Budget(1))  # type: ignore[call-arg]
    tacit.Budget(epsilon="1")  # type: ignore[arg-type]
    tacit.fit("movielens-small")  # type: ignore[arg-type]
