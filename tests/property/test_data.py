"""Laws of ratings and splits, for all small inputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data import (
    STARS,
    Ratings,
    Scale,
    TwoDomains,
    crossfold,
    from_arrays,
    hold_out_users,
    holdout,
    leave_out_per_user,
)
from tacit.errors import DuplicateRatings

IDS = st.one_of(
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30),
    st.lists(st.text("ab0é", min_size=1, max_size=3), min_size=1, max_size=30),
)


@st.composite
def columns(draw):
    users, items = draw(IDS), draw(IDS)
    n = min(len(users), len(items))
    stars = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    times = draw(st.one_of(st.none(), st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    return users[:n], items[:n], stars, times


def made(data, duplicates="latest") -> Ratings:
    return from_arrays(*data, scale=STARS, duplicates=duplicates)


def slow_latest(data) -> dict[tuple[object, object], int]:
    """The obvious version: walk the rows, keep the latest of each pair, the last of equal times."""
    users, items, stars, times = data
    kept: dict[tuple[object, object], tuple[int, int]] = {}
    for row, pair in enumerate(zip(users, items, strict=True)):
        time = 0 if times is None else times[row]
        if pair not in kept or time >= kept[pair][0]:
            kept[pair] = (time, stars[row])
    return {pair: star for pair, (_, star) in kept.items()}


def as_dict(ratings: Ratings) -> dict[tuple[object, object], float]:
    users, items = ratings.user_ids[ratings.users].tolist(), ratings.catalogue.ids[ratings.items].tolist()
    return dict(zip(zip(users, items, strict=True), ratings.values.tolist(), strict=True))


@given(columns())
def test_the_latest_rating_wins_as_in_the_slow_version(data):
    ratings = made(data)
    assert as_dict(ratings) == slow_latest(data)
    assert ratings.user_ids.tolist() == sorted(set(data[0]))
    assert ratings.catalogue.ids.tolist() == sorted(set(data[1]))


@given(columns())
def test_csr_equals_a_slow_dense_matrix(data):
    ratings = made(data)
    dense = np.zeros((ratings.n_users, ratings.n_items))
    for (user, item), star in slow_latest(data).items():
        dense[sorted(set(data[0])).index(user), sorted(set(data[1])).index(item)] = star
    assert np.array_equal(ratings.csr().toarray(), dense)


@given(columns())
def test_the_mean_equals_the_slow_one(data):
    users, items, stars, _ = data
    together: dict[tuple[object, object], list[int]] = {}
    for user, item, star in zip(users, items, stars, strict=True):
        together.setdefault((user, item), []).append(star)
    assert as_dict(made(data, "mean")) == pytest.approx({pair: np.mean(found) for pair, found in together.items()})


@given(columns())
def test_an_error_is_raised_exactly_when_a_pair_comes_twice(data):
    pairs = list(zip(data[0], data[1], strict=True))
    if len(set(pairs)) == len(pairs):
        assert len(made(data, "error")) == len(pairs)
    else:
        again = next(row for row in range(len(pairs)) if pairs[row] in pairs[:row])
        with pytest.raises(DuplicateRatings, match=f"row {again + 1} "):
            made(data, "error")


@given(columns(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(data, shuffler):
    users, items, stars, _ = data
    unique = {(user, item): star for user, item, star in zip(users, items, stars, strict=True)}
    listed = [(*pair, star) for pair, star in unique.items()]
    shuffled = list(listed)
    shuffler.shuffle(shuffled)
    first, second = (from_arrays(*zip(*rows, strict=True), scale=STARS) for rows in (listed, shuffled))
    assert as_dict(first) == as_dict(second)
    assert np.array_equal(first.items, second.items)


@given(columns())
def test_codes_round_trip(data):
    ratings = made(data)
    assert [ratings.user_code(ratings.user_id(code)) for code in range(ratings.n_users)] == list(range(ratings.n_users))
    catalogue = ratings.catalogue
    assert [catalogue.code(catalogue.id(code)) for code in range(len(catalogue))] == list(range(len(catalogue)))


@settings(deadline=None)
@given(columns(), st.integers(0, 2**32 - 1), st.floats(0.01, 0.99), st.integers(1, 4))
def test_splits_partition_the_ratings_and_lose_no_user(data, seed, share, n):
    ratings = made(data)
    rng = np.random.default_rng(seed)
    splits = [
        holdout(ratings, share, rng=rng),
        hold_out_users(ratings, share, rng=rng),
        leave_out_per_user(ratings, n, rng=rng),
        *(crossfold(ratings, 2, rng=rng) if len(ratings) >= 2 else []),
    ]
    for split in splits:
        train, test = as_dict(split.train), as_dict(split.test)
        assert not train.keys() & test.keys()
        assert train | test == as_dict(ratings)
        for side in (split.train, split.test):
            assert np.array_equal(side.user_ids, ratings.user_ids)
            assert side.catalogue is ratings.catalogue


@given(columns(), st.data())
def test_subset_compact_and_select_keep_the_right_rows(data, draws):
    ratings = made(data)
    mask = np.array(draws.draw(st.lists(st.booleans(), min_size=len(ratings), max_size=len(ratings))), dtype=np.bool_)
    kept = dict(pair for pair, keep in zip(as_dict(ratings).items(), mask, strict=True) if keep)
    part = ratings.subset(mask)
    assert as_dict(part) == as_dict(part.compact()) == kept
    assert part.compact().n_users == len({user for user, _ in kept})
    chosen = draws.draw(st.sets(st.integers(0, ratings.n_users - 1)))
    names = {ratings.user_id(code) for code in chosen}
    selected = ratings.select_users(np.array(sorted(chosen), dtype=np.int64))
    assert as_dict(selected) == {pair: star for pair, star in as_dict(ratings).items() if pair[0] in names}


@given(columns(), st.data())
def test_two_domains_by_item_hold_every_rating_once(data, draws):
    ratings = made(data)
    mask = np.array(
        draws.draw(st.lists(st.booleans(), min_size=ratings.n_items, max_size=ratings.n_items)), dtype=np.bool_
    )
    pair = TwoDomains.by_items(ratings, mask)
    again = TwoDomains.align(pair.source.compact(), pair.target.compact())
    for two in (pair, again):
        assert as_dict(two.source) | as_dict(two.target) == as_dict(ratings)
        assert len(two.source) + len(two.target) == len(ratings)
    assert again.shared.size == pair.shared.size


@given(st.integers(-100, 100), st.integers(1, 40), st.sampled_from([0.1, 0.25, 0.5, 1.0, 3.0]), st.floats(-300, 300))
def test_the_nearest_value_is_on_the_scale(low, steps, step, value):
    scale = Scale(low, low + steps * step, step)
    nearest = scale.nearest(np.array([value]))
    assert scale.first_outside(nearest) is None
    inside = min(max(value, scale.low), scale.high)
    assert abs(float(nearest[0]) - inside) <= step / 2 + 1e-3
