"""Principal components and ridge: hand-checked vectors, the published route by singular values, and what null directions do."""

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.multi_selection import (
    PrincipalComponents,
    fit_ridge,
    gram_of,
    principal_components,
    ridge_from_gram,
    temperature,
)

LINE = np.array([[0.0], [1.0], [2.0]])


def on_line(components: int) -> PrincipalComponents:
    return principal_components(gram_of(LINE, 1.0 + 2.0 * LINE, np.ones(3)), 1, components)


def by_singular_values(
    rows: np.ndarray, utilities: np.ndarray, components: int, at: np.ndarray, keep_null: bool = False
) -> np.ndarray:
    """As published: X = V S W', the first p columns of W, the plane's point nearest to [1, f]."""
    matrix = np.concatenate([np.ones((len(rows), 1)), rows, utilities], axis=1)
    _, singular, directions = np.linalg.svd(matrix, full_matrices=keep_null)
    kept = components if keep_null else min(components, int((singular**2 > 1e-12 * singular[0] ** 2).sum()))
    basis = directions[:kept].T
    known = np.concatenate([[1.0], at])
    place = np.linalg.lstsq(basis[: len(known)], known, rcond=1e-6)[0]
    return np.asarray(basis[len(known) :] @ place)


def test_two_components_of_a_line_are_the_line() -> None:
    assert on_line(2).estimate(np.array([3.0])) == pytest.approx([7.0], abs=1e-9)
    assert on_line(2).as_map().matrix == pytest.approx(np.array([[1.0, 2.0]]), abs=1e-9)


def test_one_component_of_a_line() -> None:
    model = on_line(1)
    assert np.abs(model.basis[:, 0]) == pytest.approx([0.2354044, 0.3379266, 0.9112576], abs=1e-6)
    estimates = [model.estimate(np.array([at]))[0] for at in (0.0, 1.0, 3.0)]
    assert estimates == pytest.approx([1.2647516, 3.0803220, 6.7114627], abs=1e-6)


def test_null_directions_are_dropped_since_they_would_drag_every_estimate_to_nothing() -> None:
    kept = by_singular_values(LINE, 1.0 + 2.0 * LINE, 3, np.array([3.0]), keep_null=True)
    assert kept == pytest.approx([0.0], abs=1e-6)
    assert on_line(3).estimate(np.array([3.0])) == pytest.approx([7.0], abs=1e-9)


def test_two_results_on_four_points() -> None:
    points = np.arange(4.0)[:, None]
    utilities = np.concatenate([1.0 + 2.0 * points, 4.0 - points + 0.1 * points**2], axis=1)
    model = principal_components(gram_of(points, utilities, np.ones(4)), 2, 2)
    assert model.estimate(np.array([1.5])) == pytest.approx([4.0, 2.8522249], abs=1e-6)
    plain = fit_ridge(points, utilities, np.ones(4), strength=0.0)
    assert plain.estimate(np.array([1.5])) == pytest.approx([4.0, 2.85], abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_gram_matrix_gives_what_singular_values_give(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.dirichlet(np.ones(6), 80), rng.dirichlet(np.ones(6), 80)], axis=1)
    utilities = 5.0 / (1.0 + np.exp(-rows @ rng.normal(size=(12, 4))))
    chosen = rng.integers(80, size=400)
    unique, counts = np.unique(chosen, return_counts=True)
    model = principal_components(gram_of(rows[unique], utilities[unique], counts), 4, 8)
    at = rng.dirichlet(np.ones(12))
    published = by_singular_values(rows[chosen], utilities[chosen], 8, at)
    assert model.estimate(at) == pytest.approx(published, abs=1e-8)
    assert model.as_map().estimate(at) == pytest.approx(model.estimate(at), abs=1e-8)


def test_dropped_directions_are_columns_of_zeros_so_that_the_size_tells_nothing() -> None:
    assert on_line(3).basis.shape == (3, 3)
    assert not on_line(3).basis[:, 2].any()


def test_ridge_is_the_minimum_of_its_penalised_squares() -> None:
    rng = np.random.default_rng(3)
    rows, utilities, weights = rng.normal(size=(60, 4)), rng.normal(size=(60, 2)), rng.random(60)
    model = fit_ridge(rows, utilities, weights, strength=0.05)
    share = weights / weights.sum()
    centred = rows - share @ rows
    penalty = 0.05 * np.mean(np.diag((centred * share[:, None]).T @ centred))

    def loss(slopes: np.ndarray) -> float:
        error = utilities - share @ utilities - centred @ slopes.T
        return float((share[:, None] * error**2).sum() + penalty * (slopes**2).sum())

    best = loss(model.matrix[:, 1:])
    for _ in range(20):
        assert loss(model.matrix[:, 1:] + rng.normal(scale=1e-3, size=(2, 4))) > best
    assert model.estimate(share @ rows) == pytest.approx(share @ utilities)  # the intercept is not penalised


def test_ridge_ignores_the_unit_of_the_weights() -> None:
    rng = np.random.default_rng(4)
    rows, utilities, weights = rng.normal(size=(30, 3)), rng.normal(size=(30, 2)), rng.random(30)
    assert fit_ridge(rows, utilities, weights).matrix == pytest.approx(
        fit_ridge(rows, utilities, 1e-9 * weights).matrix
    )


def test_a_single_look_alike_gives_its_own_utilities_everywhere() -> None:
    model = fit_ridge(np.array([[0.2, 0.8]]), np.array([[3.0, 4.0]]), np.ones(1))
    assert model.estimate(np.array([0.2, 0.8])) == pytest.approx([3.0, 4.0])
    assert np.isfinite(model.matrix).all()


def test_the_temperature_is_twice_eta_but_never_below_four_tenths() -> None:
    assert [temperature(eta) for eta in (0.01, 0.2, 0.5)] == [0.4, 0.4, 1.0]
    with pytest.raises(InvalidParameter):
        temperature(0.0)


def test_a_negative_penalty_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        ridge_from_gram(np.eye(3), 1, -0.1)
