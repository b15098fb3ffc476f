import gzip

import numpy as np
import polars as pl
import pytest

from tacit.data import GENRES, HALF_STARS, MISSING_TIME, STARS, read_movielens
from tacit.errors import DuplicateRatings, InvalidData, InvalidParameter, MissingColumn, RatingOutsideScale
from tests.unit.data.layouts import CSV_RATINGS, genres_of, rows, write_1m, write_100k, write_latest


def test_the_latest_layout_is_read(tmp_path):
    ratings = read_movielens(write_latest(tmp_path / "ml-latest"))
    assert rows(ratings) == [(1, 10, 4.0, 100), (1, 30, 2.5, 110), (7, 10, 0.5, 90), (7, 20, 5.0, 95)]
    assert (ratings.scale, ratings.name) == (HALF_STARS, "ml-latest")
    assert "redistributed" in ratings.provenance.licence
    assert ratings.entities is None


def test_listed_films_are_in_the_catalogue_even_if_nobody_rated_them(tmp_path):
    catalogue = read_movielens(write_latest(tmp_path / "ml")).catalogue
    assert catalogue.ids.tolist() == [10, 20, 30, 40]
    assert catalogue.vocabulary == GENRES
    assert [genres_of(catalogue, code) for code in range(4)] == [
        ("Adventure", "Children", "Comedy"),
        ("Action",),
        ("None",),
        ("Drama",),
    ]
    assert catalogue.title(1) == "Matrix, The (1999)"


def test_a_rated_film_that_is_not_listed_has_no_genre(tmp_path):
    films = "movieId,title,genres\n10,Toy Story (1995),Comedy\n"
    catalogue = read_movielens(write_latest(tmp_path / "ml", films=films)).catalogue
    assert catalogue.titles == ("Toy Story (1995)", "20", "30")
    assert genres_of(catalogue, 2) == ("None",)


def test_films_may_be_absent(tmp_path):
    ratings = read_movielens(write_latest(tmp_path / "ml", films=None))
    assert ratings.catalogue.ids.tolist() == [10, 20, 30]
    assert ratings.catalogue.titles is None


def test_windows_line_ends_and_blank_lines_at_the_end_do_no_harm(tmp_path):
    ratings = read_movielens(write_latest(tmp_path / "ml", ratings=CSV_RATINGS.replace("\n", "\r\n") + "\r\n\n"))
    assert len(ratings) == 4


@pytest.mark.parametrize("suffix", ["zst", "gz"])
def test_compressed_files_are_read(tmp_path, suffix):
    folder = write_latest(tmp_path / "ml")
    plain = (folder / "ratings.csv").read_bytes()
    (folder / "ratings.csv").unlink()
    if suffix == "gz":
        (folder / "ratings.csv.gz").write_bytes(gzip.compress(plain))
    else:
        pl.read_csv(plain).write_csv(folder / "ratings_first100k.csv.zst", compression="zstd")
    assert len(read_movielens(folder)) == 4


def test_the_100k_layout_is_read(tmp_path):
    ratings = read_movielens(write_100k(tmp_path / "ml-100k"))
    assert rows(ratings) == [(1, 1, 5.0, 100), (7, 1, 1.0, 95), (7, 2, 3.0, 90)]
    assert ratings.catalogue.titles == ("Amélie (2001)", "unknown")
    assert [genres_of(ratings.catalogue, code) for code in (0, 1)] == [("Comedy",), ("None",)]
    assert (ratings.entities.names, ratings.entities.codes.tolist()) == (("8", "other"), [0, 1])


@pytest.mark.parametrize("parquet", [False, True])
def test_the_1m_layout_is_read(tmp_path, parquet):
    ratings = read_movielens(write_1m(tmp_path / "ml-1m", parquet=parquet))
    time = MISSING_TIME if parquet else 100
    assert rows(ratings) == [(1, 3, 3.0, time), (1, 9, 5.0, 200), (2, 3, 1.0, 300)]
    assert ratings.scale == STARS
    assert ratings.catalogue.titles == ("Héat: Again (1995)", "Alone (1990)", "War (1991)")
    assert genres_of(ratings.catalogue, 0) == ("Children", "Crime")
    assert ratings.entities.kind == "ZIP digit"
    assert [ratings.entities.names[code] for code in ratings.entities.codes] == ["4", "7"]


def test_entities_may_be_two_zip_digits(tmp_path):
    folder = write_1m(tmp_path / "ml-1m")
    assert read_movielens(folder, zip_digits=2).entities.names == ("48", "70")
    with pytest.raises(InvalidParameter):
        read_movielens(folder, zip_digits=0)


def test_zip_codes_with_letters_are_one_entity(tmp_path):
    folder = write_100k(tmp_path / "ml-100k")
    (folder / "u.data").write_text("1\t1\t5\t1\n2\t1\t5\t1\n3\t1\t5\t1\n4\t1\t5\t1\n")
    (folder / "u.user").write_text("1|24|M|x|85711\n2|33|F|x|V3N4P\n3|33|F|x|E2E3R\n4|33|F|x|8A123\n")
    entities = read_movielens(folder).entities
    assert [entities.names[code] for code in entities.codes] == ["8", "other", "other", "8"]
    entities = read_movielens(folder, zip_digits=2).entities
    assert [entities.names[code] for code in entities.codes] == ["85", "other", "other", "other"]


def test_the_10m_layout_without_users_has_half_stars_and_titles_in_utf_8(tmp_path):
    folder = write_1m(tmp_path / "ml-10m")
    (folder / "users.dat").unlink()
    (folder / "ratings.dat").write_text("1::9::4.5::200\n1::3::3::100\n")
    (folder / "movies.dat").write_text("3::Héat (1995)::Crime|IMAX\n9::War (1991)::(no genres listed)\n", "utf-8")
    ratings = read_movielens(folder)
    assert rows(ratings) == [(1, 3, 3.0, 100), (1, 9, 4.5, 200)]
    assert (ratings.scale, ratings.entities) == (HALF_STARS, None)
    assert ratings.catalogue.titles == ("Héat (1995)", "War (1991)")


def test_an_id_of_too_many_digits_is_refused_with_its_line(tmp_path):
    folder = write_1m(tmp_path / "ml")
    (folder / "movies.dat").write_text("3::Heat::Crime\n" + "9" * 30 + "::Fargo::Crime\n")
    with pytest.raises(InvalidData, match=r"movies\.dat, line 2, column 'MovieID'"):
        read_movielens(folder)


def test_a_folder_without_a_known_layout_says_what_was_expected(tmp_path):
    with pytest.raises(InvalidData, match=r"u\.data .*ratings\.dat .*ratings\.csv"):
        read_movielens(tmp_path)


def test_a_rating_outside_the_scale_names_file_line_and_column(tmp_path):
    folder = write_latest(tmp_path / "ml", ratings=CSV_RATINGS.replace("7,10,0.5", "7,10,77.5"))
    with pytest.raises(RatingOutsideScale) as caught:
        read_movielens(folder)
    message = str(caught.value)
    assert message.startswith("rating-outside-scale: ")
    assert f"{folder / 'ratings.csv'}, line 4, column 'rating'" in message
    assert "0.5 to 5 in steps of 0.5" in message
    assert "77.5" not in message


def test_duplicates_are_an_error_that_names_both_lines_and_not_the_user(tmp_path):
    text = "userId,movieId,rating,timestamp\n90210,10,4,100\n1,30,2,110\n90210,30,1,1\n90210,10,3,90\n1,30,5,1\n"
    with pytest.raises(DuplicateRatings) as caught:
        read_movielens(write_latest(tmp_path / "ml", ratings=text))
    message = str(caught.value)
    assert "ratings.csv, line 5 rates the same item for the same user as line 2; there are 2 such rows" in message
    assert "duplicates='latest'" in message
    assert "90210" not in message


def test_a_missing_column_is_named_with_those_found(tmp_path):
    with pytest.raises(MissingColumn, match=r"no column 'rating'; it has 'userId', 'movieId', 'stars', 'timestamp'"):
        read_movielens(write_latest(tmp_path / "ml", ratings=CSV_RATINGS.replace("rating", "stars")))


def test_a_file_without_header_and_too_few_columns_is_refused(tmp_path):
    folder = write_100k(tmp_path / "ml")
    (folder / "u.data").write_text("1\t2\t3\n")
    with pytest.raises(MissingColumn, match=r"u\.data has no column 'time'"):
        read_movielens(folder)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("movies.dat", "3::Heat\n", r"movies\.dat, line 1: expected 3 fields"),
        ("movies.dat", "3::Heat::Crime\nx::Fargo::Crime\n", r"movies\.dat, line 2, column 'MovieID'"),
        ("movies.dat", "3::Heat::Krimi\n", r"movies\.dat, line 1: 'Krimi' is not a genre"),
        ("users.dat", "1::F::1::10\n", r"users\.dat, line 1: expected 5 fields"),
        (
            "ratings.dat",
            "1::9::5::200\n1::x::3::100\n",
            r"ratings\.dat, line 2, column 'movie_id': expected a whole number",
        ),
    ],
)
def test_a_malformed_list_names_its_line(tmp_path, file, text, message):
    folder = write_1m(tmp_path / "ml")
    (folder / file).write_text(text)
    with pytest.raises(InvalidData, match=message):
        read_movielens(folder)


def test_shuffled_rows_give_the_same_ratings(tmp_path):
    header, *lines = CSV_RATINGS.splitlines()
    order = np.random.default_rng(3).permutation(len(lines))
    shuffled = "\n".join([header, *(lines[place] for place in order)])
    assert rows(read_movielens(write_latest(tmp_path / "b", ratings=shuffled))) == rows(
        read_movielens(write_latest(tmp_path / "a"))
    )
