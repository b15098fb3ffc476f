"""The impression ledger against a dict, over any sequence of calls, clocks and reopenings."""

import tempfile
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import Conflict
from tacit.ledger import book
from tacit.ledger.chain import DAY, lane_of
from tacit.ledger.impressions import ImpressionLedger, Report
from tacit.ledger.tally import MOST_MICROS, Counted, ItemTotal
from tests.unit.ledger.impression_reference import faults

START = date(2026, 11, 28)
FIRST = (START - date(1970, 1, 1)).days
# Few ids and items, so that most reports repeat or contradict another one.
reports = st.builds(
    Report,
    st.sampled_from([f"id-{i}" for i in range(12)]),
    st.sampled_from(["apple", "pear", "fig"]),
    st.sampled_from([0, 1, MOST_MICROS]),
)
calls = st.lists(
    st.tuples(st.integers(0, 6), st.booleans(), st.lists(reports, max_size=8)), max_size=8
)  # the day, reopened before?, what is reported


class Model:
    """What a dict would say."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.seen: dict[str, tuple[str, int, int]] = {}  # id: item, micros, day
        self.days = [0] * lanes

    def report(self, report: Report, today: int) -> tuple[int, bool] | type[Conflict]:
        """The day and whether it was counted now, or a conflict."""
        id, item, micros = report
        if id in self.seen:
            *same, day = self.seen[id]
            return (day, False) if same == [item, micros] else Conflict
        lane = lane_of(id, self.lanes)
        self.days[lane] = max(self.days[lane], today)
        self.seen[id] = (item, micros, self.days[lane])
        return self.days[lane], True

    def totals(self, first: int, last: int) -> list[ItemTotal]:
        counts, sums = Counter[str](), Counter[str]()
        for item, micros, day in self.seen.values():
            if first <= day <= last:
                counts[item] += 1
                sums[item] += micros
        return [ItemTotal(item, counts[item], sums[item]) for item in sorted(counts)]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 5]), st.sampled_from([1, 1_000]), calls, st.integers(0, 6), st.integers(0, 6))
def test_the_ledger_says_what_a_dict_would_say(
    lanes: int, many: int, made: list[tuple[int, bool, list[Report]]], one: int, other: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(book, "_MANY", many):
        path, model, today = Path(folder) / "ledger.db", Model(lanes), FIRST

        def clock() -> int:
            return today * DAY + DAY - 1

        ledger = ImpressionLedger.create(path, lanes=lanes, clock=clock)
        for shift, reopened, wished in made:
            today = FIRST + shift
            if reopened:
                head = ledger.head()
                ledger.close()
                ledger = ImpressionLedger.open(path, head=head, clock=clock)
            outcomes = ledger.report_many(wished)
            expected = [model.report(report, today) for report in wished]
            assert [
                (outcome.day, outcome.fresh) if isinstance(outcome, Counted) else type(outcome) for outcome in outcomes
            ] == expected
            everything = model.totals(0, FIRST + 6)
            assert list(ledger.items()) == everything  # exact after every call
            assert [ledger.item(total.item) for total in everything] == everything
        first, last = sorted((one, other))
        statement = ledger.statement(START + timedelta(days=first), START + timedelta(days=last))
        assert list(statement.items) == model.totals(FIRST + first, FIRST + last)
        assert ledger.balanced()
        ledger.close()
        assert faults(path) == []
