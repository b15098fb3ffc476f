import numpy as np
import pytest

from tacit.data import COUNTS, GENRES, HALF_STARS, STARS, Catalogue, Scale
from tacit.data.catalogue import genre_flags
from tacit.errors import InvalidData, InvalidParameter, UnknownName


def where(place: int) -> str:
    return f"films.csv, line {place + 2}"


def flags_of(text: str) -> list[str]:
    return [GENRES[place] for place in np.flatnonzero(genre_flags([text], where)[0])]


def test_the_vocabulary_is_the_fixed_one():
    assert len(GENRES) == 19
    assert (GENRES[0], GENRES[3], GENRES[9], GENRES[18]) == ("Action", "Children", "Film-Noir", "None")


@pytest.mark.parametrize(
    ("text", "genres"),
    [
        ("Comedy|Drama", ["Comedy", "Drama"]),
        ("Children's", ["Children"]),
        ("(no genres listed)", ["None"]),
        ("unknown", ["None"]),
        ("Action|IMAX", ["Action"]),
        ("IMAX", ["None"]),
        ("", ["None"]),
    ],
)
def test_genres_are_normalised(text, genres):
    assert flags_of(text) == genres


def test_an_unknown_genre_names_its_place_and_the_allowed_ones():
    with pytest.raises(InvalidData, match=r"films\.csv, line 3: 'Opera' is not a genre; allowed: Action, .*None"):
        genre_flags(["Drama", "Drama|Opera"], where)


@pytest.fixture
def films() -> Catalogue:
    titles = ("Toy Story (1995)", "Matrix, The (1999)", "Heat (1995)", "Heat (1986)", "Toy Story 2 (1999)")
    return Catalogue(np.array([1, 2, 3, 4, 5]), titles)


@pytest.mark.parametrize("title", ["The Matrix", "matrix, the", "Matrix, The (1999)", "the matrix (1999)"])
def test_a_title_is_found_with_or_without_year_and_article(films, title):
    assert films.title(films.find(title)) == "Matrix, The (1999)"


def test_an_ambiguous_title_asks_which(films):
    with pytest.raises(UnknownName, match=r"ambiguous: it may be Heat \(1995\) or Heat \(1986\)"):
        films.find("Heat")
    assert films.find("Heat (1986)") == 3


def test_another_year_is_another_film(films):
    with pytest.raises(UnknownName, match=r"similar titles: Heat \(1995\)"):
        films.find("Heat (2010)")
    with pytest.raises(UnknownName, match="similar titles: Toy Story"):
        films.find("Toy")


def test_item_ids_must_ascend():
    with pytest.raises(InvalidData):
        Catalogue(np.array([2, 1]))


@pytest.mark.parametrize(
    ("scale", "outside"),
    [
        (STARS, [1, 5, 3, 3.5]),
        (HALF_STARS, [0.5, 5, 3.5, 0.0]),
        (STARS, [1, 2, 3, float("nan")]),
        (STARS, [1, 2, 3, float("inf")]),
        (COUNTS, [1, 2, 10_000, float("inf")]),
        (Scale(-10, 10), [-10, 9.99, 0, 10.01]),
        (Scale(0, 1, 0.1), [0.1, 0.3, 0.7, 0.35]),
    ],
)
def test_a_scale_finds_the_first_value_outside(scale, outside):
    values = np.array(outside, dtype=np.float32)
    assert scale.first_outside(values) == 3
    assert scale.first_outside(values[:3]) is None


def test_the_first_value_outside_is_found_beyond_the_first_chunk():
    values = np.full(3_000_000, 4.0, dtype=np.float32)
    values[2_500_000] = 6.0
    assert STARS.first_outside(values) == 2_500_000


@pytest.mark.parametrize("wrong", [(5, 1), (1, 1), (float("nan"), 5), (1, 5, 0), (1, 5, 3)])
def test_a_scale_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        Scale(*wrong)
