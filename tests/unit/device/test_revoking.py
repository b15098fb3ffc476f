"""Revoking in one process: what others with the same file hold in their memory is wiped before it is next used."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.device import Choice, Device
from tacit.device.multi_selection import mechanism_of
from tacit.ledger import DisplayLedger
from tacit.ledger.verification import check
from tacit.messages.multi_selection import exact_eta
from tacit.messages.private_selection import Engagement, Policy, Rule
from tests.releases import message_of
from tests.unit.device.offering import EXPIRES, offered, token
from tests.unit.device.small_world import BUDGET, SHOP, Clock
from tests.unit.device.test_clicks import Truth
from tests.unit.device.tiny_server import KINDS, TinyServer, client_of, film, pauses

__all__ = ["pauses"]
RATINGS = {2: 5.0, 21: 1.0}
LATER = {5: 4.0}
Opened = Callable[..., Device]


class Seen:
    """A private model that notes at which features it was asked."""

    def __init__(self) -> None:
        self.features: list[list[float]] = []

    def __call__(self, features: np.ndarray, items: tuple[str, ...]) -> list[float]:
        self.features.append(features.tolist())
        return [0.0] * len(items)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "me.db"


@pytest.fixture
def opened(place: Path) -> Iterator[Opened]:
    devices = []

    def open_device(**options: Any) -> Device:
        devices.append(Device(place, SHOP, **{"budget": BUDGET, "clock": Clock(), **options}))
        return devices[-1]

    yield open_device
    for device in devices:
        device.close()


def of(ratings: dict[int, float]) -> list[float]:
    codes = [SHOP.items.code(item) for item in sorted(ratings)]
    return SHOP.space.of(
        np.array(codes, dtype=np.int64), np.array([ratings[item] for item in sorted(ratings)])
    ).tolist()


@pytest.fixture
def drawn_from(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The features that signals were drawn from."""
    found: list[list[float]] = []
    kind = type(mechanism_of(SHOP.space, exact_eta(0.1)))
    release = kind.release

    def noted(self: Any, features: Any, *args: Any) -> Any:
        found.append(np.asarray(features).tolist())
        return release(self, features, *args)

    monkeypatch.setattr(kind, "release", noted)
    return found


def test_a_signal_is_not_drawn_from_what_was_rated_before_another_process_revoked(
    opened: Opened, drawn_from: list[list[float]]
) -> None:
    mine, other = opened(), opened()
    other.rate(RATINGS)
    mine.consent()
    mine.revoke()
    other.ask()
    assert drawn_from == [of({})]
    assert len(other._state.profile) == 0


def test_a_choice_after_a_new_consent_is_not_made_with_it_either(opened: Opened) -> None:
    seen = Seen()
    mine, other = opened(), opened(private_scorer=seen)
    other.rate(RATINGS)
    mine.consent()
    other.choose(offered(1))
    mine.revoke()
    other.choose(offered(2))  # publicly
    mine.consent()
    other.choose(offered(3))
    assert seen.features == [of(RATINGS), of({})]


def test_what_is_rated_after_the_revocation_stays(opened: Opened) -> None:
    seen = Seen()
    mine, other = opened(), opened(private_scorer=seen)
    other.rate(RATINGS)
    mine.revoke()
    other.rate(LATER)
    mine.consent()
    other.choose(offered(1))
    assert seen.features == [of(LATER)]


def test_what_the_revoking_process_rates_afterwards_stays(opened: Opened) -> None:
    seen = Seen()
    device = opened(private_scorer=seen)
    device.rate(RATINGS)
    device.revoke()
    device.rate(LATER)
    device.consent()
    device.choose(offered(1))
    assert seen.features == [of(LATER)]


def test_a_revocation_that_is_said_again_reaches_what_was_rated_in_between(opened: Opened, place: Path) -> None:
    mine, other = opened(), opened()
    day = mine.revoke().day
    other.rate(RATINGS)
    assert mine.revoke().day == day
    assert other.readings().one_rating.removed is None  # no rating is left
    assert check(place).sound


def test_a_revocation_between_the_features_and_the_draw_is_obeyed(
    opened: Opened, drawn_from: list[list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = opened(), opened()
    other.rate(RATINGS)
    charge = other._state.ledger.charge

    def revoked_meanwhile(*args: Any) -> Any:
        mine.revoke()
        other.rate(LATER)  # as another thread may: its look must not hide the revocation from this one
        return charge(*args)

    monkeypatch.setattr(other._state.ledger, "charge", revoked_meanwhile)
    other.ask()
    assert drawn_from == [of(LATER)]


def test_a_device_that_is_opened_after_a_revocation_keeps_what_it_rates(opened: Opened) -> None:
    opened().revoke()
    later = opened()
    later.rate(RATINGS)
    assert later.readings().one_rating.removed is not None
    assert len(later._state.profile) == len(RATINGS)


def test_clicks_from_before_are_forgotten_by_every_process(opened: Opened) -> None:
    clock = Clock()
    mine, other = opened(clock=clock), opened(clock=clock, noise=Truth())
    mine.consent()

    def shown(number: int) -> Choice:
        choice = other.choose(offered(number, Policy(Rule.PUBLIC, 4)))
        assert choice is not None
        other.shown(choice)
        return choice

    first, second = shown(1), shown(2)
    other.note_click(first)
    mine.revoke()
    mine.consent()
    other.note_click(second)
    clock.at = (EXPIRES + 1) * 1_000_000
    assert other.clicks_due() == [message_of(Engagement, token(1), 0, 1.0), message_of(Engagement, token(2), 1, 1.0)]


def test_where_the_revocations_cannot_be_read_nothing_private_is_chosen_by(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen()
    device = opened(private_scorer=seen)
    device.rate(RATINGS)
    device.consent()
    monkeypatch.setattr(DisplayLedger, "last_revocation", lambda _: 1 // 0)
    device.choose(offered(1))
    assert seen.features == []
    with pytest.raises(ZeroDivisionError):
        device.ask()


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize("kind", list(KINDS))
def test_two_clients_of_one_file(kind: str, tmp_path: Path) -> None:
    server, seen = TinyServer(tmp_path / "server.db"), Seen()
    with (
        client_of(kind, tmp_path / "me.db", server) as mine,
        client_of(kind, tmp_path / "me.db", server, private_scorer=seen) as other,
    ):
        other.rate({film(3): 5, film(5): 1})
        mine.consent()
        other.choose()
        mine.revoke()
        mine.consent()
        other.choose()
        assert other.readings().one_rating.removed is None  # no rating is left
    server.shop.close()
    rated, wiped = seen.features
    assert any(rated)
    assert not any(wiped)
