"""Readings: bounds against what ratings really move, the table of the specification, and clusters by brute force."""

from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device, eta_for, slot_of
from tacit.device.multi_selection import CLUSTER, one_rating
from tacit.errors import InvalidParameter
from tacit.guarantees import metric, within
from tacit.ledger import Budget
from tacit.mechanisms import VectorLaplace
from tacit.models.features import GenreProfile
from tacit.models.items import Items
from tests.unit.device.small_world import FILMS, SHOP, Clock, Shop, flags, opened

UNIT = metric(1.0)  # without noise figures: epsilon is the distance itself


@pytest.fixture
def device(tmp_path: Path):
    with opened(tmp_path / "me.db") as opened_device:
        yield opened_device


SOME = (2, 3, 5, 21, 32, 50)  # six of the films: each may be liked, disliked or left out


@cache
def features(ratings: frozenset[tuple[int, float]]) -> np.ndarray:
    """By counting one genre after the other."""
    counts = np.zeros((2, 4))
    for film, value in ratings:
        for genre in FILMS[film][1]:
            counts[0 if value >= 4 else 1, genre] += 1
    return np.concatenate([block / max(1.0, block.sum()) for block in counts])


def moves(ratings: dict[int, float]) -> dict[str, float]:
    """How far one rating really moves the features: the worst of all that could be added, removed or moved."""
    here = features(frozenset(ratings.items()))

    def distance(other: dict[int, float]) -> float:
        return float(np.abs(features(frozenset(other.items())) - here).sum())

    others = [film for film in SOME if film not in ratings]
    rest = {film: {other: value for other, value in ratings.items() if other != film} for film in ratings}
    return {
        "added": max((distance({**ratings, film: value}) for film in others for value in (5.0, 1.0)), default=0.0),
        "removed": max((distance(rest[film]) for film in ratings), default=0.0),
        "moved": max(
            (distance({**ratings, film: 1.0 if ratings[film] >= 4 else 5.0}) for film in ratings), default=0.0
        ),
    }


def test_bounds_hold_for_every_small_profile() -> None:
    space = SHOP.space
    assert isinstance(space, GenreProfile)
    tight = dict.fromkeys(("added", "removed", "moved"), 0)
    for choice in product((None, 5.0, 1.0), repeat=len(SOME)):
        ratings = {film: value for film, value in zip(SOME, choice, strict=True) if value is not None}
        codes = np.array([list(FILMS).index(film) for film in ratings], dtype=np.int64)
        reading = one_rating(UNIT, space, codes, np.array(list(ratings.values())))
        for how, moved in moves(ratings).items():
            bound = getattr(reading, how)
            if bound is None:
                assert not ratings
                continue
            assert moved <= bound.epsilon
            tight[how] += moved > bound.epsilon - 1e-9
    assert min(tight.values()) > 50, tight  # and it is attained: a bound that nothing can miss would say nothing


def test_films_with_fewer_genres_have_smaller_bounds() -> None:
    space = SHOP.space
    assert isinstance(space, GenreProfile)
    codes, values = np.array([0, 7]), np.array([5.0, 5.0])  # Jumanji (1 genre) and Everything (3)
    every, one = one_rating(UNIT, space, codes, values), one_rating(UNIT, space, codes, values, genres=1)
    assert (every.genres, one.genres) == (3, 1)
    assert every.removed is not None
    assert one.removed is not None
    assert every.removed.epsilon == pytest.approx(2 * 3 / 4)  # N without Everything is 1
    assert one.removed.epsilon == pytest.approx(2 * 1 / 4)  # N without Jumanji is 3
    with pytest.raises(InvalidParameter):
        one_rating(UNIT, space, codes, values, genres=0)


def test_the_worked_example_of_the_specification(tmp_path: Path) -> None:
    """g = 3, N = 200, eta = 0.1: 0.30."""
    table = np.zeros((101, 19), dtype=bool)
    table[:100, [0, 1]] = True  # a hundred films with two genres: N = 200
    table[100, [2, 3, 4]] = True
    shop = Shop(Items(np.arange(101)), GenreProfile(table))
    with Device(tmp_path / "me.db", shop, budget=Budget(10, per="month")) as device:
        device.rate(dict.fromkeys(range(100), 5) | {100: 1})
        rating = device.readings(0.1).one_rating
        assert rating is not None
        assert rating.moved is not None
        # disliked holds 3 counts: adding three more there may move by 6/6; moving the film empties it (1) and adds 6/203
        assert rating.added.epsilon == pytest.approx(10.0, abs=0.01)
        assert rating.moved.epsilon == pytest.approx(10 * (1 + 6 / 203), abs=0.01)
        device.forget(100)
        rating = device.readings(0.1).one_rating
        assert rating is not None
        assert rating.added.epsilon == pytest.approx(10.0, abs=0.01)  # into the empty block: by 1
    guarantee = VectorLaplace(38, Fraction(1, 10)).guarantee
    liked = one_rating(guarantee, shop.space, np.arange(101), np.full(101, 5.0))  # type: ignore[arg-type]
    assert liked.removed is not None
    assert liked.removed.epsilon == pytest.approx(0.2956, abs=0.001)  # 2 * 3 / 203 / 0.1, and the grid


@pytest.mark.parametrize(
    ("eta", "expected"),
    [("0.05", (2, 4, 10, 20, 80)), ("0.1", (1, 2, 5, 10, 40)), ("0.2", (0.5, 1, 2.5, 5, 20))],
)
def test_the_table_of_the_specification(eta: str, expected: tuple[float, ...], device: Device) -> None:
    readings = device.readings(eta)
    for radius, epsilon in zip((0.1, 0.2, 0.5, 1), expected, strict=False):
        assert within(readings.signal, radius).epsilon == pytest.approx(epsilon, abs=1e-3)
    assert readings.anywhere.epsilon == pytest.approx(expected[-1], abs=1e-3)
    assert readings.anywhere.epsilon >= expected[-1]


def test_readings_for_a_profile_without_ratings(device: Device) -> None:
    rating = device.readings(0.1).one_rating
    assert rating is not None
    assert rating.added.epsilon == pytest.approx(10.0, abs=1e-3)  # the first rating moves an empty block by 1
    assert (rating.removed, rating.moved) == (None, None)


def test_neighbourhoods_are_read_at_the_diameters_of_the_population(device: Device) -> None:
    rng = np.random.default_rng(2)
    blocks = rng.dirichlet(np.ones(4), size=(300, 2)).reshape(300, 8)
    found = device.readings(0.1, blocks, rng=rng).neighbourhood
    assert [one.quantile for one in found] == [0.25, 0.5, 0.75]
    diameters = sorted(brute_force(blocks, CLUSTER))
    for one, place in zip(found, (75, 150, 225), strict=True):
        assert one.radius == pytest.approx(diameters[place - 1], abs=1e-12)  # that of the last cluster of the share
        assert one.guarantee.epsilon == pytest.approx(10 * one.radius, abs=1e-3)
        assert one.guarantee.epsilon >= 10 * one.radius


def brute_force(people: np.ndarray, size: int) -> list[float]:
    """One person after the other, one pair after the other."""
    diameters = []
    for person in people:
        nearest = sorted(range(len(people)), key=lambda other: float(np.abs(people[other] - person).sum()))[:size]
        diameters.append(max(float(np.abs(people[a] - people[b]).sum()) for a in nearest for b in nearest))
    return diameters


def test_at_least_the_stated_share_of_clusters_lies_within(device: Device) -> None:
    people = np.random.default_rng(4).dirichlet(np.ones(4), size=(11, 2)).reshape(11, 8)
    diameters = np.array(brute_force(people, CLUSTER))
    for one in device.readings(0.1, people).neighbourhood:
        assert (diameters <= one.radius + 1e-12).mean() >= one.quantile


@pytest.mark.parametrize("ratings", [{}, {0: 5}, {0: 5, 1: 1}], ids=str)
def test_films_of_no_genre_move_nothing(ratings: dict[int, float], tmp_path: Path) -> None:
    bare = Shop(Items(np.arange(2)), GenreProfile(np.zeros((2, 3), dtype=bool)))
    some = Shop(Items(np.arange(3)), GenreProfile(np.array([[0, 0], [0, 0], [1, 1]])))
    for name, shop, added in (("bare.db", bare, 0.0), ("some.db", some, 10.0)):
        with Device(tmp_path / name, shop, budget=Budget(10)) as device:
            device.rate(ratings)
            reading = device.readings(0.1).one_rating
            assert reading is not None
            assert reading.added.epsilon == pytest.approx(added, abs=1e-3)
            for found in (reading.removed, reading.moved):
                assert (found is None) == (not ratings)
                assert found is None or found.epsilon < 1e-3


def test_a_population_of_one_point_is_read_at_the_grid(device: Device) -> None:
    same = np.tile(np.array([1.0, 0, 0, 0, 1, 0, 0, 0]), (10, 1))
    readings = device.readings(0.1, same)
    assert [one.radius for one in readings.neighbourhood] == [0.0, 0.0, 0.0]
    assert 0.0 < readings.neighbourhood[0].guarantee.epsilon < 1e-3


def test_readings_print_in_plain_words(device: Device) -> None:
    device.rate({2: 5, 3: 4, 21: 1})
    text = str(device.readings(0.1, np.random.default_rng(1).dirichlet(np.ones(4), size=(50, 2)).reshape(50, 8)))
    assert text.startswith("one signal, eta = 1/10: epsilon = 10 per unit of L1 distance")
    for words in (
        "one rating added: epsilon = ",
        "one rating moved: ",
        "among 5 look-alikes within ",
        "(75% of clusters)",
    ):
        assert words in text
    assert text.endswith("anybody: epsilon = 40.1")  # rounded up, the grid included


def test_readings_charge_nothing(device: Device) -> None:
    device.readings(0.1)
    assert device.statement().charges == 0
    with pytest.raises(InvalidParameter):
        device.readings(0)


def test_features_without_counts_have_no_reading_for_one_rating(tmp_path: Path) -> None:
    class Plain:
        kind, dimension, low, high, diameter = "plain", 2, 0.0, 1.0, 2.0

        def of(self, items: object, values: object) -> np.ndarray:
            return np.zeros(2)

        def check(self, features: np.ndarray) -> np.ndarray:
            return features

        def tensors(self) -> dict[str, np.ndarray]:
            return {}

    shop = Shop(SHOP.items, Plain())  # type: ignore[arg-type]
    with Device(tmp_path / "me.db", shop, budget=Budget(10)) as device:
        readings = device.readings(0.5)
        assert readings.one_rating is None
        assert readings.anywhere.epsilon == pytest.approx(4.0, abs=1e-3)
        assert device.ask(0.5).dimension == 2


# --- how large eta must be


@pytest.mark.parametrize(
    ("epsilon", "asks", "eta"),
    [
        (10, 1, "0.1"),
        (20, 2, "0.1"),
        (5, 1, "0.2"),
        (40, 4, "0.1"),
        (10, 3, "0.30000001"),  # 3.333... is charged as 3.333333334, and three of these are too many
        (3, 1, "0.33333334"),
        (2.7, 1, "0.37037038"),
        (1e6, 1, "0.001"),  # the smallest that is allowed
        (0.1, 1, "10"),
    ],
)
def test_the_smallest_eta_with_which_so_many_signals_fit(epsilon: float, asks: int, eta: str) -> None:
    assert eta_for(Budget(epsilon, per="month"), asks) == Fraction(eta)


def test_a_budget_that_is_too_small_for_any_eta() -> None:
    for budget, asks in ((Budget(0.09), 1), (Budget(1), 11)):
        with pytest.raises(InvalidParameter, match="ask less often"):
            eta_for(budget, asks)
    with pytest.raises(InvalidParameter):
        eta_for(Budget(1), 0)


@pytest.mark.parametrize(("epsilon", "asks"), [(10, 3), (7, 4), (1.3, 7), (33.3, 31)])
def test_so_many_signals_fit_and_with_a_smaller_eta_they_would_not(epsilon: float, asks: int, tmp_path: Path) -> None:
    eta = eta_for(Budget(epsilon, per="month"), asks)
    for number, (scale, fitting) in enumerate(((eta, asks), (eta - Fraction(1, 10**8), asks - 1))):
        clock = Clock(2026, 12, 1)
        options = {"budget": Budget(epsilon, per="month"), "refresh": "day", "clock": clock}
        with opened(tmp_path / f"{number}.db", **options) as device:
            for day in range(1, 32):
                clock.set(2026, 12, day)
                device.ask(scale)
            assert device.statement().charges == fitting


# --- slots


@pytest.mark.parametrize(
    ("moment", "refresh", "parts", "name"),
    [
        ((2026, 11, 16, 12), "month", 1, "2026-11"),
        ((2026, 11, 30, 23, 59, 59), "month", 1, "2026-11"),
        ((2026, 12, 1), "month", 1, "2026-12"),
        ((2026, 11, 15, 23, 59), "month", 2, "2026-11.1of2"),
        ((2026, 11, 16), "month", 2, "2026-11.2of2"),
        ((2028, 2, 15, 11, 59), "month", 2, "2028-02.1of2"),  # February of a leap year: 29 days
        ((2028, 2, 15, 12), "month", 2, "2028-02.2of2"),
        ((2026, 11, 16), "day", 1, "2026-11-16"),
        ((2026, 11, 16, 7, 59), "day", 3, "2026-11-16.1of3"),
        ((2026, 11, 16, 16), "day", 3, "2026-11-16.3of3"),
        ((2026, 11, 16), "lifetime", 1, "ever"),
    ],
)
def test_names_of_slots(moment: tuple[int, ...], refresh: str, parts: int, name: str) -> None:
    assert slot_of(Clock(*moment)(), refresh, parts) == name


def test_flags_of_this_world_are_as_listed() -> None:
    assert flags().sum(axis=1).tolist() == [1, 2, 1, 2, 1, 1, 1, 3]
