"""Offers, settlements and batches against a dict, over any sequence of calls, clocks and reopenings."""

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import Conflict, LedgerUnavailable
from tacit.ledger import DisplayLedger, DisplayState, ImpressionLedger, ItemTotal, Offered, Settlement
from tacit.ledger.chain import SECOND
from tacit.ledger.verification import check
from tests.unit.ledger.impression_reference import faults

START = 1_800_000_000  # seconds
HOUR, DAY = 3_600, 86_400
ITEMS = ("apple", "pear", "fig")
OK, DUPLICATE, CONFLICT, UNKNOWN, EXPIRED = Settlement

# Few tokens and items, so that most calls repeat or contradict another one.
tokens = st.sampled_from([f"t{i}" for i in range(6)])
shown = st.lists(st.sampled_from(ITEMS), min_size=1, max_size=3).map(tuple)
offers = st.tuples(
    st.just("offer"),
    tokens,
    st.integers(1, 3).map(lambda size: ITEMS[:size]),
    st.integers(0, 9),  # its price
    st.integers(0, 4),  # days until it expires
    st.integers(1, 2),
)
settlements = st.tuples(st.just("settle"), st.lists(st.tuples(tokens, shown), min_size=1, max_size=4))
batches = st.tuples(
    st.just("batch"),
    st.sampled_from(["b", "c"]),
    st.sampled_from(["g", "h"]),
    st.lists(st.tuples(tokens, st.sampled_from(ITEMS)), max_size=4),
)
steps = st.one_of(
    offers, settlements, settlements, batches, st.tuples(st.just("pass"), st.integers(0, 2)), st.just(("forget",))
)


class Model:
    """What dicts would say."""

    def __init__(self) -> None:
        self.now = START
        self.offers: dict[str, tuple[tuple[tuple[str, int], ...], int, int]] = {}
        self.settled: dict[str, tuple[str, ...]] = {}
        self.batches: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.charges: list[tuple[str, int]] = []

    def offer(self, token: str, *content: object) -> bool | None:
        """None: it could not be settled any more, and must not be sent."""
        if token not in self.offers and self.now > content[1] + DAY:  # type: ignore[operator]
            return None
        return self.offers.setdefault(token, content) == content  # type: ignore[arg-type]

    def settle(self, token: str, items: tuple[str, ...]) -> Settlement:
        if token in self.settled:
            return DUPLICATE if self.settled[token] == items else CONFLICT
        if token not in self.offers:
            return UNKNOWN
        prices, expires, slots = self.offers[token]
        if self.now > expires + DAY:
            return EXPIRED
        if len(items) != slots or len(set(items)) < slots or not set(items) <= set(dict(prices)):
            return CONFLICT
        self.settled[token] = items
        self.charges += [(item, dict(prices)[item]) for item in items]
        return OK

    def batch(self, batch: str, group: str, reports: list[tuple[str, str]], prices: dict[str, int]) -> Settlement:
        if (batch, group) in self.batches:
            return DUPLICATE if self.batches[batch, group] == sorted(reports) else CONFLICT
        used = [token for (name, _), all_ in self.batches.items() if name == batch for token, _ in all_]
        names = used + [token for token, _ in reports]
        if len(set(names)) < len(names) or not {item for _, item in reports} <= set(prices):
            return CONFLICT
        self.batches[batch, group] = sorted(reports)
        self.charges += [(item, prices[item]) for _, item in reports]
        return OK

    def forget(self) -> int:
        late = [token for token, (_, expires, _) in self.offers.items() if self.now > expires + DAY]
        for token in late:
            del self.offers[token]
        return len(late)

    def totals(self) -> list[ItemTotal]:
        counts, sums = Counter[str](), Counter[str]()
        for item, micros in self.charges:
            counts[item] += 1
            sums[item] += micros
        return [ItemTotal(item, counts[item], sums[item]) for item in sorted(counts)]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([1, 2, 5]), st.lists(steps, max_size=25))
def test_offers_and_settlements_say_what_dicts_would_say(lanes: int, made: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder) / "ledger.db", Model()

        def clock() -> int:
            return model.now * SECOND

        ledger = ImpressionLedger.create(path, lanes=lanes, clock=clock)
        for kind, *rest in made:
            if kind == "offer":
                token, items, price, days, slots = rest
                content = (
                    tuple((item, price + len(item)) for item in items),
                    START + days * DAY,
                    min(slots, len(items)),
                )
                kept: bool | None
                try:
                    ledger.offer(Offered(token, content[0], "", content[1], content[2]))
                    kept = True
                except Conflict:
                    kept = False
                except LedgerUnavailable:
                    kept = None
                assert kept is model.offer(token, *content)
            elif kind == "settle":
                assert ledger.settle_many(rest[0]) == [model.settle(*report) for report in rest[0]]
            elif kind == "batch":
                prices = {item: len(item) for item in ITEMS[:2]}  # figs have no price
                assert ledger.settle_batch(*rest, prices) is model.batch(*rest, prices)
            elif kind == "pass":
                model.now += rest[0] * DAY + HOUR
                ledger.close()
                ledger = ImpressionLedger.open(path, clock=clock)
            else:
                assert ledger.forget() == model.forget()
            assert list(ledger.items()) == model.totals()  # exact after every call
        assert ledger.balanced()
        ledger.close()
        assert faults(path) == []
        assert check(path).sound


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["choose", "shown", "reported", "forget", "reopen"]), tokens, st.sampled_from(ITEMS)),
        max_size=30,
    )
)
def test_displays_keep_their_first_choice_and_only_go_on(made: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "device.db"
        ledger = DisplayLedger.create(path, clock=lambda: START * SECOND)
        kept: dict[str, str] = {}
        state: dict[str, DisplayState] = {}
        for kind, token, item in made:
            if kind == "choose":
                kept.setdefault(token, item)
                state.setdefault(token, DisplayState.CHOSEN)
                found = ledger.choose("shop", token, (item,), START)
                assert (found.items, found.state) == ((kept[token],), state[token])
            elif kind in ("shown", "reported"):
                wanted = DisplayState[kind.upper()]
                mark = ledger.mark_shown if kind == "shown" else ledger.mark_reported
                if token in state and state[token] >= wanted - 1:
                    state[token] = max(state[token], wanted)
                    assert mark("shop", token).state is state[token]
                else:
                    try:
                        mark("shop", token)
                        raise AssertionError("a state was left out")
                    except (ValueError, LookupError):
                        pass
            elif kind == "forget":
                assert ledger.forget() == 0
            else:
                ledger.close()
                ledger = DisplayLedger.open(path, clock=lambda: START * SECOND)
            waiting = [display.token for display in ledger.pending("shop")]
            assert waiting == sorted(token for token, reached in state.items() if reached is DisplayState.SHOWN)
        ledger.close()
