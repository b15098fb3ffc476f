"""One person's ratings, whatever they are of and however they are written, change neither what is listed nor what is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import Curator
from tacit.curator.cross_domain.domains import BothDomains, Domains, public_list, restrict
from tacit.data import STARS, Ratings, TwoDomains, read_table
from tacit.data.catalogue import Catalogue
from tacit.errors import InvalidData, InvalidParameter, UnknownName
from tacit.ledger import Budget
from tests.unit.curator.cross_domain_world import TABLE, begin, ratings, small

LISTS = ([*range(1, 13)], [*range(101, 113)])
MODES = ("moments", "prs_valid")


def read(folder: Path, name: str, first: int, *more: str) -> Ratings:
    """30 users with 8 ratings each of 12 items, and further lines."""
    rng = np.random.default_rng(first)
    lines = [
        f"{user},{first + item},{int(rng.integers(1, 6))}"
        for user in range(30)
        for item in rng.choice(12, 8, replace=False).tolist()
    ]
    file = folder / f"{name}{len(list(folder.iterdir()))}.csv"
    file.write_text("\n".join(["user,item,rating", *lines, *more]) + "\n")
    return read_table(file, user="user", item="item", rating="rating", scale=STARS, name=name)


ODD: dict[str, tuple[list[str], list[str]]] = {
    "a text in the source": (["777,abc,5"], []),
    "texts in both": (["777,abc,5"], ["777,xyz,5"]),
    "the target's item in the source": (["777,101,5"], []),
    "the source's item in the target": ([], ["777,1,5"]),
    "one item in both, on neither list": (["777,55,5"], ["777,55,4"]),
    "zeros before it": (["777,01,5"], ["777,0101,5"]),
    "an id that no message carries": ([f"777,{'x' * 300},5"], [f"777,{10**17},5"]),
    "a user id of letters": (["u7,3,5"], []),
    "a user id with zeros before it": (["007,3,5"], ["007,105,5"]),
}


@pytest.mark.parametrize("odd", ODD)
def test_one_persons_rows_change_neither_the_lists_nor_the_rows_of_others(tmp_path: Path, odd: str) -> None:
    first, second = ODD[odd]
    plain = BothDomains.of((read(tmp_path, "s", 1), read(tmp_path, "t", 101)), catalogues=LISTS)
    other = BothDomains.of((read(tmp_path, "s", 1, *first), read(tmp_path, "t", 101, *second)), catalogues=LISTS)
    assert (other.digest, other.name, other.people) == (plain.digest, plain.name, plain.people)
    assert other.source.ids.tolist() == LISTS[0]
    rows, more = (sorted(one.read(5).toarray().tolist()) for one in (plain, other))
    assert len(rows) == 30  # each person of both files once: nobody was split in two
    assert more == sorted([*rows, *[[0.0] * 24] * (len(more) - 30)])
    alone = sorted(one for one in other.read(1).toarray().tolist() if one not in rows)
    assert len(alone) <= 1  # her own, if it is of a listed item


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("odd", ["texts in both", "the target's item in the source"])
def test_it_is_released_as_without_her(tmp_path: Path, odd: str, mode: str) -> None:
    first, second = ODD[odd]
    sides = read(tmp_path, "s", 1, *first), read(tmp_path, "t", 101, *second)
    with Curator(*sides, begin(tmp_path / "curator.db"), catalogues=LISTS) as holder:
        made = holder.release(mode=mode)
    assert (made.source, made.target) == (tuple(LISTS[0]), tuple(LISTS[1]))


def test_lists_of_texts_stay_texts_whatever_was_rated(tmp_path: Path) -> None:
    texts = tuple([str(one) for one in part] for part in LISTS)
    sides = [(read(tmp_path, "s", 1, *more), read(tmp_path, "t", 101)) for more in ([], ["777,abc,5"])]
    both = [BothDomains.of(one, catalogues=texts) for one in sides]  # type: ignore[arg-type]
    assert both[0].digest == both[1].digest
    assert both[0].source.ids.tolist() == sorted(texts[0])
    assert both[0].read(1).toarray().tolist() == both[1].read(1).toarray()[:30].tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        None, 7, "abc", b"abc", [], [None], [1, None], [b"a"], [[1], [2, 3]], [[1], [2]], [True, 2], [np.True_], [1.0], [1, "2"],
        ["a", "a\0"], np.zeros((2, 2), dtype=np.int64), [2**63, 1], np.array(5),
    ],
    ids=repr,
)  # fmt: skip
def test_a_list_of_anything_else_is_refused_with_what_is_allowed(wrong: Any) -> None:
    with pytest.raises(
        InvalidParameter, match=r"of a catalogue has no more|all whole numbers or all texts, at least one"
    ):
        public_list(wrong)


def test_lists_come_in_any_collection() -> None:
    for numbers in (
        {3, 1},
        (one for one in (3, 1)),
        np.array([3, 1, 3], dtype=np.uint64),
        np.array([3, 1], dtype=object),
    ):
        found = public_list(numbers)  # type: ignore[arg-type]
        assert (found.ids.tolist(), found.ids.dtype) == ([1, 3], np.int64)
    for texts in (["b", "a\0c"], np.array(["b", "a\0c"]), np.array(["b", "a\0c"], dtype=object)):
        assert public_list(texts).ids.tolist() == ["a\0c", "b"]  # type: ignore[arg-type]
    wide = public_list(np.array([2**53, 5], dtype=np.uint64))  # type: ignore[arg-type]
    rated = replace(with_a_list(0, "films"), catalogue=Catalogue(np.array([2**53 - 1, 2**53, 2**53 + 1])))
    assert restrict(rated, wide).items.size == np.count_nonzero(TABLE[:, 1])


# ---- lists that came with the ratings


def with_a_list(first: int, name: str, *further: int) -> Ratings:
    """TABLE's ratings of three items on a list, and one user's of further ones that are on none."""
    ids = np.array([first, first + 1, first + 2, *further])
    order, table = np.argsort(ids), np.zeros((8, 3 + len(further)), dtype=np.int64)
    table[:, :3] = TABLE[:, first : first + 3]
    table[0, 3:] = 5
    catalogue = Catalogue(ids[order], rated_only=(np.arange(ids.size) >= 3)[order])
    return ratings(table[:, order], 0, name, catalogue=catalogue)


@pytest.mark.parametrize("further", [([4], []), ([], [1]), ([9], [9]), ([4, 9], [0, 9])], ids=str)
def test_what_is_not_listed_is_left_out_before_domains_are_told_apart(
    tmp_path: Path, further: tuple[list[int], list[int]]
) -> None:
    sides = with_a_list(0, "films", *further[0]), with_a_list(3, "books", *further[1])
    with Curator(*sides, begin(tmp_path / "curator.db")) as holder:
        model = holder.release(least=1)
        assert (model.source, model.target) == ((0, 1, 2), (3, 4, 5))
    found = Domains.of(*sides).listed
    assert (found.digest, found.assumed) == (BothDomains.of(small()).digest, ())
    assert found.read(1).toarray().tolist() == TABLE.tolist()


def in_both_lists(folder: Path) -> None:
    Curator(with_a_list(0, "films"), with_a_list(2, "books"), folder / "curator.db", budget=Budget(2, 1e-6))


def in_both_without_lists(folder: Path) -> None:
    Curator(read(folder, "s", 1), read(folder, "t", 12), folder / "curator.db", budget=Budget(2, 1e-6))


@pytest.mark.parametrize("made", [in_both_lists, in_both_without_lists])
def test_an_item_of_both_lists_is_refused_at_once_and_so_is_one_of_both_domains_without(
    tmp_path: Path, made: Callable[[Path], None]
) -> None:
    with pytest.raises(InvalidData, match="in both domains"):
        made(tmp_path)
    assert not (tmp_path / "curator.db").exists()


def test_an_item_of_both_given_lists_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    lists = ([1, 2, 3], ["3", "4"])
    for given in (lists, ([1, 2, 101], [101, 102])):
        with Curator(
            read(tmp_path, "s", 1), read(tmp_path, "t", 101), begin(tmp_path / "c.db"), catalogues=given
        ) as holder:
            for mode in MODES:
                with pytest.raises(InvalidParameter, match="in both domains"):
                    holder.release(mode=mode)
            assert holder.statement().charges == 0


def test_modes_without_a_promise_refuse_an_item_that_was_rated_in_both(tmp_path: Path) -> None:
    sides = read(tmp_path, "s", 1, "777,101,5"), read(tmp_path, "t", 101)
    options: dict[str, Any] = {"catalogues": LISTS, "unprotected": ["nx", "published"]}
    with Curator(*sides, begin(tmp_path / "curator.db"), **options) as holder:
        for mode in ("nx", "published"):
            with pytest.raises(InvalidData, match="in both domains"):
                holder.release(mode=mode)
        assert holder.statement().charges == 0
        assert holder.release().source == tuple(LISTS[0])


# ---- whose budget it is


def test_the_budget_is_one_whichever_domain_is_the_source(tmp_path: Path) -> None:
    domains = small()
    films, books = replace(domains.source), replace(domains.target)
    made: list[Any] = [domains, domains.reversed(), BothDomains.of(domains), BothDomains.of(domains.reversed())]
    subjects = set()
    for one in made:
        with Curator(one, ledger=begin(tmp_path / "curator.db")) as holder:
            subjects.add(holder.statement().subject)
    with Curator(books, films, begin(tmp_path / "curator.db")) as holder:
        subjects.add(holder.statement().subject)
    assert subjects == {"users of books and films"}
    elsewhere = BothDomains(films.catalogue, books.catalogue, STARS, lambda least: None, "a cluster")
    with Curator(elsewhere, ledger=begin(tmp_path / "curator.db")) as holder:
        assert holder.statement().subject == "users of a cluster"


def test_two_domains_made_beforehand_are_taken_as_they_are() -> None:
    domains = small()
    assert Domains.of(domains, None).rows is domains
    joined = Domains.of(domains.source, domains.target).rows
    assert isinstance(joined, TwoDomains)
    assert joined.source.values.tolist() == domains.source.values.tolist()


def test_titles_are_those_of_either_domain(tmp_path: Path) -> None:
    films = with_a_list(0, "films")
    named = replace(films, catalogue=replace(films.catalogue, titles=tuple(f"film {i}" for i in range(films.n_items))))
    with Curator(named, with_a_list(3, "books"), begin(tmp_path / "curator.db")) as holder:
        first, last = named.catalogue.ids[0].item(), with_a_list(3, "books").catalogue.ids[-1].item()
        assert holder.titles([first, last]) == ("film 0", str(last))
        with pytest.raises(UnknownName, match="listed in either"):
            holder.titles([10_000])
