"""Which items a privately fitted store holds must not tell who rated what."""

from pathlib import Path

import numpy as np

from tacit.curator.fit import RATED_AT_ALL, PrivateTraining, fit, listed_items
from tacit.data import Ratings, from_arrays, load
from tacit.data.ratings import Scale
from tacit.data.store import read, write


def folder(path: Path, *, with_her: bool) -> Ratings:
    """Films 1 to 10 are listed; only the last user rates film 777, which is not."""
    path.mkdir()
    films = "".join(f"{film},Film {film} (2000),{'Comedy' if film % 2 else 'Drama'}\n" for film in range(1, 11))
    (path / "movies.csv").write_text("movieId,title,genres\n" + films)
    rows = [(user, film, 1 + (user * film) % 5) for user in range(1, 6) for film in range(1, 11)]
    rows += [(6, 3, 4), (6, 777, 5)] if with_her else []
    text = "".join(f"{user},{film},{stars}.0,100\n" for user, film, stars in rows)
    (path / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + text)
    loaded = load(path)
    assert isinstance(loaded, Ratings)
    return loaded


def items_of(ratings: Ratings) -> list[int]:
    nobody = np.zeros((0, 2 * len(ratings.catalogue.vocabulary)))
    store = fit(
        ratings,
        model="two-tower",
        private=PrivateTraining(0.5, 1e-6, steps=1),
        look_alikes=nobody,
        rng=np.random.default_rng(0),
    )
    assert RATED_AT_ALL not in store.guarantee.assumes
    return [int(item) for item in store.items.ids.tolist()]


def test_an_item_that_only_one_user_brought_is_not_in_a_private_store(tmp_path: Path) -> None:
    assert items_of(folder(tmp_path / "with", with_her=True)) == items_of(folder(tmp_path / "without", with_her=False))


def test_ratings_of_unlisted_items_go_and_all_others_stay(tmp_path: Path) -> None:
    ratings = folder(tmp_path / "with", with_her=True)
    assert ratings.n_items == 11
    kept, assumed = listed_items(ratings)
    assert assumed == ()
    assert kept.n_items == 10
    assert kept.n_users == 6
    assert len(kept) == len(ratings) - 1
    assert (kept.catalogue.ids[kept.items] == ratings.catalogue.ids[ratings.items[ratings.items < 10]]).all()


def test_ratings_without_any_list_say_what_is_assumed() -> None:
    ratings = from_arrays([1, 1, 2], [5, 7, 5], [3, 4, 5], scale=Scale(1, 5))
    assert listed_items(ratings) == (ratings, (RATED_AT_ALL,))
    assert listed_items(load("movielens-small"))[1] == (RATED_AT_ALL,)


def test_a_made_up_world_lists_its_items() -> None:
    assert listed_items(load("synthetic"))[1] == ()


def test_the_file_remembers_which_items_a_list_named(tmp_path: Path) -> None:
    for place, ratings in enumerate(
        [folder(tmp_path / "with", with_her=True), load("synthetic"), load("movielens-small")]
    ):
        again = read(write(ratings, tmp_path / f"{place}.parquet"))
        assert (again.catalogue.listed == ratings.catalogue.listed).all()
