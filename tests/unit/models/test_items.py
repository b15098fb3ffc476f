"""Items: finding one by its id, its title or its number on the wire."""

import numpy as np
import pytest

from tacit.errors import InvalidModel, UnknownName
from tacit.models.items import Items

FILMS = Items(np.array([1, 5, 260]), ("Toy Story (1995)", "Matrix, The (1999)", "Star Wars (1977)"))
BOOKS = Items(np.array(["0767803434", "alpha", "béta"]))


def test_a_film_is_found_by_id_and_by_title() -> None:
    assert [FILMS.code(item) for item in (1, 5, 260)] == [0, 1, 2]
    assert [FILMS.code(title) for title in ("toy story", "The Matrix", "The Matrix (1999)", "Matrix, The")] == [
        0,
        1,
        1,
        1,
    ]
    assert FILMS.codes([260, "Toy Story (1995)"]).tolist() == [2, 0]
    assert (FILMS.id(2), FILMS.title(2)) == (260, "Star Wars (1977)")
    assert isinstance(FILMS.id(0), int)


@pytest.mark.parametrize("item", [2, 0, 261, -1, "Casablanca", True, 2.0, None])
def test_what_is_not_there_is_unknown(item: object) -> None:
    with pytest.raises(UnknownName):
        FILMS.code(item)  # type: ignore[arg-type]


def test_text_ids_are_found_by_id_and_travel_as_codes() -> None:
    assert [BOOKS.code(item) for item in ("0767803434", "alpha", "béta")] == [0, 1, 2]
    assert BOOKS.numbers.tolist() == [0, 1, 2]
    assert BOOKS.title(2) == "béta"  # without titles the id is shown
    for item in ("gamma", "767803434", ""):
        with pytest.raises(UnknownName):
            BOOKS.code(item)


def test_numbers_on_the_wire_lead_back() -> None:
    assert FILMS.numbers.tolist() == [1, 5, 260]
    assert [FILMS.code_of_number(number) for number in (1, 5, 260)] == [0, 1, 2]
    assert [BOOKS.code_of_number(number) for number in (0, 1, 2)] == [0, 1, 2]
    for number in (0, 4, 261, 2**64 - 1):
        with pytest.raises(UnknownName):
            FILMS.code_of_number(number)


def test_ids_below_zero_travel_as_codes() -> None:
    odd = Items(np.array([-3, 7]))
    assert odd.numbers.tolist() == [0, 1]
    assert odd.code(-3) == 0


def test_ids_must_ascend_and_titles_must_fit() -> None:
    for ids, titles in (([2, 1], None), ([1, 1], None), ([[1, 2]], None), ([1, 2], ("one",))):
        with pytest.raises(InvalidModel):
            Items(np.array(ids), titles)
