"""Training without privacy: the same arithmetic as what is served, an obvious loop that it must equal, and bounded hand-overs."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit.data
from tacit.curator import training
from tacit.curator.training import Rows, architecture, build_network, initial_weights, train_network
from tacit.data import Ratings
from tacit.errors import InvalidData, InvalidParameter, MissingExtra, UnknownName
from tacit.models.features import GenreProfile
from tacit.models.scorers import RatingNetwork, TwoTower

KINDS = ["network", "two-tower"]


@pytest.fixture(scope="module")
def world() -> tuple[NDArray[np.float32], NDArray[np.bool_], Ratings, Ratings]:
    ratings = tacit.data.synthetic(users=250, items=150, ratings_per_user=40, rng=np.random.default_rng(3))
    split = tacit.data.holdout(ratings, 0.2, rng=np.random.default_rng(4))
    flags = ratings.catalogue.genres
    assert flags is not None
    space = GenreProfile(flags)
    features = space.of_many(split.train.starts, split.train.items, split.train.values)
    return features.astype(np.float32), flags, split.train, split.test


@pytest.fixture
def tiny() -> tuple[NDArray[np.float32], NDArray[np.bool_], Rows]:
    rng = np.random.default_rng(5)
    features = rng.dirichlet(np.full(4, 0.5), (6, 2)).reshape(6, 8).astype(np.float32)
    rows = Rows(rng.integers(0, 6, 23), rng.integers(0, 9, 23), rng.integers(1, 11, 23) / 2.0)
    return features, rng.random((9, 4)) < 0.4, rows


def random_weights(kind: str, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    shapes = architecture(kind).shapes(19)
    return {
        name: rng.normal(scale=1.2 / math.sqrt(shape[0]) if len(shape) == 2 else 0.2, size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def error(model: Any, features: NDArray[Any], ratings: Ratings) -> float:
    scores = model.score(features, np.arange(ratings.n_items))
    return float(np.sqrt(np.mean((scores[ratings.users, ratings.items] - ratings.values) ** 2)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trained_is_what_is_served(kind: str, rng: np.random.Generator) -> None:
    chosen, weights = architecture(kind), random_weights(kind, rng)
    flags = rng.random((40, 19)) < 0.15
    features = rng.dirichlet(np.full(19, 0.5), (7, 2)).reshape(7, 38).astype(np.float32)
    served = build_network(chosen, weights, flags).score(features, np.arange(40))
    assert served.std() > 0.05
    users, items = np.divmod(np.arange(280), 40)
    by_row = 5.0 * np.asarray(chosen.predicted(weights, features[users], flags[items].astype(np.float32)))
    np.testing.assert_allclose(by_row.reshape(7, 40), served, atol=1e-5)
    by_user = [5.0 * np.asarray(chosen.predicted(weights, one, flags.astype(np.float32))) for one in features]
    np.testing.assert_allclose(by_user, served, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "count", "model"), [("network", 49_616, RatingNetwork), ("two-tower", 7_937, TwoTower)]
)
def test_first_weights_are_glorot_s_and_the_same_for_the_same_rng(kind: str, count: int, model: type) -> None:
    chosen = architecture(kind)
    first, again = (initial_weights(chosen, 19, np.random.default_rng(1)) for _ in range(2))
    assert sum(weight.size for weight in first.values()) == count
    for name, weight in first.items():
        assert np.array_equal(weight, again[name])
        if weight.ndim == 1:
            assert not weight.any()
        else:
            limit = math.sqrt(6.0 / sum(weight.shape))
            assert 0.9 * limit < np.abs(weight).max() <= limit
    assert isinstance(build_network(chosen, first, np.ones((3, 19), dtype=np.bool_)), model)
    assert chosen.last_bias in first
    assert first[chosen.last_bias].shape == (1,)


@pytest.mark.parametrize("kind", KINDS)
def test_training_beats_the_constant_and_the_error_falls(world: Any, kind: str) -> None:
    features, flags, train, test = world
    told: list[tuple[int, int, float]] = []
    model = train_network(
        features,
        flags,
        Rows(train.users, train.items, train.values),
        kind=kind,
        epochs=6,
        batch=100,
        chunk=40,
        rng=np.random.default_rng(1),
        progress=lambda *step: told.append(step),
    )
    constant = float(np.sqrt(np.mean((test.values - train.values.mean()) ** 2)))
    assert error(model, features, test) < 0.97 * constant
    assert told[-1][0] == told[-1][1] == 6 * len(train)
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert told[-1][2] < 0.9 * told[0][2]
    assert told[-1][2] == pytest.approx(error(model, features, train), rel=0.1)  # it is an error in stars


@pytest.mark.parametrize("kind", KINDS)
def test_training_equals_the_obvious_loop(tiny: Any, kind: str) -> None:
    """Batch by batch, Adam written out: nine epochs, so that the learning rate falls, and batches that do not divide."""
    import jax
    import jax.numpy as jnp

    features, flags, rows = (jax.tree.map(jnp.asarray, part) for part in tiny)
    chosen, rng = architecture(kind), np.random.default_rng(8)
    weights = initial_weights(chosen, 4, rng)
    means, squares = ({name: 0.0 * weight for name, weight in weights.items()} for _ in range(2))

    @jax.jit
    @jax.grad
    def slope_of(weights: Any, batch: NDArray[Any]) -> Any:
        table = flags.astype(jnp.float32)[rows.items[batch]]
        return jnp.mean((chosen.predicted(weights, features[rows.users[batch]], table) - rows.values[batch] / 5.0) ** 2)

    step = 0
    for epoch in range(9):
        order = np.arange(23, dtype=np.int32)
        rng.shuffle(order)
        rate = 1e-3 if epoch < 5 else 1e-3 * math.exp(0.1 * (5 - epoch))
        for first in range(0, 23, 5):
            step += 1
            for name, slope in slope_of(weights, order[first : first + 5]).items():
                means[name] = 0.9 * means[name] + 0.1 * np.asarray(slope)
                squares[name] = 0.999 * squares[name] + 0.001 * np.asarray(slope) ** 2
                mean, square = means[name] / (1.0 - 0.9**step), squares[name] / (1.0 - 0.999**step)
                weights[name] = weights[name] - (rate * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    trained = train_network(*tiny, kind=kind, epochs=9, batch=5, chunk=2, rng=np.random.default_rng(8))
    for name, weight in trained.weights.items():
        # Adam magnifies the last bits of slopes near 0; an epoch at another learning rate would move weights by 1e-3
        np.testing.assert_allclose(weight, weights[name], atol=2e-4, err_msg=name)


def test_chunks_and_mapped_files_change_nothing(tiny: Any, tmp_path: Path) -> None:
    features, flags, rows = tiny
    mapped = []
    for name, column in zip(("users", "items", "values"), rows, strict=True):
        np.save(tmp_path / f"{name}.npy", column.astype(np.float32 if name == "values" else np.int32))
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))

    def trained(rows: Rows, chunk: int, seed: int = 2) -> NDArray[np.float32]:
        model = train_network(
            features, flags, rows, kind="two-tower", epochs=3, batch=4, chunk=chunk, rng=np.random.default_rng(seed)
        )
        return np.concatenate([weight.ravel() for weight in model.weights.values()])

    whole = trained(rows, 1000)
    for chunk in (1, 4):
        np.testing.assert_allclose(trained(rows, chunk), whole, atol=1e-6)
    assert np.array_equal(trained(Rows(*mapped), 1000), whole)
    assert not np.allclose(trained(rows, 1000, seed=3), whole, atol=1e-3)


def test_an_epoch_hands_over_every_row_once_in_parts_of_one_size() -> None:
    rows = Rows(np.arange(1003), np.arange(1003) + 5, np.linspace(0, 5, 1003))
    parts = list(training._chunks(rows, 10, 7, np.random.default_rng(1)))
    assert {column.shape for part, _ in parts for column in part} == {(7, 10)}
    seen = np.concatenate([part[0][part[3]] for part, _ in parts])
    assert sorted(seen.tolist()) == list(range(1003))
    assert sum(size for _, size in parts) == 1003
    assert all(np.array_equal(part[0] + 5, part[1]) for part, _ in parts)
    assert not np.array_equal(seen, np.arange(1003))


@pytest.mark.parametrize(
    ("column", "place", "bad"),
    [
        ("users", 3, 6),
        ("users", 0, -1),
        ("items", 22, 9),
        ("values", 5, math.nan),
        ("values", 5, 5.5),
        ("values", 5, -1),
    ],
)
def test_rows_that_do_not_fit_are_refused(tiny: Any, column: str, place: int, bad: float) -> None:
    features, flags, rows = tiny
    changed = getattr(rows, column).copy()
    changed[place] = bad
    with pytest.raises(InvalidData):
        train_network(features, flags, rows._replace(**{column: changed}), rng=np.random.default_rng(1))


def test_tables_and_settings_that_do_not_fit_are_refused(tiny: Any) -> None:
    features, flags, rows = tiny
    rng = np.random.default_rng(1)
    with pytest.raises(InvalidParameter):
        train_network(features[:, :7], flags, rows, rng=rng)
    with pytest.raises(InvalidParameter):
        train_network(features, flags[0], rows, rng=rng)
    with pytest.raises(InvalidData):
        train_network(features, flags, Rows(rows.users[:0], rows.items[:0], rows.values[:0]), rng=rng)
    with pytest.raises(InvalidData):
        train_network(features, flags, rows._replace(users=rows.users[:5]), rng=rng)
    with pytest.raises(InvalidParameter):
        train_network(features, flags, rows, batch=0, rng=rng)
    with pytest.raises(UnknownName, match="two-tower"):
        train_network(features, flags, rows, kind="tree", rng=rng)


def test_without_the_extra_it_says_what_to_install(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(MissingExtra, match=r'pip install "tacit\[train\]"'):
        train_network(*tiny, rng=np.random.default_rng(1))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_229)
