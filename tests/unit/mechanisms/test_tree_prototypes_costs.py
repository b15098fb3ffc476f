"""Prototypes by a tree: what one user can change, what that costs, and that decisions read noisy numbers only."""

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.guarantees.concentrated import epsilon_of_rho, rho_for
from tacit.mechanisms import FeatureBox, ReplayedNoise, TreePrototypes
from tacit.mechanisms.inputs import RADIUS_STEPS as STEPS
from tacit.mechanisms.tree_prototypes import NoisyAnswers, Tree, WholeRows, grow
from tests.unit.mechanisms.trees import BOX, DELTA, PROFILES, groups, tree


class Exact(NoisyAnswers):
    """Answers without noise, and what was asked. For tests of what one row changes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    def counts(self, *question: Any) -> Any:
        self.asked.append(("counts", question))
        return super().counts(*question)

    def sums(self, *question: Any) -> Any:
        self.asked.append(("sums", question))
        return super().sums(*question)

    def clusters(self, *question: Any) -> Any:
        self.asked.append(("clusters", question))
        return super().clusters(*question)

    def _noisy(self, what: str, exact: Any, variance: Fraction) -> Any:
        self.given.append((what, exact))
        self.variance = variance
        return exact


def exact(mechanism: TreePrototypes, rows: Any) -> Exact:
    whole = mechanism.bounds.bounded(rows, ReplayedNoise(1), l2=True)
    return Exact(mechanism, WholeRows(whole), ReplayedNoise(1))


def replayed(given: list[tuple[str, Any]], radius: int, rows: Any = None) -> Any:
    """Something that gives stored answers to the same questions, with or without rows behind it."""
    left = iter(given)

    def counts(level: int, group: Any, groups: int) -> Any:
        what, answer = next(left)
        assert (what, answer.shape) == (f"counts {level}", (groups,))
        return answer

    def sums(_: Tree) -> Any:
        what, answer = next(left)
        assert what == "sums"
        return answer

    def clusters(_: Any) -> Any:
        what, answer = next(left)
        assert what == "clusters"
        return answer[:, 0] / radius, answer[:, 1:]

    return SimpleNamespace(counts=counts, sums=sums, clusters=clusters, rows=rows)


# --- the tree


def scripted(answers: dict[int, list[int]], seen: list[tuple[int, int]]) -> Any:
    def noisy(level: int, group: Any, count: int) -> Any:
        seen.append((level, count))
        assert set(group.tolist()) <= set(range(-1, count))
        return np.array(answers[level])

    return noisy


def test_nodes_split_by_noisy_counts_alone() -> None:
    seen: list[tuple[int, int]] = []
    grown = grow(scripted({0: [100], 1: [70, 30], 2: [40, 28], 3: [9, 31]}, seen), 3, lambda users: users / 10, 3.5)
    # level 1 splits 100 at minimum 10; at level 2 the node of 30 is below 35; at level 3 a half has 9 and the node of 40 stays
    assert seen == [(0, 1), (1, 2), (2, 2), (3, 2)]
    assert grown.counts.tolist() == [40.0, 30.0, 28.0]
    assert grown.leaf.tolist() == [0, 0, 2, 2, 1, 1, 1, 1]


def test_a_node_that_one_plane_does_not_split_is_tried_by_the_next() -> None:
    seen: list[tuple[int, int]] = []
    grown = grow(scripted({0: [100], 1: [97, 3], 2: [60, 42]}, seen), 2, lambda users: 10.0, 7.0)
    assert grown.counts.tolist() == [60.0, 42.0]
    assert grown.leaf.tolist() == [0, 1, 0, 1]


def test_a_root_below_the_minimum_is_the_only_leaf_and_asks_nothing_more() -> None:
    seen: list[tuple[int, int]] = []
    grown = grow(scripted({0: [-12]}, seen), 12, lambda users: 5.0)
    assert seen == [(0, 1)]
    assert grown.counts.tolist() == [-12.0]
    assert not grown.leaf.any()


def test_the_minimum_is_of_the_noisy_number_of_users_and_above_the_noise() -> None:
    mechanism = tree(bounds=FeatureBox.cube(100), k=8)
    count, sums = (math.sqrt(variance) for variance in mechanism.variances[:2])
    assert mechanism.minimum(10**9) == pytest.approx(10 * 10 * sums / STEPS)
    assert mechanism.minimum(8000) == pytest.approx(500.0)
    assert mechanism.minimum(-50) == pytest.approx(3 * count)


# --- what one user can change, and what that costs


@pytest.mark.parametrize("lloyd", [0, 1, 2, 5])
@pytest.mark.parametrize("depth", [1, 12, 16])
@pytest.mark.parametrize("bounds", [BOX, PROFILES], ids=["box", "profiles"])
def test_shares_of_rho_add_up_to_it_exactly(lloyd: int, depth: int, bounds: Any) -> None:
    mechanism = tree(lloyd=lloyd, depth=depth, bounds=bounds)
    level, sums, step = mechanism.rhos
    assert (depth + 1) * level + sums + lloyd * step == Fraction(rho_for(1.0, DELTA))
    squares = [1, bounds.l2_squared_steps, bounds.l2_squared_steps + bounds.l2_steps**2]
    costs = [Fraction(square) / (2 * variance) for square, variance in zip(squares, mechanism.variances, strict=False)]
    times = [depth + 1, 1, lloyd]
    assert sum(cost * number for cost, number in zip(costs, times, strict=False)) == Fraction(mechanism.rho)


@pytest.mark.parametrize(("epsilon", "rho"), [(0.1, 0.000321), (1.0, 0.024356), (4.0, 0.311065), (10.0, 1.539279)])
def test_rho_is_what_epsilon_and_delta_afford(epsilon: float, rho: float) -> None:
    mechanism = tree(epsilon)
    assert mechanism.rho == pytest.approx(rho, abs=1e-6)
    assert epsilon_of_rho(mechanism.rho, DELTA) <= epsilon
    assert epsilon_of_rho(mechanism.rho * (1 + 1e-9), DELTA) > epsilon


def cost(mechanism: TreePrototypes, rows: Any, more: Any) -> Fraction:
    """The rho of one further row: the same questions to both tables, each change over its noise."""
    here, there = exact(mechanism, rows), exact(mechanism, np.concatenate([rows, more]))
    mechanism.compute(here)  # type: ignore[arg-type]
    total = Fraction(0)
    for (what, question), (_, before) in zip(list(here.asked), list(here.given), strict=True):
        getattr(there, what)(*question)
        change = (there.given[-1][1] - before).astype(object)
        total += Fraction(int((change * change).sum())) / (2 * there.variance)
    return total


def test_no_row_costs_more_than_rho_and_one_of_full_length_costs_all_of_it(rng: np.random.Generator) -> None:
    mechanism = tree(8.0, depth=2)
    rows = 0.3 * np.linalg.pinv(mechanism.planes).T[:, :2] @ np.array([[1, 1, -1, -1], [1, -1, 1, -1]]) * 1e3
    rows = np.repeat(rows.T, 400, axis=0)  # as many on every side: both levels are asked
    corner = np.array([[1.0, -1.0, 1.0]])
    here = exact(mechanism, rows)
    mechanism.compute(here)  # type: ignore[arg-type]
    assert [what for what, _ in here.given] == ["counts 0", "counts 1", "counts 2", "sums", "clusters", "clusters"]
    full = cost(mechanism, rows, corner)
    assert full <= Fraction(mechanism.rho)
    assert float(full / Fraction(mechanism.rho)) > 1.0 - 1e-4  # the corner is (37837, ...) steps: a hair below 2^16
    for scale in (0.0, 0.1, 1.0, 1e9):
        row = rng.normal(size=(1, 3)) * scale
        assert cost(mechanism, rows, row) <= Fraction(mechanism.rho)


def test_an_axis_of_full_length_costs_exactly_rho() -> None:
    mechanism = tree(8.0, depth=1, bounds=FeatureBox.cube(2, -1.0, 1.0, 1.0))
    rows = np.repeat(np.array([[0.9, 0.1], [-0.9, -0.1]]), 400, axis=0)
    assert cost(mechanism, rows, np.array([[1.0, 0.0]])) == Fraction(mechanism.rho)


def test_profiles_cost_no_more_than_rho_either(rng: np.random.Generator) -> None:
    mechanism = tree(8.0, bounds=PROFILES, depth=3)
    rows = 5.0 * (rng.random((900, 6)) < 0.4)
    for more in ([[5.0] * 6], [[0.0] * 6], [[4.0, 4.0, 4.0, 0.0, 0.0, 0.0]]):
        assert cost(mechanism, rows, np.array(more)) <= Fraction(mechanism.rho)


def test_a_twin_whose_leaf_sums_assume_a_shorter_row_is_caught() -> None:
    class Shorter(TreePrototypes):
        @property
        def variances(self) -> Any:  # type: ignore[override]
            level, sums, *rest = TreePrototypes(self.bounds, self.k, self.epsilon, self.delta, self.depth).variances
            return (level, sums / 2, *rest)  # a radius of R / sqrt 2

    twin = Shorter(FeatureBox.cube(2, -1.0, 1.0, 1.0), 4, 8.0, DELTA, 1)
    rows = np.repeat(np.array([[0.9, 0.1], [-0.9, -0.1]]), 400, axis=0)
    assert cost(twin, rows, np.array([[1.0, 0.0]])) > Fraction(twin.rho)


def test_nothing_is_answered_twice_or_beyond_what_was_paid_for() -> None:
    mechanism = tree(depth=2, lloyd=1)
    answers = mechanism.ask([], ReplayedNoise(2))
    everybody = np.zeros(4, dtype=np.int64)
    answers.counts(0, everybody, 1)
    answers.clusters(np.zeros((1, 3), dtype=np.int64))
    for again in (
        lambda: answers.counts(0, everybody, 1),
        lambda: answers.counts(3, everybody, 1),
        lambda: answers.clusters(np.zeros((1, 3), dtype=np.int64)),
    ):
        with pytest.raises(InvalidParameter, match="paid for"):
            again()


# --- decisions read noisy numbers only


def outcome(mechanism: TreePrototypes, answers: Any) -> tuple[Any, Any]:
    made = mechanism.compute(answers)
    return made.centres.tolist(), made.sizes.tolist()


@pytest.mark.parametrize("bounds", [BOX, PROFILES], ids=["box", "profiles"])
def test_prototypes_follow_from_the_noisy_answers_without_any_row(bounds: Any, rng: np.random.Generator) -> None:
    mechanism = tree(2.0, bounds=bounds)
    rows = groups(rng, 4000, bounds.items)
    answers = mechanism.ask(rows, ReplayedNoise(7))
    made = outcome(mechanism, answers)
    assert len(answers.given) > 4
    assert np.array_equal(
        np.array(outcome(mechanism, replayed(answers.given, bounds.l2_steps))[0]), np.array(made[0]), equal_nan=True
    )
    assert outcome(mechanism, replayed(answers.given, bounds.l2_steps))[1] == made[1]


def test_a_twin_whose_minimum_reads_the_exact_number_of_users_is_caught(rng: np.random.Generator) -> None:
    class Reads(TreePrototypes):
        def compute(self, answers: Any) -> Any:
            object.__setattr__(self, "users", answers.rows.users)
            return super().compute(answers)

        def minimum(self, users: int) -> float:
            return self.users / (2 * self.k)  # type: ignore[attr-defined, no-any-return]

    rows = groups(rng, 4000)
    for kind, same in ((TreePrototypes, True), (Reads, False)):
        mechanism = kind(BOX, 4, 4.0, DELTA)
        answers = mechanism.ask(rows, ReplayedNoise(7))
        made = outcome(mechanism, answers)
        try:
            other = outcome(mechanism, replayed(answers.given, STEPS, rows=WholeRows(BOX.bounded(rows[:1500]))))
        except (StopIteration, AssertionError):
            other = ([], [])
        assert (made == other) is same, kind


def test_the_order_of_rows_changes_nothing(rng: np.random.Generator) -> None:
    rows = groups(rng, 1000)
    mechanism = tree(2.0)
    here, there = (mechanism.release(table, ReplayedNoise(4)).value for table in (rows, rows[::-1]))
    assert (here.centres == there.centres).all()
    assert (here.sizes == there.sizes).all()
