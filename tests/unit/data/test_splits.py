import numpy as np
import pytest

from tacit.data import (
    MISSING_TIME,
    STARS,
    by_time,
    crossfold,
    from_arrays,
    hold_out_users,
    holdout,
    leave_out_per_user,
    synthetic,
)
from tacit.errors import InvalidData, InvalidParameter
from tests.unit.data.layouts import rows


@pytest.fixture(scope="module")
def world():
    return synthetic(users=80, items=60, ratings_per_user=12, rng=np.random.default_rng(4))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_holdout_takes_the_share_asked_for(world):
    split = holdout(world, 0.25, rng=rng())
    assert split.sizes == (len(world) - round(0.25 * len(world)), round(0.25 * len(world)))


def test_a_split_shares_users_items_and_codes(world):
    split = holdout(world, 0.5, rng=rng())
    for side in (split.train, split.test):
        assert side.catalogue is world.catalogue
        assert np.array_equal(side.user_ids, world.user_ids)
        assert side.scale == world.scale
    assert repr(split) == f"Split({len(split.train):,} for training, {len(split.test):,} for testing)"


def test_equal_generators_give_equal_splits_and_others_do_not(world):
    for cut in (holdout, hold_out_users, leave_out_per_user, lambda data, rng: crossfold(data, rng=rng)[0]):
        assert rows(cut(world, rng=rng(1)).test) == rows(cut(world, rng=rng(1)).test)
        assert rows(cut(world, rng=rng(1)).test) != rows(cut(world, rng=rng(2)).test)


def test_each_row_is_tested_in_exactly_one_fold(world):
    splits = crossfold(world, 4, rng=rng())
    tested = sorted(row for split in splits for row in rows(split.test))
    assert tested == sorted(rows(world))
    assert max(split.sizes.test for split in splits) - min(split.sizes.test for split in splits) <= 1


def test_so_many_rows_of_each_user_are_left_out_and_some_kept(world):
    split = leave_out_per_user(world, 5, keep=3, rng=rng())
    assert split.test.counts.tolist() == np.clip(world.counts - 3, 0, 5).tolist()


def test_every_row_of_a_user_may_be_the_one_left_out():
    ratings = from_arrays([1] * 4, [1, 2, 3, 4], [1, 2, 3, 4], scale=STARS)
    left_out = [leave_out_per_user(ratings, 1, rng=rng(seed)).test.values[0] for seed in range(60)]
    assert {1, 2, 3, 4} == set(left_out)


def test_users_are_held_out_whole(world):
    split = hold_out_users(world, 0.3, rng=rng())
    assert np.all((split.train.counts == 0) != (split.test.counts == 0))
    assert np.count_nonzero(split.test.counts) == 24


def test_the_latest_rows_are_for_testing(world):
    split = by_time(world, 0.2)
    assert split.train.times.max() < split.test.times.min()
    assert split.sizes.test == pytest.approx(0.2 * len(world), abs=2)


def test_rows_of_one_moment_are_not_torn_apart():
    ratings = from_arrays([1] * 5, [1, 2, 3, 4, 5], [1] * 5, [10, 20, 20, 20, 30], scale=STARS)
    assert by_time(ratings, 0.4).test.times.tolist() == [30]


def test_missing_times_are_not_guessed():
    ratings = from_arrays([1, 2], [1, 1], [1, 1], [10, MISSING_TIME], scale=STARS)
    with pytest.raises(InvalidData, match=r"some times .* are missing"):
        by_time(ratings)
    with pytest.raises(InvalidData, match="has no times"):
        by_time(from_arrays([1], [1], [1], scale=STARS))


@pytest.mark.parametrize("share", [0.0, 1.0, float("nan"), -1])
def test_a_share_outside_0_and_1_is_refused(world, share):
    with pytest.raises(InvalidParameter, match="share"):
        holdout(world, share, rng=rng())
    with pytest.raises(InvalidParameter, match="folds"):
        crossfold(world, 1, rng=rng())


@pytest.mark.parametrize("split", [holdout, crossfold, leave_out_per_user, hold_out_users])
@pytest.mark.parametrize("seed", [1, None, np.random])
def test_a_seed_in_place_of_a_generator_is_refused(world, split, seed):
    with pytest.raises(InvalidParameter, match="rng must be a numpy Generator"):
        split(world, rng=seed)
