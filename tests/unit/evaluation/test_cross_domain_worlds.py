"""Worlds of two domains: films cut in two by genre, pairs of files, and tastes that are made up."""

from pathlib import Path

import numpy as np
import pytest

from tacit.data import GENRES, STARS, Catalogue, Ratings, TwoDomains, from_arrays, write
from tacit.errors import InvalidParameter, TacitError
from tacit.evaluation.cross_domain import worlds
from tacit.evaluation.cross_domain.splits import hidden
from tacit.evaluation.cross_domain.synthetic import Plan, synthetic


def films(genres: list[str]) -> Ratings:
    """Film i has the i-th genres; one user rates them all."""
    ids = np.arange(1, len(genres) + 1)
    flags = np.array([[genre in one.split("|") for genre in GENRES] for one in genres])
    values = np.full(ids.size, 3.0, dtype=np.float32)
    starts = np.array([0, ids.size], dtype=np.int32)
    catalogue = Catalogue(ids, None, flags, GENRES)
    return Ratings(starts, np.arange(ids.size, dtype=np.int32), values, None, np.array([1]), catalogue, STARS)


def test_genres_are_taken_in_turn_by_their_number_of_films() -> None:
    # Drama 4 films, Comedy 3, War 2, Horror 1: Drama and War to the source, Comedy and Horror to the target
    two = worlds.by_genre(films(["Drama", "Drama", "Drama|War", "Comedy", "Comedy", "Comedy|Horror", "War|Drama"]))
    assert two.source.catalogue.ids.tolist() == [1, 2, 3, 7]
    assert two.target.catalogue.ids.tolist() == [4, 5, 6]


def test_a_film_of_as_many_genres_on_both_sides_goes_by_its_id() -> None:
    two = worlds.by_genre(films(["Drama", "Drama", "Drama|Comedy", "Drama|Comedy", "Comedy"]))
    assert two.source.catalogue.ids.tolist() == [1, 2, 4]  # 3 is odd


def test_ratings_without_genres_cannot_be_cut_in_two() -> None:
    with pytest.raises(InvalidParameter, match="lists no genres"):
        worlds.by_genre(from_arrays([1, 1], [1, 2], [3, 4], scale=STARS))


def test_items_of_few_ratings_are_left_out_and_users_left_empty_go() -> None:
    source = from_arrays([1, 2, 3, 3], [10, 10, 10, 11], [1, 2, 3, 4], scale=STARS)
    target = from_arrays([1, 2, 4], [20, 20, 21], [5, 4, 3], scale=STARS)
    kept = worlds.rated(TwoDomains.align(source, target), 2)
    assert kept.source.catalogue.ids.tolist() == [10]
    assert kept.target.catalogue.ids.tolist() == [20]
    assert kept.source.user_ids.tolist() == [1, 2, 3]  # 4 rated nothing that is left
    assert kept.source.values.tolist() == [1, 2, 3]
    assert worlds.rated(TwoDomains.align(source, target), 1).source.n_items == 2


def table(path: Path, users: range, items: range) -> Path:
    lines = [f"u{user}\t{path.stem}{item}\t{1 + (user * item) % 5}" for user in users for item in items]
    path.write_text("\n".join(["user_id\titem_id\trating", *lines]) + "\n")
    return path


def test_two_files_are_a_world_and_so_is_a_folder_with_two(tmp_path: Path) -> None:
    first, second = table(tmp_path / "a.tsv", range(6), range(4)), table(tmp_path / "b.tsv", range(3, 9), range(5))
    for data in (f"{first},{second}", tmp_path):
        world = worlds.other(data)
        assert world.name == "a.tsv to b.tsv"
        assert (len(world.two.source), len(world.two.target), world.two.shared.size) == (24, 30, 3)
        assert not world.known
    turned = worlds.other(f"{second},{first}")
    assert (len(turned.two.source), len(turned.two.target)) == (30, 24)


def test_files_of_another_scale_are_read_as_they_were_imported(tmp_path: Path) -> None:
    from tacit.data import HALF_STARS

    for name, first in (("a", 1), ("b", 10)):
        write(from_arrays([1, 2], [first, first], [0.5, 4.5], scale=HALF_STARS), tmp_path / f"{name}.parquet")
    world = worlds.other(tmp_path)
    assert world.two.source.scale == HALF_STARS


@pytest.mark.parametrize("data", ["nowhere.tsv,neither.tsv", "one.tsv,two.tsv,three.tsv"])
def test_what_is_no_pair_is_refused_with_what_would_be(data: str) -> None:
    with pytest.raises(InvalidParameter, match=r"two files of ratings joined by a comma.*amazon-movies-books"):
        worlds.other(data)


def test_a_folder_of_one_file_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "a.tsv", range(3), range(3))
    with pytest.raises(InvalidParameter, match="two such files"):
        worlds.other(tmp_path)
    with pytest.raises(TacitError):
        worlds.other("nowhere")


PLAN = Plan(users=400, items=40, each=15.0)


def test_a_made_up_world_is_as_planned() -> None:
    two = synthetic(PLAN, rng=np.random.default_rng(1))
    assert two.shared.size == 120
    assert (two.source.counts > 0).sum() == (two.target.counts > 0).sum() == 260
    assert two.source.counts[two.source.counts > 0].mean() == pytest.approx(15.0, abs=1.0)
    assert two.source.counts[two.source.counts > 0].min() >= 5
    counts = np.sort(two.source.item_counts)[::-1]
    assert counts[:5].mean() > 2.0 * counts[-5:].mean()  # some items are rated far more often
    again = synthetic(PLAN, rng=np.random.default_rng(1))
    assert np.array_equal(two.target.values, again.target.values)
    assert two.source.times is not None


def residuals(two: TwoDomains) -> tuple[np.ndarray, np.ndarray]:
    """Of the users in both domains, ratings less what users and items rate on average; 0 where there is none."""
    tables = []
    for part in (two.source, two.target):
        dense = np.full((part.n_users, part.n_items), np.nan)
        dense[part.users, part.items] = part.values
        dense -= np.nanmean(dense, axis=0)
        dense = dense[two.shared]
        tables.append(np.nan_to_num(dense - np.nanmean(dense, axis=1, keepdims=True)))
    return tables[0], tables[1]


def test_tastes_mean_the_same_in_both_domains() -> None:
    source, target = residuals(
        synthetic(Plan(users=600, items=40, each=25.0, overlap=0.5), rng=np.random.default_rng(2))
    )
    shuffled = target[np.random.default_rng(3).permutation(len(target))]
    strong, none = (np.linalg.norm(source.T @ one, 2) for one in (target, shuffled))
    assert strong > 2.0 * none  # who is who matters


def test_taste_that_drifts_is_another_one_in_the_target() -> None:
    plan = Plan(users=600, items=40, each=25.0, overlap=0.5, drift=np.pi / 2)
    kept, turned = (
        np.linalg.norm(np.matmul(*[part.T if place == 0 else part for place, part in enumerate(residuals(two))]), 2)
        for two in (
            synthetic(Plan(users=600, items=40, each=25.0, overlap=0.5), rng=np.random.default_rng(2)),
            synthetic(plan, rng=np.random.default_rng(2)),
        )
    )
    assert turned < 0.9 * kept


def test_a_world_without_enough_straddlers_is_refused() -> None:
    two = synthetic(Plan(users=30, items=20, each=8.0, overlap=0.05), rng=np.random.default_rng(1))
    with pytest.raises(InvalidParameter, match="too few users rated 5 items in each domain"):
        hidden(two, "few", rng=np.random.default_rng(1))
