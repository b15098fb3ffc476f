"""Genre profiles and folded tastes: their values, their domains, and what they refuse without showing it."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.data import GENRES
from tacit.data.catalogue import genre_flags
from tacit.errors import InvalidFeatures, InvalidModel, InvalidParameter
from tacit.models.features import FoldedTaste, GenreProfile, moved_by_one_rating

FILMS = ["Action|Comedy", "Action", "Drama", "Drama|War", "Comedy"]
SPACE = GenreProfile(genre_flags(FILMS, str))
ACTION, COMEDY, DRAMA, WAR = (GENRES.index(genre) for genre in ("Action", "Comedy", "Drama", "War"))


def taste(rng: np.random.Generator, items: int = 30, rank: int = 3) -> FoldedTaste:
    return FoldedTaste(rng.normal(size=(items, rank)) * 0.3, rng.normal(size=items) * 0.3, 3.5, np.full(1 + rank, 0.4))


def random_ratings(rng: np.random.Generator, counts: list[int], items: int) -> tuple[NDArray[np.int64], ...]:
    starts = np.concatenate([[0], np.cumsum(counts)])
    rated = [np.sort(rng.choice(items, count, replace=False)) for count in counts]
    return starts, np.concatenate(rated).astype(np.int64), rng.integers(1, 11, starts[-1]) / 2.0


class TestGenreProfile:
    def test_shares_of_liked_and_disliked_genres(self) -> None:
        features = SPACE.of(np.array([0, 1, 2]), np.array([5.0, 4.0, 3.0]))
        expected = np.zeros(38)
        expected[ACTION], expected[COMEDY], expected[19 + DRAMA] = 2 / 3, 1 / 3, 1.0
        np.testing.assert_allclose(features, expected, atol=1e-12)

    def test_a_rating_just_below_four_is_a_dislike(self) -> None:
        assert SPACE.of(np.array([1]), np.array([3.5]))[19 + ACTION] == 1.0
        assert SPACE.of(np.array([1]), np.array([4.0]))[ACTION] == 1.0

    def test_an_empty_block_stays_zero(self) -> None:
        liked_only = SPACE.of(np.array([3]), np.array([5.0]))
        assert liked_only[[DRAMA, WAR]].tolist() == [0.5, 0.5]
        assert not liked_only[19:].any()
        assert not SPACE.of(np.array([], dtype=np.int64), np.array([])).any()
        SPACE.check(liked_only)
        SPACE.check(np.zeros(38))

    def test_many_users_get_what_each_gets_alone(self) -> None:
        rng = np.random.default_rng(5)
        space = GenreProfile(rng.random((50, 19)) < 0.2)
        starts, items, values = random_ratings(rng, [12, 0, 50, 1, 7], 50)
        many = space.of_many(starts, items, values)
        for user, (first, last) in enumerate(pairwise(starts.tolist())):
            assert np.array_equal(many[user], space.of(items[first:last], values[first:last]))
            counts = np.zeros(38)
            for item, value in zip(items[first:last], values[first:last], strict=True):
                counts[(0 if value >= 4.0 else 19) + np.flatnonzero(space.flags[item])] += 1
            expected = np.concatenate([block / max(1.0, block.sum()) for block in (counts[:19], counts[19:])])
            np.testing.assert_allclose(many[user], expected, atol=1e-15)
            space.check(many[user])

    def test_one_rating_moves_the_features_by_the_bound_and_no_more(self) -> None:
        rng = np.random.default_rng(6)
        flags = rng.random((40, 19)) < 0.15
        flags[:, -1] |= ~flags.any(axis=1)
        space = GenreProfile(flags)
        for _ in range(50):
            items = rng.choice(39, 8, replace=False)
            values = rng.integers(1, 11, 8) / 2.0
            liked = rng.random() < 0.5
            before = space.of(items, values)
            after = space.of(np.append(items, 39), np.append(values, 5.0 if liked else 1.0))
            block = space.flags[items[(values >= 4.0) == liked]].sum()
            genres = int(flags[39].sum())
            assert np.abs(after - before).sum() <= moved_by_one_rating(block, genres) + 1e-12
        # attained where the new film shares no genre with the block: 2 g / (N + g) = 2 * 1 / (2 + 1)
        moved = SPACE.of(np.array([0, 2]), np.array([5.0, 5.0])) - SPACE.of(np.array([0]), np.array([5.0]))
        assert np.abs(moved).sum() == pytest.approx(moved_by_one_rating(2, 1)) == pytest.approx(2 / 3)
        assert moved_by_one_rating(0, 3) == 1.0

    def test_the_diameter_is_attained(self) -> None:
        ends = SPACE.of(np.array([1, 2]), np.array([5.0, 1.0])), SPACE.of(np.array([1, 2]), np.array([1.0, 5.0]))
        assert np.abs(ends[0] - ends[1]).sum() == SPACE.diameter == 4.0

    def test_flags_must_be_a_table(self) -> None:
        with pytest.raises(InvalidParameter):
            GenreProfile(np.zeros(19, dtype=np.bool_))

    def test_tensors_build_the_same_space(self) -> None:
        again = GenreProfile.from_tensors(GenreProfile(SPACE.flags, 3.5).tensors())
        assert np.array_equal(again.flags, SPACE.flags)
        assert again.liked_from == 3.5


def changed(place: int, value: float) -> NDArray[np.float64]:
    good = np.zeros(38)
    good[[0, 1, 20]] = 0.25, 0.75, 1.0
    good[place] = value
    return good


SECRET = 0.73519
BAD_PROFILES = {
    "not a number": changed(0, np.nan),
    "infinite": changed(0, np.inf),
    "too few": changed(0, 0.25)[:37],
    "too many": np.append(changed(0, 0.25), 0.0),
    "two rows": np.stack([changed(0, 0.25)] * 2),
    "a sum above 1": changed(3, SECRET),
    "a sum below 1": changed(1, SECRET),
    "a sum slightly off": changed(0, 0.25 + 2e-6),
    "negative": changed(0, 0.25) + np.eye(38)[4] * SECRET - np.eye(38)[5] * SECRET,
    "above 1": changed(0, 0.25) + np.eye(38)[20] * SECRET - np.eye(38)[21] * SECRET,
    "text": ["0.73519"] * 37 + ["x"],
}


@pytest.mark.parametrize("bad", BAD_PROFILES.values(), ids=BAD_PROFILES.keys())
def test_features_outside_the_domain_are_refused_and_not_shown(bad: object) -> None:
    with pytest.raises(InvalidFeatures) as refused:
        SPACE.check(bad)  # type: ignore[arg-type]
    assert "735" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_features_within_the_tolerance_pass_unchanged() -> None:
    good = changed(0, 0.25 + 5e-7)
    assert np.array_equal(SPACE.check(good), good)


class TestFoldedTaste:
    def test_it_minimises_the_penalised_squares(self) -> None:
        rng = np.random.default_rng(8)
        space = taste(rng)
        starts, items, values = random_ratings(rng, [9, 30, 0, 2], 30)
        many = space.unclipped(starts, items, values)
        for user, (first, last) in enumerate(pairwise(starts.tolist())):
            rated, stars = items[first:last], values[first:last]
            rows = np.column_stack([np.ones(rated.size), space.factors[rated]]).astype(float)
            ridge = np.diag(np.sqrt(np.sqrt(max(1, rated.size)) * space.penalties.astype(float)))
            stacked = np.concatenate([rows, ridge]), np.concatenate([stars - 3.5 - space.offsets[rated], np.zeros(4)])
            expected = np.linalg.lstsq(*stacked, rcond=None)[0][1:]
            np.testing.assert_allclose(many[user], expected, atol=1e-9)
            assert np.array_equal(space.of(rated, stars), np.clip(many[user], -1.0, 1.0))
        assert not many[2].any()  # who rated nothing has no taste
        assert (np.abs(many) > 1.0).any()  # so that the clipping above was put to the test
        assert np.abs(space.of_many(starts, items, values)).max() == 1.0

    def test_generosity_is_not_taken_for_taste(self) -> None:
        rng = np.random.default_rng(9)
        space = taste(rng)
        starts, items, values = random_ratings(rng, [30], 30)
        generous = space.unclipped(starts, items, values + 1.0) - space.unclipped(starts, items, values)
        without = np.abs(space.factors).max()
        assert np.abs(generous).max() < 0.05 * without

    def test_its_domain(self) -> None:
        space = taste(np.random.default_rng(1))
        assert (space.dimension, space.low, space.high, space.diameter) == (3, -1.0, 1.0, 6.0)
        assert space.check([1.0, -1.0, 0.5]).tolist() == [1.0, -1.0, 0.5]
        for bad in ([1.0, -1.0], [0.0, np.nan, 0.0], [0.0, 1.73519, 0.0], [0.0, 0.0, -1.73519], ["x", 0, 0]):
            with pytest.raises(InvalidFeatures) as refused:
                space.check(bad)
            assert "735" not in str(refused.value)

    def test_bad_parts_are_refused(self) -> None:
        good = taste(np.random.default_rng(1))
        for part, bad in (
            ("factors", good.factors[:, 0]), ("factors", good.factors * np.nan), ("offsets", good.offsets[1:]),
            ("penalties", good.penalties[1:]), ("penalties", -good.penalties), ("penalties", good.penalties * np.inf),
        ):  # fmt: skip
            with pytest.raises(InvalidModel):
                FoldedTaste(**(good.tensors() | {"mean": 3.5, part: bad}))  # type: ignore[arg-type]
