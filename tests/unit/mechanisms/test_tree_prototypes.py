"""Prototypes by a tree: whole-number reading of rows, what one user can change, and that decisions read noisy numbers only."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.guarantees.zcdp import epsilon_of_rho, rho_for
from tacit.mechanisms import SYSTEM_NOISE, FeatureBox, ReplayedNoise, TreePrototypes
from tacit.mechanisms import hyperplane_tree as planes
from tacit.mechanisms.feature_box import STEPS
from tacit.mechanisms.hyperplane_tree import Tree, WholeRows, directions, grow
from tacit.mechanisms.profile_bounds import ProfileBounds
from tacit.mechanisms.tree_prototypes import NoisyAnswers
from tests.contracts.mechanism import SECRET

DELTA = 1e-6
BOX = FeatureBox.cube(3, -1.0, 1.0)
PROFILES = ProfileBounds(6, 3, 5.0, l2_bound=7.0)


def tree(epsilon: float = 1.0, bounds: Any = BOX, k: int = 4, **more: Any) -> TreePrototypes:
    return TreePrototypes(bounds, k, epsilon, DELTA, **more)


def groups(rng: np.random.Generator, users: int, dimension: int = 3, spread: float = 0.05) -> NDArray[np.float64]:
    """Rows around the corners (.7, .7, ...), (-.7, .7, ...), ..."""
    signs = 1.0 - 2.0 * ((np.arange(4)[:, None] >> np.arange(dimension)) & 1)
    return 0.7 * signs[rng.integers(4, size=users)] + rng.normal(scale=spread, size=(users, dimension))


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


# --- public hyperplanes


def test_directions_are_whole_numbers_that_the_seed_alone_decides() -> None:
    drawn = directions(0, 12, 500)
    assert drawn.shape == (500, 12)
    assert (drawn == np.rint(drawn)).all()
    assert np.abs(drawn).max() <= 512
    assert abs(drawn.mean()) < 10  # four bytes from -128 to 127: mean -2, deviation 148
    assert 140 < drawn.std() < 156
    assert (directions(0, 12, 500) == drawn).all()
    assert (directions(1, 12, 500) != drawn).mean() > 0.9
    assert np.linalg.matrix_rank(drawn) == 12


def test_directions_stay_the_same_for_ever() -> None:
    assert directions(0, 2, 3).T.tolist() == [[-60.0, 44.0, -178.0], [49.0, 167.0, 9.0]]


# --- rows as whole numbers


def slow_row(box: FeatureBox, row: Any) -> list[int]:
    centre, low, high = np.array(box.centre), np.array(box.lower), np.array(box.upper)
    cells = []
    for value, at, least, most in zip(row, centre, low, high, strict=True):
        away = min(max(float(value), least), most) - at if math.isfinite(value) else 0.0
        cells.append(max(-(1 << 24), min(1 << 24, round(away * (STEPS / box.l2)))))
    squares = sum(cell * cell for cell in cells)
    if squares <= STEPS * STEPS:
        return cells
    norm = math.isqrt(squares - 1) + 1
    return [(1 if cell > 0 else -1) * (abs(cell) * STEPS // norm) for cell in cells]


@pytest.mark.parametrize(
    "box",
    [BOX, FeatureBox.cube(3, 0.0, 1.0, 0.3), FeatureBox((0.0, -9.0, 2.0), (1.0, 40.0, 2.5), 3.0, (0.25, 0.0, 2.5))],
    ids=["cube", "short radius", "centre"],
)
def test_a_row_is_cut_by_itself_in_whole_numbers(box: FeatureBox, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(300, 3)) * rng.choice([1e-7, 0.2, 1.0, 60.0, 1e300], size=(300, 1))
    rows[3], rows[4, 0], rows[5, 2] = math.nan, math.inf, -math.inf
    whole = box.bounded(rows)
    assert whole.tolist() == [slow_row(box, row) for row in rows]
    assert max(sum(cell * cell for cell in row) for row in whole.tolist()) <= STEPS * STEPS
    assert all((box.bounded(rows[[at]])[0] == whole[at]).all() for at in range(40))


def test_a_row_at_the_farthest_corner_has_the_whole_radius_and_none_has_more() -> None:
    whole = FeatureBox.cube(4, 0.0, 2.0).bounded(np.array([[0.0, 2.0, 0.0, 2.0]]))
    assert whole.tolist() == [[-STEPS // 2, STEPS // 2, -STEPS // 2, STEPS // 2]]
    short = FeatureBox.cube(2, -1.0, 1.0, 1.0).bounded(np.array([[1.0, 0.0], [1.0, 1.0], [9.0, 9.0]]))
    assert short.tolist() == [[STEPS, 0], [46340, 46340], [46340, 46340]]  # floor(2^16 / sqrt 2)


def test_rows_that_are_no_table_are_refused_without_being_shown() -> None:
    for odd in ([[1.0, 2.0]], [1.0, 2.0, 3.0], [[SECRET, 1.0, 2.0], [1.0]], np.zeros((2, 2, 3)), "abc"):
        with pytest.raises(InvalidInput) as refused:
            tree().release(odd)
        assert str(SECRET) not in str(refused.value)


@pytest.mark.parametrize("radius", [5e-324, 9e-291, 2e290, 1e308])
def test_a_radius_without_steps_is_refused(radius: float) -> None:
    with pytest.raises(InvalidParameter):
        FeatureBox.cube(3, 0.0, 1.0, radius)


def test_a_box_of_too_many_users_is_refused_by_its_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="fewer than"):
        BOX.bounded(np.broadcast_to(0.0, (1 << 28, 3)))
    monkeypatch.setattr("tacit.mechanisms.feature_box.MOST_USERS", 4)
    assert BOX.bounded(np.zeros((3, 3))).shape == (3, 3)
    for rows in (np.zeros((4, 3)), [[0.0, 0.0, 0.0]] * 4):
        with pytest.raises(InvalidInput, match="fewer than"):
            BOX.bounded(rows)


def test_a_box_tells_nobody_of_a_cell_where_numpy_raises() -> None:
    rows = np.array([[5e-324, 1e308, -1e308], [math.nan, math.inf, 1e-310], [1e-320, 0.5, -0.5]])
    for box in (BOX, FeatureBox.cube(3, -1e308, 1e308, 1e290), FeatureBox.cube(3, -1.0, 1.0, 1e-290)):
        quiet = box.bounded(rows)
        with np.errstate(all="raise"):
            for form in (rows, rows.tolist(), rows.astype(np.longdouble)):
                assert (box.bounded(form) == quiet).all()


def test_objects_that_are_numbers_are_taken() -> None:
    assert (BOX.bounded([[1, 0, None]]) == BOX.bounded(np.array([[1.0, 0.0, math.nan]]))).all()
    assert BOX.bounded([[1, 0, 10**400]]).shape == (1, 3)
    # a text in one cell is one user's: the table is not refused for it
    assert (BOX.bounded([["x", 1, 0.5]]) == BOX.bounded(np.array([[math.nan, 1.0, 0.5]]))).all()
    table = np.array([[0.5, 0.0, -0.2], [0.0, 0.0, 1.0]])
    assert (BOX.bounded(sparse.csr_array(table)) == BOX.bounded(table)).all()


@pytest.mark.parametrize("dimension", [1, 7, 64])
def test_sides_and_nearest_centres_are_exact_for_each_row_alone(dimension: int, rng: np.random.Generator) -> None:
    box = FeatureBox.cube(dimension, -1.0, 1.0)
    rows = box.bounded(rng.normal(size=(203, dimension)))
    rows[5] = 0
    normal, centres = directions(3, 9, dimension), rng.integers(-STEPS, STEPS, size=(17, dimension)) // dimension
    centres[11] = centres[4]  # as near: the first one has it
    whole = WholeRows(rows)
    codes, near = whole.codes(normal), whole.nearest(centres)
    big, plain = rows.astype(object), normal.astype(np.int64).astype(object)
    assert codes.tolist() == [int("".join("1" if one >= 0 else "0" for one in row), 2) for row in big @ plain]
    far = [[sum((a - b) ** 2 for a, b in zip(row, c, strict=True)) for c in centres.astype(object)] for row in big]
    assert near.tolist() == [row.index(min(row)) for row in far]
    assert codes[5] == 2**9 - 1
    assert 11 not in near
    for some in ([0], [5, 9], [202], list(range(1, 203))):  # others beside a row change nothing
        part = WholeRows(rows[some])
        assert (part.codes(normal) == codes[some]).all()
        assert (part.nearest(centres) == near[some]).all()


@pytest.mark.parametrize("cells", [1, 40, 1 << 18])
def test_sparse_and_dense_rows_give_the_same_in_stretches_of_any_length(
    cells: int, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    rows = rng.integers(-STEPS, STEPS, size=(57, 8)) * (rng.random((57, 8)) < 0.4) // 8
    group, normal = rng.integers(5, size=57), directions(0, 6, 8)
    expected = np.stack([rows[group == one].sum(axis=0) for one in range(6)])  # the sixth is nobody's
    centres = rng.integers(-STEPS, STEPS, size=(4, 8))
    here = WholeRows(rows.astype(np.int32))
    codes, near = here.codes(normal), here.nearest(centres)
    monkeypatch.setattr(planes, "_CELLS", cells)
    for table in (rows.astype(np.int32), sparse.csr_array(rows)):
        whole = WholeRows(table)
        assert (whole.sums(group, 6) == expected).all()
        assert (whole.codes(normal) == codes).all()
        assert (whole.nearest(centres) == near).all()


def test_sums_beyond_what_single_precision_holds_are_exact() -> None:
    rows = np.full((5000, 1), STEPS - 1, dtype=np.int32)
    assert WholeRows(rows).sums(np.zeros(5000, dtype=np.int64), 1).tolist() == [[5000 * (STEPS - 1)]]


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
    mechanism.computed(here)  # type: ignore[arg-type]
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
    mechanism.computed(here)  # type: ignore[arg-type]
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
    answers = mechanism.asked([], ReplayedNoise(2))
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
    made = mechanism.computed(answers)
    return made.centres.tolist(), made.sizes.tolist()


@pytest.mark.parametrize("bounds", [BOX, PROFILES], ids=["box", "profiles"])
def test_prototypes_follow_from_the_noisy_answers_without_any_row(bounds: Any, rng: np.random.Generator) -> None:
    mechanism = tree(2.0, bounds=bounds)
    rows = groups(rng, 4000, bounds.items)
    answers = mechanism.asked(rows, ReplayedNoise(7))
    made = outcome(mechanism, answers)
    assert len(answers.given) > 4
    assert np.array_equal(
        np.array(outcome(mechanism, replayed(answers.given, bounds.l2_steps))[0]), np.array(made[0]), equal_nan=True
    )
    assert outcome(mechanism, replayed(answers.given, bounds.l2_steps))[1] == made[1]


def test_a_twin_whose_minimum_reads_the_exact_number_of_users_is_caught(rng: np.random.Generator) -> None:
    class Reads(TreePrototypes):
        def computed(self, answers: Any) -> Any:
            object.__setattr__(self, "users", answers.rows.users)
            return super().computed(answers)

        def minimum(self, users: int) -> float:
            return self.users / (2 * self.k)  # type: ignore[attr-defined, no-any-return]

    rows = groups(rng, 4000)
    for kind, same in ((TreePrototypes, True), (Reads, False)):
        mechanism = kind(BOX, 4, 4.0, DELTA)
        answers = mechanism.asked(rows, ReplayedNoise(7))
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


# --- releases


def test_planted_groups_are_found(rng: np.random.Generator) -> None:
    rows = groups(rng, 8000)
    made = tree(4.0).release(rows).value
    assert made.centres.shape == (4, 3)
    signs = {tuple(np.sign(centre)) for centre in made.centres}
    assert len(signs) == 4
    assert np.abs(np.abs(made.centres) - 0.7).max() < 0.05
    assert np.abs(made.sizes - 2000).max() < 400


def test_signed_and_non_negative_profiles_keep_to_their_bounds(rng: np.random.Generator) -> None:
    rows = sparse.csr_array(5.0 * (rng.random((3000, 6)) < 0.4))
    plain = tree(0.2, bounds=PROFILES).release(rows).value
    assert np.nanmin(plain.centres) >= 0.0
    assert np.nanmax(plain.centres) <= 5.0
    signed = tree(0.2, bounds=replace(PROFILES, signed=True)).release(-rows).value
    assert np.nanmin(signed.centres) < 0.0


@pytest.mark.parametrize(
    "rows", [[], np.zeros(0), np.zeros((0, 3)), np.zeros((1, 3))], ids=["none", "empty", "no rows", "one"]
)
@pytest.mark.parametrize("lloyd", [0, 2])
def test_an_entity_without_users_releases_all_the_same(rows: Any, lloyd: int) -> None:
    made = tree(lloyd=lloyd).release(rows).value
    assert made.centres.shape == (4, 3)
    assert made.sizes.shape == (4,)
    told = ~np.isnan(made.centres).any(axis=1)
    assert told[0]
    assert (made.sizes[~told] == 0.0).all()
    assert np.abs(made.centres[told]).max() <= 1.0


def test_more_prototypes_than_leaves_are_left_out_and_few_are_made_of_many(rng: np.random.Generator) -> None:
    rows = groups(rng, 4000)
    many, one = tree(8.0, k=500, lloyd=0).release(rows).value, tree(8.0, k=1).release(rows).value
    told = ~np.isnan(many.centres).any(axis=1)
    assert 4 <= told.sum() < 400
    assert abs(many.sizes.sum() - 4000) < 400
    assert one.centres.shape == (1, 3)
    assert abs(one.sizes[0] - 4000) < 100
    assert np.abs(one.centres[0] - [0.0, 0.0, 0.7]).max() < 0.1


def test_a_release_carries_the_guarantee_and_replayed_noise_promises_nothing() -> None:
    mechanism = tree(3.0)
    promised = mechanism.release([], SYSTEM_NOISE).guarantee
    assert promised == mechanism.guarantee
    assert (promised.epsilon, promised.delta, promised.protects, promised.proof) == (
        3.0,
        DELTA,
        ONE_USER,
        "tree-prototypes",
    )
    assert promised.loss is not None
    assert (promised.loss.kind, promised.loss.value) == (LossKind.ZCDP, mechanism.rho)
    assert mechanism.release([], ReplayedNoise(1)).guarantee.promises_nothing


def test_two_releases_differ() -> None:
    assert (tree().release([]).value.sizes != tree().release([]).value.sizes).any()


class Unread:
    """A table that must not be looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0}, {"k": 1.5}, {"epsilon": 0.0}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": -1.0},
        {"delta": 0.0}, {"delta": 1.0}, {"delta": math.nan}, {"depth": 0}, {"depth": 17}, {"lloyd": -1}, {"seed": -1},
        {"bounds": None}, {"bounds": 3}, {"bounds": ProfileBounds(1 << 22, 1 << 20, 1.0)},
    ],
    ids=str,
)  # fmt: skip
def test_public_parameters_are_refused_before_rows_are_read(wrong: dict[str, Any]) -> None:
    given = {"bounds": BOX, "k": 4, "epsilon": 1.0, "delta": DELTA} | wrong
    with pytest.raises(InvalidParameter):
        TreePrototypes(**given).release(Unread())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"lower": ()}, {"upper": (1.0,)}, {"lower": (1.0, 1.0)}, {"lower": (math.nan, 0.0)}, {"upper": (math.inf, 1.0)},
        {"l2_bound": 0.0}, {"l2_bound": math.inf}, {"centre": (0.5,)}, {"centre": (0.5, 1.5)}, {"lower": "00"}, {"lower": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_box_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        FeatureBox(**({"lower": (0.0, 0.0), "upper": (1.0, 1.0)} | wrong))


def test_nothing_private_is_shown() -> None:
    mechanism = tree()
    answers = mechanism.asked(np.full((3, 3), 0.4242), ReplayedNoise(1))
    assert "0.4242" not in repr(answers)
    assert "rows" not in repr(answers)
