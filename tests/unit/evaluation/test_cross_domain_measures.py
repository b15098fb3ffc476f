"""Who is asked, what is measured, and how draws and splits are put together."""

import numpy as np
import pytest
from scipy import sparse

from tacit.evaluation.cross_domain import measures
from tacit.evaluation.cross_domain.measures import (
    MAE,
    NDCG,
    RECALL,
    RMSE,
    Scored,
    lists,
    over_draws,
    over_splits,
    scored,
)
from tacit.evaluation.cross_domain.outcome import DIRECTIONS, Gathering, Outcome
from tacit.evaluation.cross_domain.splits import Held, hidden, straddlers
from tacit.evaluation.cross_domain.sweeps import unlinked
from tacit.evaluation.cross_domain.synthetic import Plan, synthetic
from tacit.guarantees import ONE_USER, pure

TWO = synthetic(Plan(users=200, items=30, each=9.0, overlap=0.4), rng=np.random.default_rng(4))
HELD = hidden(TWO, "tiny", rng=np.random.default_rng(5))


def test_a_fifth_of_the_straddlers_lose_all_of_their_target_and_nobody_else_anything() -> None:
    both = straddlers(TWO)
    assert HELD.asked.size == round(0.2 * both.size)
    assert set(HELD.asked.tolist()) <= set(both.tolist())
    known, n_source = HELD.ratings.toarray(), HELD.n_source
    source, target = TWO.source.csr().toarray(), TWO.target.csr().toarray()
    assert np.array_equal(known[:, :n_source], source)
    assert not known[HELD.asked, n_source:].any()
    others = np.setdiff1d(np.arange(TWO.n_users), HELD.asked)
    assert np.array_equal(known[others, n_source:], target[others])
    assert np.array_equal(HELD.hidden.toarray(), target[HELD.asked])


def test_times_stay_with_their_ratings() -> None:
    assert HELD.times is not None
    assert HELD.times.size == HELD.ratings.nnz
    rows = np.repeat(np.arange(HELD.ratings.shape[0]), np.diff(HELD.ratings.indptr))
    for part, first in ((TWO.source, 0), (TWO.target, HELD.n_source)):
        when = {(user, item): time for user, item, time in zip(part.users, part.items, part.times, strict=True)}
        mine = (HELD.ratings.indices >= first) & (HELD.ratings.indices < first + part.n_items)
        for user, item, time in zip(rows[mine], HELD.ratings.indices[mine] - first, HELD.times[mine], strict=True):
            assert when[user, item] == time


def held_of(rows: list[dict[int, float]], items: int) -> Held:
    table = sparse.lil_array((len(rows), items))
    for row, ratings in enumerate(rows):
        for item, value in ratings.items():
            table[row, item] = value
    return Held(
        "w", sparse.csr_array((len(rows), items + 1)), 1, None, 1.0, 5.0, np.arange(len(rows)), table.tocsr(), 0
    )


def test_errors_are_clipped_to_the_scale_and_counted_by_user() -> None:
    held = held_of([{0: 5.0, 1: 1.0}, {2: 3.0}], 3)
    one = scored(held, np.array([[9.0, 2.0, 0.0], [0.0, 0.0, 3.5]]))
    assert one.errors.tolist() == [0.0, 1.0, 0.5]
    assert one.squares.tolist() == [0.0, 1.0, 0.25]
    assert one.users.tolist() == [0, 0, 1]
    assert one.mae.value == 0.5


def test_lists_by_hand() -> None:
    held = held_of([{0: 5.0, 1: 4.0, 2: 3.0}, {3: 2.0}], 12)
    scores = np.zeros((2, 12))
    scores[0, :] = np.arange(12, 0, -1)  # items 0 and 1 come first
    assert lists(scores, held) == (pytest.approx([1.0]), pytest.approx([1.0]))  # the second user likes nothing
    scores[0] = scores[0][::-1]  # item 1 is eleventh, item 0 twelfth: none among ten
    assert lists(scores, held) == (pytest.approx([0.0]), pytest.approx([0.0]))
    scores[0, 1] = 11.5  # second
    discount = 1.0 / np.log2([2, 3])
    assert lists(scores, held) == (pytest.approx([discount[1] / discount.sum()]), pytest.approx([0.5]))


def test_a_user_of_whom_not_all_items_were_scored_is_in_no_list() -> None:
    held = held_of([{0: 5.0}, {1: 5.0}], 4)
    scores = np.array([[4.0, np.nan, 1.0, 1.0], [1.0, 5.0, 1.0, 1.0]])
    one = scored(held, scores)
    assert one.ndcg.tolist() == [1.0]
    assert one.errors.tolist() == [1.0, 0.0]


def test_ties_go_to_the_lower_item() -> None:
    held = held_of([{11: 5.0}], 12)
    assert lists(np.ones((1, 12)), held)[1].tolist() == [0.0]


def of(errors: list[float], users: list[int]) -> Scored:
    values = np.array(errors)
    return Scored(values, values**2, np.array(users), values, values)


def test_draws_are_averaged_and_splits_stand_side_by_side() -> None:
    draws = over_draws([of([1.0, 2.0], [0, 1]), of([3.0, 2.0], [0, 1])])
    assert draws.errors.tolist() == [2.0, 2.0]
    assert draws.squares.tolist() == [5.0, 4.0]
    both = over_splits([draws, of([4.0], [0])])
    assert both.errors.tolist() == [2.0, 2.0, 4.0]
    assert both.users.tolist() == [0, 1, 2]  # the first user of the second split is another one


def test_rows_have_errors_over_users() -> None:
    found = {row.metric: row for row in measures.rows("m", of([1.0, 3.0, 1.0, 3.0], [0, 0, 1, 1]), world="w")}
    assert found[MAE].value == 2.0
    assert found[MAE].stderr == 0.0  # both users err by 2 on average
    assert found[RMSE].value == pytest.approx(np.sqrt(5.0))
    assert {NDCG, RECALL} <= set(found)


def test_the_error_of_a_root_is_that_of_its_square_by_twice_the_root() -> None:
    """Squares 1 and 9 of two users: 5 on average, each 4 away, so 5 ± 4; and sqrt 5 ± 4 / (2 sqrt 5)."""
    found = {row.metric: row for row in measures.rows("m", of([1.0, 3.0], [0, 1]))}
    assert (found[RMSE].value, found[RMSE].stderr) == (pytest.approx(2.236068), pytest.approx(0.894427))
    exact = {row.metric: row for row in measures.rows("m", of([0.0, 0.0], [0, 1]))}
    assert (exact[RMSE].value, exact[RMSE].stderr) == (0.0, 0.0)


def test_scores_are_gathered_over_draws_and_splits() -> None:
    gathered, promise = Gathering(), pure(1.0, ONE_USER)
    for errors in ([1.0, 1.0], [3.0, 3.0]):
        gathered.next_split()
        for _ in range(2):
            gathered.add("m", {"world": "w", "epsilon": 1.0}, of(errors, [0, 1]), promise, {DIRECTIONS: 3})
    found = gathered.outcome()
    assert {(row.metric, row.value) for row in found.rows} >= {(MAE, 2.0), (DIRECTIONS, 3.0)}
    assert found.guarantees == {"m, w, epsilon=1.0": promise}
    one = found.find("m", world="w", epsilon=1.0)
    assert one is not None
    assert one.errors.size == 4
    assert found.find("m", world="w") is None


def test_differences_are_taken_user_by_user() -> None:
    apart = Outcome().lower(of([1.0, 2.0, 5.0], [0, 1, 2]), of([1.5, 2.5, 5.5], [0, 1, 2]))
    assert (apart.value, apart.stderr) == (0.5, 0.0)


def test_links_are_cut_without_losing_a_rating() -> None:
    cut = unlinked(HELD, 0.25, rng=np.random.default_rng(1))
    first = HELD.n_source

    def both(table: sparse.csr_array) -> int:
        dense = table.toarray()
        return int(((dense[:, :first] > 0).any(axis=1) & (dense[:, first:] > 0).any(axis=1)).sum())

    assert both(cut.ratings) == round(0.25 * both(HELD.ratings))
    assert cut.ratings.nnz == HELD.ratings.nnz
    assert np.array_equal(cut.ratings.sum(axis=0), HELD.ratings.sum(axis=0))
    assert np.array_equal(cut.source.toarray(), HELD.source.toarray())
    assert np.array_equal(unlinked(HELD, 1.0, rng=np.random.default_rng(1)).ratings.toarray(), HELD.ratings.toarray())
    assert cut.times is not None
    assert HELD.times is not None
    assert np.array_equal(np.sort(cut.times), np.sort(HELD.times))
