"""Prototypes of several entities: their stack and weights, items' factors, influence."""

from dataclasses import dataclass

import numpy as np
import pytest

from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.nonnegative import Factorisation, factorise, stack_prototypes, weight_parts
from tacit.server.federated_prototypes import influence, shared_items

NAN = np.nan


@dataclass(frozen=True)
class Sent:
    centres: np.ndarray
    sizes: np.ndarray


def sent(centres: object, sizes: object) -> Sent:
    return Sent(np.array(centres, dtype=float), np.array(sizes, dtype=float))


def entities(count: int, seed: int = 0, *, k: int = 4, items: int = 9) -> dict[str, Sent]:
    """Noisy prototypes of one common table of rank 2."""
    rng = np.random.default_rng(seed)
    taste = rng.random((2, items))
    return {
        f"entity {place}": sent(
            4.0 * rng.random((k, 2)) @ taste + 0.05 * rng.random((k, items)), 50 + 100 * rng.random(k)
        )
        for place in range(count)
    }


HOW = Factorisation(rank=2, seed=7, ridge=0.01)


def test_cells_that_were_not_released_are_not_in_the_stack_and_a_released_zero_is() -> None:
    both = [sent([[1.0, NAN, 0.0], [NAN] * 3], [10.0, 5.0]), sent([[NAN, 2.0, NAN]], [10.0])]
    stack = stack_prototypes(both, zeros_observed=True)
    assert stack.cells.toarray().tolist() == [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    assert stack.cells.nnz == 3  # the 0 is stored; the row without a number is gone
    assert stack.owners.tolist() == [0, 1]
    assert stack.weights.tolist() == [1.0, 1.0]


def test_where_zeros_are_not_observed_a_released_zero_is_unknown_and_a_row_of_them_is_padding() -> None:
    one = sent([[1.0, NAN, 0.0], [0.0, NAN, -0.0], [4.0, 3.0, 2.0]], [10.0, 80.0, 30.0])
    stack = stack_prototypes([one, sent([[NAN, 2.0, NAN]], [10.0])], zeros_observed=False)
    assert stack.cells.toarray().tolist() == [[1.0, 0.0, 0.0], [4.0, 3.0, 2.0], [0.0, 2.0, 0.0]]
    assert stack.cells.nnz == 5  # no zero is stored
    assert stack.owners.tolist() == [0, 0, 1]
    np.testing.assert_allclose(stack.weights, [0.375, 1.125, 1.5])  # the size of the row of zeros counts for nothing
    kept = stack_prototypes([one, sent([[NAN, 2.0, NAN]], [10.0])], zeros_observed=True)
    assert kept.cells.nnz == 8
    np.testing.assert_allclose(kept.weights, [2 / 12, 16 / 12, 0.5, 2.0])


def cut_off(instead: float) -> dict[str, Sent]:
    """Prototypes of three entities with some cells, and each one's last row, replaced."""
    all_sent = entities(3)
    for place, one in enumerate(all_sent.values()):
        one.centres[place, 2:6] = one.centres[3] = instead
    return all_sent


def test_of_ratings_a_zero_is_a_number_that_was_not_released() -> None:
    """For factors and influence alike."""
    zeros, gaps = cut_off(0.0), cut_off(NAN)
    shared = shared_items(zeros, HOW)
    np.testing.assert_array_equal(shared, shared_items(gaps, HOW))
    np.testing.assert_array_equal(shared, HOW.of([zeros[name] for name in sorted(zeros)]))
    assert influence(zeros, shared, HOW) == influence(gaps, shared, HOW)
    nothing = {"a": sent(np.zeros((2, 4)), [5.0, 5.0]), "b": sent(np.zeros((2, 4)), [5.0, 5.0])}
    assert not shared_items(nothing, HOW).any()


def test_of_counts_a_released_zero_is_a_number() -> None:
    zeros, gaps = cut_off(0.0), cut_off(NAN)
    counts = Factorisation(rank=2, seed=7, ridge=0.01, zeros_observed=True)
    assert counts.stack(list(zeros.values())).cells.shape[0] == 12
    assert counts.stack(list(gaps.values())).cells.shape[0] == 9  # a row without any number is padding still
    assert not np.allclose(shared_items(zeros, counts), shared_items(zeros, HOW))


def test_ratings_come_back_from_prototypes_with_zeros_in_them() -> None:
    """A table of rank 1 with two cells cut off at 0: taken as ratings of 0, they would draw their items down."""
    table = np.outer([2.0, 3.0, 4.0, 5.0], [1.0, 0.8, 0.6])
    cut = table.copy()
    cut[0, 1] = cut[2, 2] = 0.0
    ratings = Factorisation(rank=1, seed=1, ridge=0.0)
    found = shared_items({"a": sent(cut, np.ones(4))}, ratings).ravel()
    np.testing.assert_allclose(found / found[0], [1.0, 0.8, 0.6], rtol=1e-6)
    counts = Factorisation(rank=1, seed=1, ridge=0.0, zeros_observed=True)
    drawn = shared_items({"a": sent(cut, np.ones(4))}, counts).ravel()
    assert drawn[2] / drawn[0] < 0.5


def test_by_default_every_entity_weighs_the_same_and_its_rows_by_their_sizes() -> None:
    rows = np.ones((2, 3))
    stack = stack_prototypes(
        [sent(rows, [30.0, 10.0]), sent(rows, [1e9, 1e9]), sent(rows, [-4.0, 6.0]), sent(rows, [-1.0, -2.0])],
        zeros_observed=False,
    )
    assert stack.weights.tolist() == [1.5, 0.5, 1.0, 1.0, 0.0, 2.0, 1.0, 1.0]
    assert stack.weights.sum() == len(stack.weights)
    absurd = stack_prototypes(
        [sent(rows, [1e308, 1e308]), sent(rows, [30.0, 10.0])], zeros_observed=False, most_weight=0.75
    )
    np.testing.assert_allclose(absurd.weights, [1.5, 1.5, 0.75, 0.25])


def test_an_entity_may_have_more_weight_where_the_manifest_says_so() -> None:
    np.testing.assert_allclose(weight_parts(np.array([50.0, 30.0, 20.0]), 1.0), [0.5, 0.3, 0.2])
    np.testing.assert_allclose(weight_parts(np.array([50.0, 30.0, 20.0]), 0.4), [0.4, 0.36, 0.24])
    np.testing.assert_allclose(weight_parts(np.array([80.0, 18.0, 2.0]), 0.4), [0.4, 0.4, 0.2])  # cut twice
    np.testing.assert_allclose(weight_parts(np.array([5.0, 0.0, 0.0]), 0.5), [0.5, 0.25, 0.25])
    np.testing.assert_allclose(weight_parts(np.array([5.0, 1.0, 0.0])), [1 / 3] * 3)
    np.testing.assert_allclose(
        weight_parts(np.array([5.0, 1.0]), 0.1), [0.5, 0.5]
    )  # others dropped out: all is shared out
    np.testing.assert_allclose(weight_parts(np.zeros(4), 0.9), [0.25] * 4)
    for most in (0.0, -1.0, 1.5, NAN):
        with pytest.raises(InvalidParameter):
            weight_parts(np.ones(3), most)


def test_no_entity_has_more_than_its_part_whatever_sizes_it_states() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        count = int(rng.integers(2, 9))
        sizes, most = 10.0 ** rng.uniform(-3, 9, count), float(rng.uniform(1 / count, 1.0))
        parts = weight_parts(sizes, most)
        assert parts.sum() == pytest.approx(1.0)
        assert parts.max() <= most * (1 + 1e-9)
        assert (np.diff(parts[np.argsort(sizes)]) >= -1e-12).all()  # larger entities never weigh less


def test_shared_items_are_those_of_the_weighted_stack_in_any_order_of_arrival() -> None:
    all_sent = entities(3)
    shared = shared_items(all_sent, HOW)
    assert np.array_equal(shared, shared_items(dict(reversed(all_sent.items())), HOW))
    stack = stack_prototypes(list(all_sent.values()), zeros_observed=False)
    direct = factorise(
        stack.cells.toarray(), 2, ridge=0.01, rng=np.random.default_rng(7), row_weights=stack.weights, epochs=60
    )
    np.testing.assert_allclose(shared, direct.items, rtol=1e-9)
    assert not np.allclose(shared, shared_items(all_sent, Factorisation(rank=2, seed=8, ridge=0.01)))


def test_an_item_that_nobody_released_gets_zeros_unless_zeros_are_observed() -> None:
    all_sent = entities(2)
    for one in all_sent.values():
        one.centres[:, 3] = NAN
        one.centres[0, 5] = NAN
    shared = shared_items(all_sent, HOW)
    assert np.flatnonzero(~shared.any(axis=1)).tolist() == [3]
    filled = {name: sent(np.nan_to_num(one.centres), one.sizes) for name, one in all_sent.items()}
    observed = Factorisation(rank=2, seed=7, ridge=0.01, zeros_observed=True)
    np.testing.assert_allclose(shared_items(all_sent, observed), shared_items(filled, observed), rtol=1e-9)
    assert not np.allclose(shared, shared_items(filled, observed))


def test_a_release_without_a_number_gives_zeros() -> None:
    nothing = {"a": sent(np.full((2, 4), NAN), [0.0, 0.0]), "b": sent(np.full((2, 4), NAN), [0.0, 0.0])}
    shared = shared_items(nothing, HOW)
    assert shared.tolist() == np.zeros((4, 2)).tolist()
    assert influence(nothing, shared, HOW) == {"a": 0.0, "b": 0.0}


def test_one_that_differs_from_the_others_has_the_most_influence() -> None:
    rng = np.random.default_rng(1)
    all_sent = entities(6)
    all_sent["odd"] = sent(5.0 * (rng.random((4, 9)) < 0.5), [1e6] * 4)
    counts = Factorisation(rank=2, seed=7, ridge=0.01, zeros_observed=True)
    moved = influence(all_sent, shared_items(all_sent, counts), counts)
    assert list(moved) == sorted(all_sent)
    others = [value for name, value in moved.items() if name != "odd"]
    assert moved["odd"] > 3.0 * max(others)
    heavy = Factorisation(rank=2, seed=7, ridge=0.01, zeros_observed=True, most_weight=1.0)
    unlimited = influence(all_sent, shared_items(all_sent, heavy), heavy)
    assert unlimited["odd"] > 1.1 * moved["odd"]  # the limit does limit


def test_an_entity_that_says_what_another_says_has_no_influence() -> None:
    (one,) = entities(1).values()
    moved = influence({"a": one, "b": one}, shared_items({"a": one, "b": one}, HOW), HOW)
    assert max(moved.values()) < 1e-9


def test_influence_needs_two_entities() -> None:
    alone = entities(1)
    with pytest.raises(InvalidParameter):
        influence(alone, shared_items(alone, HOW), HOW)


def test_prototypes_that_do_not_fit_together_are_refused() -> None:
    good = sent(np.ones((2, 3)), [1.0, 1.0])
    for bad in (sent(np.ones((2, 4)), [1.0, 1.0]), sent(np.ones((2, 3)), [1.0]), sent(np.ones((2, 3)), [1.0, NAN]),
                sent(np.ones(3), [1.0, 1.0, 1.0]), sent(np.full((2, 3), np.inf), [1.0, 1.0])):  # fmt: skip
        with pytest.raises(InvalidInput):
            shared_items({"a": good, "b": bad}, HOW)
    with pytest.raises(InvalidInput):
        shared_items({}, HOW)
