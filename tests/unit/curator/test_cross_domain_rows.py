"""One row for each person over the items of both domains, from public lists, on one public scale."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.curator.cross_domain.domains import BothDomains, public_list, restrict, restrict_both, union
from tacit.curator.fit import RATED_AT_ALL
from tacit.data.catalogue import Catalogue
from tacit.data.pairs import TwoDomains
from tacit.data.ratings import COUNTS, HALF_STARS, MISSING_TIME, STARS, Scale
from tacit.errors import InvalidParameter
from tests.unit.curator.cross_domain_world import TABLE, ratings, small


def dense(table: Any) -> list[list[float]]:
    return table.toarray().tolist()


def test_source_items_come_first_and_every_person_has_a_row() -> None:
    table, times = union(small())
    assert dense(table) == TABLE.tolist()
    assert times is None
    assert table.has_sorted_indices
    assert table.dtype == np.float64


def test_ratings_of_zero_are_ratings() -> None:
    domains = small(TABLE, scale=Scale(0.0, 5.0))
    source = replace(domains.source, values=np.where(domains.source.values == 5, 0, domains.source.values).astype("f4"))
    table, _ = union(TwoDomains(source, domains.target))
    assert table.nnz == np.count_nonzero(TABLE)
    assert 0.0 in table.data


def test_rows_of_one_user_id_are_one_person() -> None:
    ids = np.array([7, 8, 7, 9, 10, 11, 12, 13])
    table, _ = union(small(user_ids=ids))
    assert table.shape == (7, 6)
    assert table.toarray()[0].tolist() == [5, 5, 1, 4, 2, 0]  # item 1 was rated twice: the later row counts


def test_of_two_ratings_of_one_person_the_latest_counts() -> None:
    ids, both = np.zeros(2, dtype=np.int64), np.array([[3, 4], [5, 2]])
    source = ratings(both, 0, "films", user_ids=ids, times=np.array([9, 1, 5, MISSING_TIME]))
    target = ratings(both, 2, "books", user_ids=ids, times=np.array([1, MISSING_TIME, 1, MISSING_TIME]))
    table, times = union(TwoDomains(source, target))
    assert dense(table) == [[3, 4, 5, 2]]  # later, later than unknown; of equal times the last row
    assert times is not None
    assert times.tolist() == [9, 1, 1, MISSING_TIME]


def test_times_of_one_domain_alone_leave_the_others_unknown() -> None:
    domains = small()
    timed = replace(domains.source, times=np.arange(len(domains.source)))
    table, times = union(TwoDomains(timed, domains.target))
    assert times is not None
    assert times[table.indices >= 3].tolist() == [MISSING_TIME] * len(domains.target)
    assert sorted(times[table.indices < 3].tolist()) == list(range(len(domains.source)))


def test_a_value_that_is_not_finite_is_no_rating() -> None:
    domains = small()
    values = domains.source.values.copy()
    values[:2] = np.nan, np.inf
    table, _ = union(TwoDomains(replace(domains.source, values=values), domains.target), 1)
    assert table.toarray()[0].tolist() == [0, 0, 1, 0, 0, 0]


def test_a_persons_few_ratings_in_a_domain_are_left_out_and_those_in_the_other_stay() -> None:
    table, _ = union(small(), 2)
    few = TABLE.copy()
    few[[2, 3, 6], 1] = 0  # one rating in the source each
    assert dense(table) == few.tolist()
    assert union(small(), 4)[0].nnz == 0


def test_a_person_is_counted_over_all_her_rows() -> None:
    rows = np.array([[5, 4, 0, 0], [0, 0, 3, 2]])
    domains = small(rows, cut=3, user_ids=np.zeros(2, dtype=np.int64))
    assert union(domains, 3)[0].toarray().tolist() == [[5, 4, 3, 0]]


@pytest.mark.parametrize("ids", [[3, 1, 2, 0, 7, 6, 5, 4], [7, 6, 5, 4, 3, 2, 1, 0], [1, 2, 3, 4, 5, 6, 7, 8]], ids=str)
def test_people_in_any_order_have_the_same_rows(ids: list[int]) -> None:
    table, _ = union(small(user_ids=np.array(ids)))
    assert dense(table) == TABLE[np.argsort(ids)].tolist()
    assert table.has_sorted_indices


def test_a_value_that_is_not_finite_does_not_win_over_an_earlier_one() -> None:
    """The latest rating counts, and if it is no rating there is none: what a person's row is follows from her rows alone."""
    rows = np.array([[5, 4, 2], [3, 0, 2]])
    domains = small(rows, cut=2, user_ids=np.zeros(2, dtype=np.int64))
    values = domains.source.values.copy()
    values[2] = np.nan
    table, _ = union(TwoDomains(replace(domains.source, values=values), domains.target))
    assert dense(table) == [[0, 4, 2]]


# ---- what is public


def test_only_listed_items_are_there_and_their_order_is_told_by_the_digest() -> None:
    hidden = np.array([False, True, False])
    both = BothDomains.of(small(rated_only=hidden))
    assert (both.source.ids.tolist(), both.target.ids.tolist(), both.n_source, both.n_items) == ([0, 2], [3, 5], 2, 4)
    assert dense(both.read(1)) == TABLE[:, [0, 2, 3, 5]].tolist()
    assert both.assumed == ()
    digests = {both.digest, BothDomains.of(small()).digest, BothDomains.of(small().reversed()).digest}
    digests |= {BothDomains.of(small(scale=Scale(1.0, 6.0))).digest, BothDomains.of(small(cut=2)).digest}
    assert len(digests) == 5


def test_without_a_list_of_items_a_private_release_is_refused_unless_they_are_called_public() -> None:
    domains = small(rated_only=np.ones(3, dtype=np.bool_))
    with pytest.raises(InvalidParameter, match="public_catalogue=True"):
        BothDomains.of(domains)
    assert BothDomains.of(domains, public_catalogue=True).assumed == (RATED_AT_ALL,)
    with pytest.raises(InvalidParameter, match=r"invalid-parameter: the target came without a list"):
        BothDomains.of(TwoDomains(small().source, domains.target))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda both: small(scale=COUNTS), "no upper bound"),
        (lambda both: TwoDomains(both.source, replace(both.target, scale=HALF_STARS)), "one scale"),
        (lambda both: small(TABLE[:, :3]), "target has no listed items"),
    ],
    ids=["no upper bound", "two scales", "no items"],
)
def test_what_no_release_could_be_made_of_is_refused(change: Any, match: str) -> None:
    with pytest.raises(InvalidParameter, match=match):
        BothDomains.of(change(small()))


def test_scales_that_differ_in_their_steps_alone_are_one() -> None:
    both = small()
    assert BothDomains.of(TwoDomains(both.source, replace(both.target, scale=Scale(1.0, 5.0)))).scale == Scale(1.0, 5.0)
    assert BothDomains.of(both).scale == STARS


def test_ids_that_no_message_carries_are_refused_before_anything_is_charged() -> None:
    domains = small()
    long = replace(domains.source.catalogue, ids=np.array(["a", "b", "c" * 201]))
    with pytest.raises(InvalidParameter, match="source's items"):
        BothDomains.of(TwoDomains(replace(domains.source, catalogue=long), domains.target))


def test_an_item_of_both_domains_is_refused_also_where_one_has_numbers_and_the_other_text() -> None:
    domains = small()
    text = replace(domains.target.catalogue, ids=np.array(["1", "a", "b"]))
    with pytest.raises((InvalidParameter, ValueError), match="both domains"):
        BothDomains(domains.source.catalogue, text, STARS, lambda least: None, "both")


def test_items_named_by_numbers_and_by_texts_are_refused_as_no_message_carries_both() -> None:
    text = Catalogue(np.array(["a", "b", "c"]))
    with pytest.raises(InvalidParameter, match="name all by texts"):
        BothDomains(small().source.catalogue, text, STARS, lambda least: None, "both")


def test_a_scale_beyond_what_a_message_carries_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="another unit"):
        BothDomains.of(small(scale=Scale(1.0, 1e7)))


def test_neither_repr_nor_digest_reads_a_rating() -> None:
    def read(least: int) -> Any:
        raise AssertionError("read")

    both = BothDomains(small().source.catalogue, small().target.catalogue, STARS, read, "two domains")
    assert both.digest
    assert repr(both) == "BothDomains('two domains': 3 and 3 items)"


# ---- public lists for ratings that came without


def test_public_lists_hold_what_nobody_rated_and_leave_out_the_rest() -> None:
    domains = small(rated_only=np.ones(3, dtype=np.bool_))
    both = BothDomains.of(domains, catalogues=([9, 2, 0, 2], [5, 3]))
    assert (both.source.ids.tolist(), both.target.ids.tolist(), both.assumed) == ([0, 2, 9], [3, 5], ())
    expected = np.zeros((8, 5))
    expected[:, [0, 1, 3, 4]] = TABLE[:, [0, 2, 3, 5]]
    assert dense(both.read(1)) == expected.tolist()


@pytest.mark.parametrize("written", [int, str])
@pytest.mark.parametrize("rated", [int, str])
def test_a_list_is_as_it_is_written_and_numbers_meet_texts(written: Any, rated: Any) -> None:
    """As texts, 10 and 12 come before 7 and 9: rows of the table move, and with them their ratings."""
    table, scale = np.arange(1, 25).reshape(4, 6), Scale(1.0, 50.0)
    ids = np.array([7, 8, 9, 10, 11, 12]).astype(rated)
    order = np.argsort(ids)
    source = ratings(table, 0, "films", catalogue=Catalogue(np.arange(6).astype(rated)), scale=scale)
    target = ratings(table[:, order], 0, "books", catalogue=Catalogue(ids[order]), scale=scale)
    wanted = [written(one) for one in (12, 10, 9, 7, 99)]
    both = BothDomains.of((source, target), catalogues=([written(0), written(5)], wanted))
    assert both.source.ids.tolist() == [written(0), written(5)]
    assert both.target.ids.tolist() == sorted(wanted)
    column = {written(number): table[:, number - 7] for number in (7, 9, 10, 12)}
    expected = [table[:, 0], table[:, 5], *(column.get(one, np.zeros(4)) for one in sorted(wanted))]
    assert dense(both.read(1)) == np.column_stack(expected).tolist()
    assert both.read(1).has_sorted_indices


def test_an_id_with_zeros_before_it_is_another_one() -> None:
    part = replace(small().source, catalogue=Catalogue(np.array(["0", "01", "2"])))
    assert (
        restrict(part, public_list([0, 1, 2])).items.tolist()
        == restrict(part, public_list(["0", "1", "2"])).items.tolist()
    )
    assert restrict(part, public_list([0, 1, 2])).item_counts.tolist() == [2, 0, 2]
    assert restrict(small().source, public_list(["00", "01", "2"])).item_counts.tolist() == [0, 0, 2]


def test_times_stay_with_their_ratings_where_texts_sort_otherwise() -> None:
    part = ratings(np.array([[3, 5]]), 9, "films", times=np.array([90, 100]))
    moved = restrict(part, public_list(["9", "10"]))
    assert moved.catalogue.ids.tolist() == ["10", "9"]
    assert (moved.values.tolist(), moved.times.tolist()) == ([5, 3], [100, 90])  # type: ignore[union-attr]


@pytest.mark.parametrize("ids", [[], "abc", [1.5], [["a"]], [True]], ids=str)
def test_what_is_no_list_of_ids_is_refused(ids: Any) -> None:
    with pytest.raises(InvalidParameter, match="a catalogue"):
        public_list(ids)


def test_two_sets_of_ratings_are_joined_by_their_users_over_the_lists() -> None:
    domains = small(user_ids=np.array([f"u{place}" for place in range(8)]))
    turned = domains.target.select_users(np.arange(7, -1, -1))
    joined = restrict_both((domains.source, turned), public_list([0, 1, 2]), public_list([3, 4, 5]))
    assert dense(union(joined)[0]) == TABLE.tolist()


def test_users_are_called_the_same_whichever_domain_is_the_source() -> None:
    films, books = (replace(part, catalogue=Catalogue(part.catalogue.ids)) for part in (small().source, small().target))
    named = [BothDomains.of(one) for one in ((films, books), (books, films), TwoDomains(films, books))]
    assert [one.people for one in named] == ["books and films"] * 3
    assert [one.name for one in named] == ["films and books", "books and films", "films and books"]
