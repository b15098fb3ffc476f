"""Prototypes by a grid: what is spent, that rows stay apart, the choice among trials, and the same path for everybody."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.mechanisms import (
    SYSTEM_NOISE,
    GridPrototypes,
    GridShares,
    LocalSwaps,
    PrivatePartition,
    ProfileBounds,
    Prototypes,
    ReplayedNoise,
    SparseRecovery,
)
from tacit.mechanisms.grid_prototypes import GridPoints
from tacit.mechanisms.inputs import VALUE_STEPS as STEPS
from tacit.mechanisms.partition import HALF_SIDE
from tacit.mechanisms.selection import gumbel_choice
from tacit.models.prototypes import gaussian_projection
from tests.contracts.mechanism import ALARM, chi_square

BOUNDS = ProfileBounds(6, 3, 2.0)


def blobs(users: int, items: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = np.eye(items)[:3] * 2.0
    return np.abs(middles[rng.integers(3, size=users)] + rng.normal(size=(users, items)) * 0.02)


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.pi, 1000.0])
def test_the_parts_add_up_to_epsilon_and_never_to_more(trials: int, epsilon: float) -> None:
    for shares in (GridShares(), GridShares(0.3, 0.1, 0.1, 0.3, 0.1, 0.1), GridShares(0.1, 0.1, 0.1, 0.1, 0.6 - 1e-10)):
        spent = shares.of(epsilon, trials)
        assert spent.total <= Fraction(epsilon)
        assert float(spent.total) == pytest.approx(epsilon, rel=1e-12)
        by_hand = trials * (spent.candidates + spent.swaps + spent.count + spent.select + spent.values) + spent.final
        assert by_hand == pytest.approx(epsilon, rel=1e-12)


def test_every_step_gets_its_share_divided_by_the_trials() -> None:
    one, three = GridShares().of(1.0, 1), GridShares().of(1.0, 3)
    assert (one.candidates, one.swaps, one.count, one.select, one.values, one.final) == pytest.approx(
        (0.1, 0.1, 0.05, 0.2, 0.55, 0.0)
    )
    assert [
        3 * part for part in (three.candidates, three.swaps, three.count, three.select, three.values)
    ] == pytest.approx([0.1, 0.1, 0.05, 0.2, 0.45])
    assert three.final == pytest.approx(0.1)
    assert GridShares(0.1, 0.1, 0.1, 0.1, 0.5, 0.1).of(1.0, 1).values == pytest.approx(0.6)  # nothing to choose among


def test_the_steps_are_built_with_what_they_may_spend() -> None:
    mechanism = GridPrototypes(BOUNDS, 4, 2.0, 5000, trials=3, repetitions=2)
    spent = mechanism.epsilons
    steps = mechanism.partition.epsilon * 2 + mechanism.local_swaps.epsilon + mechanism.recovery.epsilon
    assert 3 * steps + spent.final == pytest.approx(2.0, rel=1e-12)
    total = 3 * (2 * Fraction(mechanism.partition.epsilon) + Fraction(mechanism.local_swaps.epsilon))
    recovery = mechanism.recovery
    total += 3 * sum(Fraction(part) for part in (recovery.count, recovery.select, recovery.values))
    assert total + Fraction(spent.final) <= 2
    assert mechanism.guarantee.epsilon == 2.0


@pytest.mark.parametrize(
    ("shares", "trials"),
    [
        ((0.1, 0.1, 0.1, 0.1, 0.5), 1),
        ((0.2, 0.2, 0.2, 0.2, 0.3), 1),
        ((0.0, 0.2, 0.1, 0.2, 0.5), 1),
        ((0.2, 0.2, 0.2, 0.2, 0.3, -0.1), 1),
        ((0.2, 0.2, 0.2, 0.35, 0.05), 2),
        ((0.2, 0.2, 0.2, 0.2, 0.2, 0.0), 2),
        ((math.nan, 0.2, 0.2, 0.2, 0.2), 1),
    ],
)
def test_shares_that_cannot_be_spent_are_refused(shares: tuple[float, ...], trials: int) -> None:
    with pytest.raises(InvalidParameter):
        GridShares(*shares).of(1.0, trials)


def test_public_constants_follow_from_the_declared_number_of_users() -> None:
    mechanism = GridPrototypes(BOUNDS, 50, 1.0, 20_000)
    assert (mechanism.p, mechanism.depth, mechanism.swaps, mechanism.picked) == (4, 7, 20, 3)
    assert mechanism.recovery.least_users == 100.0
    few = GridPrototypes(BOUNDS, 5, 1.0, 2)
    assert (few.p, few.depth, few.swaps, few.recovery.least_users) == (2, 2, 5, 1.0)


class Untouchable:
    """Rows that must not be read."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": 1e-300},
        {"users": 0},
        {"p": 0},
        {"depth": 0},
        {"depth": 17},
        {"swaps": 0},
        {"trials": 0},
        {"picked": 0},
        {"picked": 7},
        {"repetitions": 0},
        {"seed": -1},
        {"trials": 2, "shares": GridShares(0.2, 0.2, 0.2, 0.35, 0.05)},
    ],
)
def test_parameters_are_refused_before_rows_are_read(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        GridPrototypes(**({"bounds": BOUNDS, "k": 2, "epsilon": 1.0, "users": 100} | wrong)).release(Untouchable())


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(InvalidInput):
        GridPrototypes(BOUNDS, 2, 1.0, 100).release(np.zeros((3, 5)))


@pytest.mark.parametrize("trials", [1, 3])
@pytest.mark.parametrize("users", [0, 1, 7])
@pytest.mark.parametrize("p", [None, 1, 64, 200])
def test_no_users_few_users_and_many_dimensions_take_the_same_path(trials: int, users: int, p: int | None) -> None:
    mechanism = GridPrototypes(
        BOUNDS, 9, 1.0, 1000, p=p, trials=trials, picked=2, repetitions=2
    )  # more centres than candidates
    release = mechanism.release(blobs(users), SYSTEM_NOISE)
    found = release.value
    assert release.guarantee == mechanism.guarantee
    assert found.centres.shape == (9, 6)
    assert (~np.isnan(found.centres)).sum(axis=1).tolist() == [2] * 9
    assert np.nanmin(found.centres) >= 0.0
    assert np.nanmax(found.centres) <= 2.0
    assert np.isfinite(found.sizes).all()


@pytest.mark.parametrize(("trials", "repetitions"), [(1, 1), (2, 1), (1, 3)])
def test_a_large_epsilon_finds_the_groups_of_users(trials: int, repetitions: int) -> None:
    rows = blobs(3000)
    mechanism = GridPrototypes(
        ProfileBounds(6, 6, 2.0), 6, 1e5, 3000, p=4, depth=6, swaps=12, trials=trials, repetitions=repetitions
    )
    found = mechanism.release(rows, ReplayedNoise(1)).value
    assert found.sizes.sum() == pytest.approx(3000, abs=5)
    for middle in np.eye(6)[:3] * 2.0:
        apart = np.abs(found.filled() - middle).max(axis=1)
        # empty clusters are noise over the public least number of users; a group's own prototype is near its middle
        assert apart[found.sizes > 125].min() < 0.1


def test_sparse_and_dense_rows_give_the_same_release() -> None:
    rows = blobs(200)
    mechanism = GridPrototypes(ProfileBounds(6, 6, 2.0), 3, 5.0, 200)
    one, other = (mechanism.release(form, ReplayedNoise(4)).value for form in (rows, sparse.csr_array(rows)))
    assert np.array_equal(one.centres, other.centres, equal_nan=True)
    assert one.sizes.tolist() == other.sizes.tolist()


def test_signed_rows_keep_their_signs() -> None:
    rows = np.tile([-1.0, 1.0], (2000, 1))
    bounds = ProfileBounds(2, 2, 1.0, signed=True)
    found = GridPrototypes(bounds, 1, 1e4, 2000).release(rows).value
    assert found.centres[0] == pytest.approx([-1.0, 1.0], abs=0.01)


# the projection


def test_a_point_depends_on_its_own_row_alone() -> None:
    bounds = ProfileBounds(30, 30, 1.0)
    rows = np.random.default_rng(0).random((64, 30))
    table = bounds.bounded(rows, SYSTEM_NOISE)
    points = GridPoints(bounds, 5, 3)
    together = points.of(table)
    assert together.dtype == np.int64
    for place in range(64):
        assert points.of(table[[place]]).tolist() == together[[place]].tolist()
    assert points.of(table[::-1]).tolist() == together[::-1].tolist()


@pytest.mark.parametrize(
    "bounds", [ProfileBounds(50, 50, 1.0, l2_bound=2.0), ProfileBounds(50, 9, 30.0, l1_bound=60.0, l2_bound=12.0)]
)
def test_points_are_the_projection_cut_to_the_ball(bounds: ProfileBounds) -> None:
    table = bounds.bounded(np.random.default_rng(1).random((300, 50)) * bounds.value_bound, SYSTEM_NOISE)
    table = sparse.csr_array(
        sparse.vstack([table, sparse.csr_array(table.toarray() // 50), sparse.csr_array((1, 50), dtype=np.int64)])
    )
    found = GridPoints(bounds, 3, 7, 2).of(table)
    real = table.toarray() @ gaussian_projection(50, 3, 7, 2) * float(bounds.step) / bounds.l2 * HALF_SIDE
    length = np.linalg.norm(real, axis=1, keepdims=True)
    assert (length > HALF_SIDE).any()
    assert np.abs(found - real * np.minimum(1.0, HALF_SIDE / np.maximum(length, 1.0))).max() <= 3.0
    assert ((found * found).sum(axis=1) <= HALF_SIDE**2).all()


def test_the_widest_bounds_do_not_overflow() -> None:
    bounds = ProfileBounds(1 << 16, 1 << 16, 1.0, l2_bound=1.0 / STEPS)
    table = sparse.csr_array(np.full((1, 1 << 16), STEPS, dtype=np.int64))
    matrix, bits = GridPoints(bounds, 2, 0)._matrix
    exact = [sum(int(h) * STEPS for h in column) for column in matrix.T]
    assert bits >= 0
    assert [abs(number) < 1 << 62 for number in exact] == [True, True]
    assert np.asarray(table @ matrix).tolist() == [exact]


@pytest.mark.parametrize(("items", "l2_bound"), [(1 << 14, 1.0 / STEPS), (1 << 14, 1.0), (300, None)])
def test_the_worst_row_of_all_does_not_overflow(items: int, l2_bound: float | None) -> None:
    """All of a row where the projection is above 0: signs that cancel would hide an overflow."""
    bounds = ProfileBounds(items, items, 1.0, l2_bound=l2_bound)
    points = GridPoints(bounds, 2, 0)
    matrix, bits = points._matrix
    for column in range(2):
        row = np.where(matrix[:, column] > 0, STEPS, 0)
        exact = [sum(int(h) for h in matrix[row > 0, place].tolist()) * STEPS for place in range(2)]
        assert max(map(abs, exact)) < 1 << 62
        assert np.asarray(sparse.csr_array(row[None]) @ matrix).tolist() == [exact]
        assert points.of(sparse.csr_array(row[None]))[0, column] > 0
    assert bits == (20 if items == 300 else bits)
    assert bounds.l1_steps * int(np.abs(matrix).max()) < 1 << 62


def test_trials_have_projections_of_their_own() -> None:
    bounds = ProfileBounds(5, 5, 1.0)
    matrices = [
        GridPoints(bounds, 2, seed, trial)._matrix[0].tolist() for seed, trial in ((0, 0), (0, 1), (1, 0), (0, 0))
    ]
    assert matrices[0] == matrices[3]
    assert matrices[0] not in matrices[1:3]
    assert matrices[1] != matrices[2]


# the choice among trials


def slow_trial_loss(mechanism: GridPrototypes, table: Any, centres: Any) -> int:
    """User by user in Python's whole numbers."""
    bounds, total = mechanism.bounds, 0
    most = 4 * bounds.l2_squared_steps
    shift = max(0, most.bit_length() - 34)
    prototypes = []
    for centre in centres:
        steps = [0 if math.isnan(x) else round(x / float(bounds.step)) for x in centre]
        squares = sum(x * x for x in steps)
        if squares > bounds.l2_steps**2:
            root = math.isqrt(squares - 1) + 1
            steps = [(1 if x > 0 else -1) * (abs(x) * bounds.l2_steps // root) for x in steps]
        prototypes.append(steps)
    for row in table.toarray().tolist():
        total += min(most, *(sum((a - b) ** 2 for a, b in zip(row, one, strict=True)) for one in prototypes)) >> shift
    return total


@pytest.mark.parametrize(
    "bounds", [BOUNDS, ProfileBounds(6, 6, 2.0, l2_bound=0.7), ProfileBounds(6, 4, 1.0, signed=True)]
)
def test_the_loss_of_a_trial_is_that_of_whole_numbers_and_bounded(bounds: ProfileBounds) -> None:
    mechanism = GridPrototypes(bounds, 3, 1.0, 50, trials=2)
    table = bounds.bounded(blobs(40) - (0.5 if bounds.signed else 0.0), SYSTEM_NOISE)
    centres = np.random.default_rng(0).random((3, 6)) * bounds.value_bound
    centres[1, 2:] = math.nan
    found = mechanism.trial_loss(table, Prototypes(centres, np.zeros(3)))
    assert found == slow_trial_loss(mechanism, table, centres)
    one_by_one = [mechanism.trial_loss(table[[place]], Prototypes(centres, np.zeros(3))) for place in range(40)]
    assert sum(one_by_one) == found
    assert min(one_by_one) >= 0
    assert max(one_by_one) <= mechanism.trial_loss_bound <= 1 << 34
    if bounds.l2_bound is not None:
        assert max(one_by_one) == mechanism.trial_loss_bound  # rows may be longer than R: the cap is reached


def test_the_better_trial_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.tile([2.0, 0, 0, 0, 0, 0], (500, 1))
    good, bad = np.zeros((1, 6)), np.zeros((1, 6))
    good[0, 0] = 2.0
    trials = [Prototypes(bad, np.zeros(1)), Prototypes(good, np.ones(1))]
    monkeypatch.setattr(GridPrototypes, "_trial", lambda self, table, trial, noise: trials[trial])
    mechanism = GridPrototypes(BOUNDS, 1, 10.0, 500, trials=2)
    # losses 500 * 4 and 0 of at most 500 * 48: e^(-1 * 500/12)
    assert mechanism.epsilons.final == pytest.approx(1.0)
    assert {float(mechanism.release(rows, ReplayedNoise(seed)).value.sizes[0]) for seed in range(20)} == {1.0}
    monkeypatch.setattr(GridPrototypes, "trial_loss_bound", 500 * (1 << 34))
    counts = [float(mechanism.release(rows[:12], ReplayedNoise(seed)).value.sizes[0]) for seed in range(200)]
    assert 60 < sum(counts) < 140  # hardly any difference at so small a rate


def test_every_step_draws_from_the_given_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step with bytes of its own, which anybody can repeat, would protect nobody."""
    seen: list[tuple[str, Any]] = []

    def watch(kind: type, name: str, place: int) -> None:
        true = getattr(kind, name)

        def watched(self: Any, *given: Any, **named: Any) -> Any:
            seen.append((kind.__name__, named["noise"] if "noise" in named else given[place]))
            return true(self, *given, **named)

        monkeypatch.setattr(kind, name, watched)

    watch(ProfileBounds, "bounded", 1)
    watch(PrivatePartition, "release", 1)
    watch(LocalSwaps, "release", 2)
    watch(SparseRecovery, "recover", 2)
    choices: list[tuple[Any, Fraction, Any]] = []

    def chosen(scores: Any, rate: Fraction, noise: Any) -> Any:
        choices.append((scores, rate, noise))
        return gumbel_choice(scores, rate, noise)

    monkeypatch.setattr("tacit.mechanisms.grid_prototypes.gumbel_choice", chosen)
    mechanism, noise = GridPrototypes(BOUNDS, 2, 3.0, 100, trials=2, repetitions=3), ReplayedNoise(5)
    mechanism.release(blobs(80), noise)
    names = [name for name, _ in seen]
    assert [names.count(kind.__name__) for kind in (ProfileBounds, PrivatePartition, LocalSwaps, SparseRecovery)] == [
        1,
        6,
        2,
        2,
    ]
    assert all(given is noise for _, given in seen)
    # and the choice among trials: its rate is that of one user's largest loss
    assert len(choices) == 1
    scores, rate, given = choices[0]
    assert given is noise
    assert (scores.shape, (scores <= 0).all()) == ((1, 2), True)
    assert rate == Fraction(mechanism.epsilons.final) / (4 * BOUNDS.l2_squared_steps >> 2)


def test_other_bytes_give_other_candidates_centres_and_values() -> None:
    mechanism = GridPrototypes(BOUNDS, 3, 1.0, 300)
    points = GridPoints(BOUNDS, mechanism.p or 0, 0).of(BOUNDS.bounded(blobs(300), ReplayedNoise(0)))
    candidates = [mechanism._candidates(points, 0, ReplayedNoise(seed)).tolist() for seed in range(30)]
    assert len({str(found) for found in candidates}) > 3
    offered = points[:40]
    centres = {
        tuple(mechanism.local_swaps.release(points, offered, ReplayedNoise(seed)).value.tolist()) for seed in range(9)
    }
    assert len(centres) == 9


@pytest.mark.parametrize("users", [1, 3])
def test_the_choice_among_trials_has_the_law_of_its_rate(users: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = ProfileBounds(2, 2, 1.0)
    centres = [np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])]  # of the rows (1, 1): losses of 2 R^2 / R^2 and 0 each
    monkeypatch.setattr(
        GridPrototypes, "_trial", lambda self, table, trial, noise: Prototypes(centres[trial], np.full(1, float(trial)))
    )
    mechanism = GridPrototypes(bounds, 1, 20.0, 10, trials=2)
    noise, draws = ReplayedNoise(users), 2_000
    second = sum(int(mechanism.release(np.ones((users, 2)), noise).value.sizes[0]) for _ in range(draws))
    assert mechanism.epsilons.final == pytest.approx(2.0)
    behind = math.exp(-2.0 * users / 4)  # R^2 of at most (2 R)^2 for each user
    assert chi_square(np.array([draws - second, second]), np.array([behind, 1.0]) / (1 + behind)) > ALARM


def test_guarantee_is_pure_and_knows_a_rho() -> None:
    mechanism = GridPrototypes(BOUNDS, 3, 1.0, 100, trials=3, repetitions=2)
    guarantee, spent = mechanism.guarantee, mechanism.epsilons
    assert guarantee.is_pure
    assert (guarantee.epsilon, guarantee.protects) == (1.0, ONE_USER)
    assert guarantee.loss is not None
    assert guarantee.loss.kind is LossKind.ZCDP
    levels, swaps = mechanism.depth or 0, mechanism.swaps or 0
    each = 2 * (spent.candidates / 2) ** 2 / (2 * levels) + spent.swaps**2 / (8 * (swaps + 1))
    each += spent.count**2 / 2 + spent.select**2 / (8 * 3) + spent.values**2 / 2
    assert guarantee.loss.value == pytest.approx(3 * each + spent.final**2 / 8)


def test_replayed_noise_promises_nothing() -> None:
    assert GridPrototypes(BOUNDS, 2, 1.0, 100).release(blobs(5), ReplayedNoise(1)).guarantee.promises_nothing
