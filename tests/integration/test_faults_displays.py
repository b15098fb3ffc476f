"""A device that crashes at every step, and once more while it recovers. In the right order whatever is billed was shown, and a
token has one draw; in two wrong orders that fails, so that the test would notice.
"""

from collections.abc import Callable, Iterator
from itertools import count, product
from pathlib import Path

import pytest

from tacit.guarantees import ONE_PROFILE, pure
from tacit.ledger import (
    Budget,
    Display,
    DisplayLedger,
    DisplayState,
    ImpressionLedger,
    Offered,
    PrivacyLedger,
    Settlement,
)
from tacit.ledger.verification import check

ITEMS = ("apple", "pear", "fig", "plum")
EXPIRES = 4_000_000_000
STEPS = 7  # before the debit, and after each of: debit, choice, display, mark, report, mark
COST = pure(1.0, ONE_PROFILE)


class Crash(BaseException):
    """The process is gone."""


class World:
    """What really happened, which no crash undoes: what was on the screen, and what the server has counted."""

    def __init__(self, folder: Path) -> None:
        self.shop_path, self.device_path = folder / "shop.db", folder / "device.db"
        self.shop = ImpressionLedger.create(self.shop_path)
        with PrivacyLedger.create(self.device_path) as budget:
            budget.enrol("me", Budget(1_000), protects=ONE_PROFILE)
        self.shown: dict[str, set[str]] = {}
        self.draws = count()

    def show(self, token: str, item: str) -> None:
        self.shown.setdefault(token, set()).add(item)

    def counted(self, token: str) -> str | None:
        """The item that was billed for a token. A bit is taken for what was counted: that is how one asks without counting."""
        if self.shop.engage(token, 1) is Settlement.UNKNOWN:
            return None
        for item in ITEMS:
            if self.shop.settle(token, (item,)) is Settlement.DUPLICATE:
                return item
        return None


Device = Callable[[World, "DisplayLedger", PrivacyLedger, str, Iterator[None]], None]


def report_pending(world: World, displays: DisplayLedger, steps: Iterator[None], waiting: list[Display]) -> None:
    for display in waiting:
        assert world.shop.settle(display.token, display.items) in (Settlement.OK, Settlement.DUPLICATE)
        next(steps)
        displays.mark_shown("shop", display.token)  # where it is, nothing happens
        displays.mark_reported("shop", display.token)
        next(steps)


def right(world: World, displays: DisplayLedger, budget: PrivacyLedger, token: str, steps: Iterator[None]) -> None:
    next(steps)
    kept = displays.find("shop", token)
    if kept is None:
        budget.charge("me", token, COST)
        next(steps)
        drawn = ITEMS[next(world.draws) % 4]  # another one at every draw
        kept = displays.choose("shop", token, (drawn,), EXPIRES)
        next(steps)
    if kept.state is DisplayState.CHOSEN:
        world.show(token, kept.items[0])  # after a crash: the SAME item
        next(steps)
        displays.mark_shown("shop", token)
        next(steps)
    report_pending(world, displays, steps, displays.pending("shop"))


def shows_before_it_writes(
    world: World, displays: DisplayLedger, budget: PrivacyLedger, token: str, steps: Iterator[None]
) -> None:
    next(steps)
    if displays.find("shop", token) is None:
        budget.charge("me", token, COST)
        next(steps)
        drawn = ITEMS[next(world.draws) % 4]
        world.show(token, drawn)
        next(steps)
        displays.choose("shop", token, (drawn,), EXPIRES)
        next(steps)
    displays.mark_shown("shop", token)
    next(steps)
    report_pending(world, displays, steps, displays.pending("shop"))


def reports_what_is_not_marked(
    world: World, displays: DisplayLedger, budget: PrivacyLedger, token: str, steps: Iterator[None]
) -> None:
    next(steps)
    kept = displays.find("shop", token)
    if kept is not None:  # something is left of before the crash: it is reported, shown or not
        report_pending(world, displays, steps, [kept])
        return
    budget.charge("me", token, COST)
    next(steps)
    kept = displays.choose("shop", token, (ITEMS[next(world.draws) % 4],), EXPIRES)
    next(steps)
    world.show(token, kept.items[0])
    next(steps)
    report_pending(world, displays, steps, [kept])


def live(world: World, device: Device, token: str, crashes: tuple[int | None, ...]) -> None:
    """The device starts, crashes after so many steps, starts again, ...; at last it runs to its end."""
    world.shop.offer(Offered(token, tuple((item, 7) for item in ITEMS), "", EXPIRES))
    for crash in crashes:
        with PrivacyLedger.open(world.device_path) as budget, DisplayLedger.open(world.device_path) as displays:
            try:
                device(world, displays, budget, token, crashing(crash))
            except Crash:
                continue


def crashing(after: int | None) -> Iterator[None]:
    for step in count():
        if step == after:
            raise Crash
        yield


def outcome(world: World, tokens: list[str]) -> tuple[int, int, int]:
    """How many charges were made without a display, displays of an item that were never counted, tokens drawn twice."""
    billed = {token: item for token in tokens if (item := world.counted(token)) is not None}
    without_display = sum(item not in world.shown.get(token, set()) for token, item in billed.items())
    uncounted = sum(item != billed.get(token) for token, items in world.shown.items() for item in items)
    return without_display, uncounted, sum(len(items) > 1 for items in world.shown.values())


def all_crashes(world: World, device: Device, last: tuple[int | None, ...]) -> list[str]:
    tokens = []
    for first, second in product(range(STEPS), repeat=2):
        tokens.append(f"t-{first}-{second}")
        live(world, device, tokens[-1], (first, second, *last))
    return tokens


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    assert world.shop.balanced()
    world.shop.close()
    assert check(world.shop_path).sound
    assert check(world.device_path).sound


def test_in_the_right_order_billed_is_shown_and_shown_is_counted_with_one_draw(world: World) -> None:
    tokens = all_crashes(world, right, (None,))
    assert set(world.shown) == set(tokens)
    assert outcome(world, tokens) == (0, 0, 0)
    assert sum(total.impressions for total in world.shop.items()) == len(tokens)
    with PrivacyLedger.open(world.device_path) as budget:
        assert budget.statement("me").charges == len(tokens)  # one debit for each, however often it crashed


def test_a_device_that_never_comes_back_is_billed_for_nothing_that_it_did_not_show(world: World) -> None:
    tokens = all_crashes(world, right, ())
    without_display, _, drawn_twice = outcome(world, tokens)
    assert (without_display, drawn_twice) == (0, 0)
    assert len(world.shown) < len(tokens)  # some were never shown, and are not billed
    assert 0 < sum(total.impressions for total in world.shop.items()) <= len(world.shown)


def test_showing_before_writing_leaves_displays_that_nobody_counts(world: World) -> None:
    tokens = all_crashes(world, shows_before_it_writes, (None,))
    without_display, uncounted, drawn_twice = outcome(world, tokens)
    assert without_display == 0
    assert uncounted >= 5
    assert drawn_twice >= 5


def test_reporting_what_is_not_marked_charges_for_what_was_never_shown(world: World) -> None:
    tokens = all_crashes(world, reports_what_is_not_marked, (None,))
    without_display, _, _ = outcome(world, tokens)
    assert without_display >= 5
