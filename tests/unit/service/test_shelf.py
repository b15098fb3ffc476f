"""A new version is taken up while the old one answers; one that cannot be is told once, and the old one answers on."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.ledger import ImpressionLedger
from tacit.service import served as room
from tacit.service.served import Shelf
from tacit.service.settings import Settings
from tacit.service.telemetry import REGISTRY
from tacit.service.versions import current, mark_demonstration, publish, use
from tests.unit.server.small_store import small_store

NEW = small_store(20, look_alikes=5, seed=9)


@pytest.fixture
def shelf(home: Path, settings: Callable[..., Settings], tmp_path: Path) -> Iterator[Shelf]:
    with ImpressionLedger.create(tmp_path / "server.db") as ledger:
        yield Shelf(settings(home=tmp_path, models=home / "models", swap_seconds=0.002), ledger)


def name_of(shelf: Shelf) -> str:
    assert shelf.served is not None
    return shelf.served.version.name


def swaps(outcome: str) -> float:
    return REGISTRY.get_sample_value("tacit_model_swaps_total", {"outcome": outcome}) or 0.0


def after(seconds: float) -> Callable[[], bool]:
    """So after a time, in which it looks often."""
    end: list[float] = []

    def passed() -> bool:
        end.append(time.monotonic() + seconds)
        return time.monotonic() >= end[0]

    return passed


def watched(shelf: Shelf, *steps: tuple[Callable[[], object], Callable[[], bool]]) -> None:
    """Watches, and after each change waits until something is so."""

    async def watching() -> None:
        watch = asyncio.ensure_future(shelf.watch())
        for change, until in steps:
            change()
            end = time.monotonic() + 10
            while not until():
                assert time.monotonic() < end, "it did not come to pass"
                assert not watch.done(), "the watch has ended"
                await asyncio.sleep(0.002)
        await asyncio.sleep(0.03)  # and it looks several times more
        assert not watch.done()
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch

    asyncio.run(watching())


def test_a_new_version_is_taken_up_and_the_one_before_it_again(shelf: Shelf, home: Path) -> None:
    models = home / "models"
    shelf.load()
    first, before = name_of(shelf), swaps("taken")
    watched(
        shelf,
        (lambda: publish(models, NEW), lambda: name_of(shelf) != first and swaps("taken") > before),
        (lambda: use(models, first), lambda: name_of(shelf) == first and swaps("taken") > before + 1),
    )
    assert swaps("taken") == before + 2
    assert REGISTRY.get_sample_value("tacit_model_published_seconds") == current(models).published


def test_loading_what_is_served_already_changes_nothing(shelf: Shelf) -> None:
    assert shelf.served is None
    shelf.load()
    served = shelf.served
    shelf.load()
    assert shelf.served is served


def test_what_is_wrong_at_the_start_is_raised(shelf: Shelf, home: Path) -> None:
    (current(home / "models").folder / "store.tacit").write_bytes(b"")
    with pytest.raises(TacitError):
        shelf.load()
    assert shelf.served is None


def test_a_process_that_begins_while_what_is_published_is_damaged_serves_what_the_others_do(
    shelf: Shelf, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A worker that is replaced: were it to end instead, the service would go with it."""
    models = home / "models"
    first = current(models).name
    publish(models, small_store(20, look_alikes=5, seed=8))  # newer, and not served: an operator went back
    use(models, first)
    shelf.begin()
    (publish(models, NEW).folder / "store.tacit").write_bytes(b"damaged")
    another = Shelf(shelf._settings, shelf._ledger)
    with caplog.at_level(logging.ERROR, "tacit.service"):
        another.begin()
    assert name_of(another) == first
    (record,) = caplog.records
    assert "the one served before keeps answering" in record.getMessage()
    (models / first / "store.tacit").write_bytes(b"damaged")
    with pytest.raises(TacitError):
        Shelf(shelf._settings, shelf._ledger).begin()


def test_a_process_that_begins_takes_up_nothing_that_nobody_chose(shelf: Shelf, home: Path) -> None:
    """The demonstration, for one, whose counts anybody may see: an operator's are not."""
    models = home / "models"
    mark_demonstration(current(models))
    (publish(models, NEW).folder / "store.tacit").write_bytes(b"damaged")
    with pytest.raises(TacitError):
        shelf.begin()
    assert shelf.served is None


def test_a_version_that_cannot_be_taken_up_is_told_once_and_the_old_one_answers_on(
    shelf: Shelf, home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = home / "models"
    shelf.load()
    first, before, tries = name_of(shelf), swaps("refused"), []
    load = Shelf.load

    def counting(self: Shelf) -> None:
        tries.append(1)
        load(self)

    monkeypatch.setattr(Shelf, "load", counting)

    def damaged() -> None:
        (publish(models, NEW).folder / "store.tacit").write_bytes(b"damaged")

    with caplog.at_level(logging.ERROR, "tacit.service"):
        watched(
            shelf,
            (damaged, lambda: swaps("refused") > before),
            (lambda: None, after(0.1)),
            (lambda: use(models, first), after(0.05)),
            (lambda: publish(models, small_store(20, look_alikes=5, seed=8)), lambda: name_of(shelf) != first),
        )
    assert swaps("refused") == before + 1
    assert len(tries) == 2  # it is not loaded again and again
    (record,) = caplog.records
    assert "the old one keeps answering" in record.getMessage()
    assert set(record.about) == {"error", "places"}  # type: ignore[attr-defined]


def test_whatever_the_error_is_the_watch_goes_on(
    shelf: Shelf, home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf.load()
    first, before = name_of(shelf), swaps("refused")
    real, broken = room.current, {"so": True}

    def failing(models: Path) -> object:
        if broken["so"]:
            raise ZeroDivisionError("4.5")
        return real(models)

    monkeypatch.setattr(room, "current", failing)
    watched(
        shelf,
        (lambda: None, lambda: swaps("refused") == before + 1),
        (lambda: None, after(0.05)),
        (lambda: broken.update(so=False), after(0.05)),
        (lambda: publish(home / "models", NEW), lambda: name_of(shelf) != first),
    )
    assert swaps("refused") == before + 1
    assert "4.5" not in caplog.text


def test_a_version_whose_reason_to_be_refused_has_passed_is_tried_again(
    shelf: Shelf, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that was away for a moment, or a file that was put back."""
    monkeypatch.setattr(room, "_RETRY", 0.01)
    shelf.load()
    first, before = name_of(shelf), swaps("refused")
    kept: list[bytes] = []

    def damaged() -> None:
        file = publish(home / "models", NEW).folder / "store.tacit"
        kept.append(file.read_bytes())
        file.write_bytes(b"damaged")

    def mended() -> None:
        (current(home / "models").folder / "store.tacit").write_bytes(kept[0])

    watched(
        shelf,
        (damaged, lambda: swaps("refused") > before),
        (mended, lambda: name_of(shelf) != first),
    )
