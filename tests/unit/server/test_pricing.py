"""Prices: the worked example, a plain loop beside the fast one, every digit of the largest bids, and what is refused."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.server import listings
from tacit.server.listings import PriceRule, Ranking, ranked, require_billable

BIDS = [2_000_000, 1_500_000, 4_000_000, 500_000]
PPM = [50_000, 80_000, 20_000, 100_000]


@pytest.fixture(autouse=True, params=[0, 64], ids=["by numpy", "one by one"])
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few listings are ranked one by one, more by numpy: all that is said here holds of both."""
    monkeypatch.setattr(listings, "_FEW", request.param)


def reference(bids: list[int], ppm: list[int], reserve: int) -> Ranking:
    """The rule as it is said, with Python's numbers."""
    eligible = [i for i in range(len(bids)) if bids[i] >= reserve]
    order = sorted(eligible, key=lambda i: (-bids[i] * ppm[i], i))
    scores = [bids[i] * ppm[i] for i in order]
    prices = []
    for rank, i in enumerate(order):
        following = scores[rank + 1] if rank + 1 < len(order) else 0
        prices.append(max(following, reserve * ppm[i]) // 10**6)
    return Ranking(tuple(order), tuple(scores), tuple(prices))


def test_the_worked_example() -> None:
    """Bids 2.00, 1.50, 4.00, 0.50 at .05, .08, .02, .10 and a reserve of 0.40: scores .10, .12, .08, .05."""
    ranking = ranked(BIDS, PPM, 400_000)
    assert ranking.order == (1, 0, 2, 3)
    assert [score // 10**6 for score in ranking.scores] == [120_000, 100_000, 80_000, 50_000]
    assert dict(zip(ranking.order, ranking.prices, strict=True)) == {0: 80_000, 1: 100_000, 2: 50_000, 3: 40_000}


def test_first_price_is_the_own_score_and_free_is_nothing() -> None:
    assert ranked(BIDS, PPM, 400_000, "first_price").prices == (120_000, 100_000, 80_000, 50_000)
    assert ranked(BIDS, PPM, 400_000, PriceRule.FREE).prices == (0, 0, 0, 0)
    assert ranked(BIDS, PPM, 400_000, PriceRule.FREE).order == (1, 0, 2, 3)


def test_the_reserve_is_per_click_and_counts_at_the_own_probability() -> None:
    # 0.50 a click at .02 is 0.01 an impression: above the next score of .004, below that of the first.
    assert ranked([3_000_000, 1_000_000, 500_000], [20_000, 20_000, 8_000], 500_000).prices == (20_000, 10_000, 4_000)


def test_whoever_bids_exactly_the_reserve_is_eligible_and_whoever_bids_less_is_not() -> None:
    assert ranked([400_000, 399_999], [10_000, 900_000], 400_000).order == (0,)
    assert ranked([400_000, 399_999], [10_000, 900_000], 400_000).prices == (4_000,)
    assert ranked([1, 2], [10_000, 900_000], 3) == Ranking((), (), ())


def test_of_equal_scores_the_first_listed_comes_first_and_pays_its_whole_score() -> None:
    ranking = ranked([1_000_000, 2_000_000, 1_000_000], [20_000, 10_000, 20_000])
    assert ranking.order == (0, 1, 2)
    assert ranking.prices == (20_000, 20_000, 0)


def test_prices_are_rounded_down_to_the_micro_unit() -> None:
    assert ranked([3, 1], [10**6, 999_999]).prices == (0, 0)
    assert ranked([3, 2], [10**6, 999_999]).prices == (1, 0)
    assert ranked([3, 2], [999_999, 999_999], 0, "first_price").prices == (2, 1)
    assert ranked([3, 1], [999_999, 999_999], 1).prices == (0, 0)


def test_products_beyond_64_bits_are_exact() -> None:
    bids, ppm = [10**15, 10**15, 10**15 - 1, 9_223_372_036_855], [999_999, 10**6, 10**6, 10**6]
    for reserve in (0, 1, 10**12 + 7):
        assert ranked(bids, ppm, reserve) == reference(bids, ppm, reserve)
    assert ranked([10**15, 10**15 - 1], [10**6, 10**6]).prices == (10**15 - 1, 0)
    # 2^63 itself is one too many for 64 bits: it would turn negative, and come last
    assert ranked([2**43, 2**43 - 1], [2**20 - 48_576, 10**6]).order == (0, 1)
    assert ranked([9_223_372_036_855, 5], [10**6, 10**6]).order == (0, 1)


def test_as_the_plain_loop_on_both_sides_of_64_bits() -> None:
    rng = np.random.default_rng(4)
    for most in (50, 10**6, 10**13, 10**15):
        for _ in range(30):
            size = int(rng.integers(1, 30))
            bids, ppm = rng.integers(0, most + 1, size), rng.integers(0, 10**6 + 1, size)
            reserve = int(rng.integers(0, most // 2 + 1))
            found = ranked(bids, ppm, reserve)
            assert found == reference(bids.tolist(), ppm.tolist(), reserve)
            assert all(type(one) is int for part in found for one in part)


def test_small_types_of_numbers_do_not_wrap_around() -> None:
    bids, ppm = np.array([200, 100], dtype=np.uint8), np.array([1000, 30_000], dtype=np.int16)
    assert ranked(bids, ppm) == reference([200, 100], [1000, 30_000], 0)


@pytest.mark.parametrize(
    ("bids", "ppm"),
    [
        ([-1], [5]),
        ([10**15 + 1], [5]),
        ([10**30], [5]),
        ([5], [-1]),
        ([5], [10**6 + 1]),
        ([5.0], [5]),
        ([True], [5]),
        ([5], [0.5]),
        ([float("nan")], [5]),
        ([5, 6], [5]),
        ([[5]], [[5]]),
        (["5"], [5]),
        ([None], [5]),
    ],
)
def test_wrong_numbers_are_refused(bids: list[object], ppm: list[object]) -> None:
    with pytest.raises(InvalidParameter):
        ranked(bids, ppm)  # type: ignore[arg-type]


@pytest.mark.parametrize("reserve", [-1, 10**15 + 1, 0.5, True])
def test_a_wrong_reserve_is_refused(reserve: object) -> None:
    with pytest.raises(InvalidParameter):
        ranked([5], [5], reserve)  # type: ignore[arg-type]


def test_nobody_is_billed_by_noisy_pclick() -> None:
    with pytest.raises(InvalidParameter, match="costs epsilon"):
        require_billable("noisy_pclick")
    with pytest.raises(InvalidParameter, match="nobody is billed"):
        ranked(BIDS, PPM, 0, PriceRule.NOISY_PCLICK)
    with pytest.raises(InvalidParameter):
        require_billable("third_price")
