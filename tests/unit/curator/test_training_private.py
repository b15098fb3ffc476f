"""Private training: whose rows count, what a user's gradient depends on, and what the network promises in the end."""

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit.data
from tacit.curator.private_training import PUBLIC, Gradients, train_privately
from tacit.curator.training import Architecture, RowsByUser, architecture, initial_weights
from tacit.data import Ratings
from tacit.errors import InvalidInput, InvalidModel, InvalidParameter, MissingExtra
from tacit.guarantees import ONE_USER, approximate
from tacit.mechanisms import ReplayedNoise, SampledGaussian
from tacit.mechanisms.noise import SYSTEM_NOISE, promised
from tacit.mechanisms.samplers.integers import GridVector
from tacit.models.features import GenreProfile
from tacit.models.scorers import RatingNetwork
from tests.releases import release_of

STEPS = 1 << 20


@pytest.fixture(scope="module")
def world() -> tuple[NDArray[np.float32], NDArray[np.bool_], Ratings]:
    ratings = tacit.data.synthetic(users=300, items=120, ratings_per_user=25, rng=np.random.default_rng(3))
    flags = ratings.catalogue.genres
    assert flags is not None
    features = GenreProfile(flags).of_many(ratings.starts, ratings.items, ratings.values)
    return features.astype(np.float32), flags, ratings


def rows_of(ratings: Ratings) -> RowsByUser:
    return RowsByUser(ratings.starts, ratings.items, ratings.values)


def gradients(
    world: Any, kind: str = "two-tower", *, rows_per_user: int = 8, step: int = 0, **changed: Any
) -> Gradients:
    import jax.numpy as jnp

    features, flags, ratings = world
    given = {"features": features, "rows": rows_of(ratings)} | changed
    weights = initial_weights(architecture(kind), flags.shape[1], np.random.default_rng(1))
    table = jnp.asarray(flags, dtype=jnp.float32)
    made = Gradients(
        architecture(kind), given["features"], table, given["rows"], clip=0.03, rows_per_user=rows_per_user
    )
    return made.at(weights, step)


def table_of(wanted: Gradients, users: Any) -> NDArray[np.int64]:
    return np.concatenate([part.astype(np.int64) for part in wanted.of(np.asarray(users, dtype=np.int64))])


@pytest.mark.parametrize(("kind", "rows_per_user"), [("network", 32), ("two-tower", 8), ("two-tower", 32)])
def test_a_user_s_gradient_is_the_same_to_the_last_bit_whoever_else_is_asked_for(
    world: Any, kind: str, rows_per_user: int
) -> None:
    wanted = gradients(world, kind, rows_per_user=rows_per_user)
    everyone = table_of(wanted, np.arange(100))
    for company in ([5, 40, 99], [99, 5, 7, 40], np.arange(3, 100, 2), np.arange(7), [40]):
        assert np.array_equal(table_of(wanted, company), everyone[np.asarray(company)])


def test_gradients_are_those_of_the_mean_error_cut_and_rounded_towards_zero(world: Any) -> None:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    features, flags, ratings = world
    wanted = gradients(world, rows_per_user=1000)
    kind = architecture("two-tower")
    users = np.argsort(ratings.counts)[[0, 150, 299]]
    for user, found in zip(users.tolist(), table_of(wanted, users), strict=True):
        rows = ratings.rows_of(user)
        table = jnp.asarray(flags[ratings.items[rows]], dtype=jnp.float32)

        def loss(weights: Any, user: int = user, table: Any = table, rows: slice = rows) -> Any:
            return jnp.mean((kind.predicted(weights, features[user], table) - ratings.values[rows] / 5.0) ** 2)

        slope = np.asarray(ravel_pytree(jax.jit(jax.grad(loss))(wanted.weights))[0], dtype=np.float64)
        exact = slope * min(1.0, 0.03 / float(np.linalg.norm(slope))) / 0.03 * STEPS
        np.testing.assert_allclose(found, np.trunc(exact), atol=2)
        assert np.abs(found).max() > 1000
        assert math.sqrt(sum(int(cell) ** 2 for cell in found)) <= STEPS * (1 + 1e-5)


def test_cells_are_rounded_towards_zero(world: Any) -> None:
    """One weight for each cell; at weights of 0 the slopes are 1.75, -1.75, 2.5 and -0.5 grid steps, exactly."""
    import jax.numpy as jnp

    cells = np.array([1.75, -1.75, 2.5, -0.5], dtype=np.float32) / np.float32(STEPS)

    def predicted(weights: Any, _: Any, flags: Any) -> Any:
        return 0.5 + (weights["w"] * cells).sum() + 0.0 * flags[..., 0]

    kind = Architecture(lambda _: {"w": (4,)}, predicted, RatingNetwork, "w")
    rows = RowsByUser(np.array([0, 1]), np.array([0]), np.array([0.0]))
    wanted = Gradients(kind, np.zeros((1, 2), dtype=np.float32), jnp.ones((1, 1)), rows, clip=1.0, rows_per_user=1)
    assert table_of(wanted.at({"w": jnp.zeros(4)}, 0), [0]).tolist() == [[1, -1, 2, 0]]


def test_gradients_are_computed_on_the_processor_whatever_jax_prefers(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax

    used: list[Any] = []

    def compute(*_: Any) -> Any:
        used.append(jax.config.jax_default_device)
        return np.zeros((32, 3), dtype=np.int32)

    monkeypatch.setattr("tacit.curator.private_training._compile", lambda _: compute)
    before = jax.config.jax_default_device
    for _ in gradients(world).of(np.arange(40)):
        assert jax.config.jax_default_device == before  # whoever asks keeps their own setting
    assert used == [jax.devices("cpu")[0]] * 2


def test_rows_that_count_are_spread_over_all_of_a_user_s_and_follow_from_her_alone(world: Any) -> None:
    _, _, ratings = world
    counts = ratings.counts
    few, many = int(np.argmin(counts)), int(np.argmax(counts))
    assert counts[few] < 8 < counts[many]
    seen: set[int] = set()
    for step in range(int(counts[many])):
        items, values, real = gradients(world, step=step).chosen_rows(np.array([few, many]))
        assert real[0].sum() == counts[few]
        assert items[0][real[0]].tolist() == ratings.items[ratings.rows_of(few)].tolist()
        assert values[0][real[0]].tolist() == ratings.values[ratings.rows_of(few)].tolist()
        assert len(set(items[1].tolist())) == 8
        assert set(items[1].tolist()) <= set(ratings.items[ratings.rows_of(many)].tolist())
        seen |= set(items[1].tolist())
    assert len(seen) == counts[many]  # in time every row counts
    without = ratings.select_users(np.delete(np.arange(ratings.n_users), 0))  # user 0 is gone, all codes move by one
    shorter = gradients(world, step=5, rows=rows_of(without))
    for before, after in zip(
        gradients(world, step=5).chosen_rows(np.arange(1, 300)), shorter.chosen_rows(np.arange(299)), strict=True
    ):
        assert np.array_equal(before, after)


def test_odd_rows_count_as_none_and_refuse_nobody(world: Any) -> None:
    features, _, ratings = world
    first = ratings.rows_of(0)
    items, values = ratings.items.copy(), ratings.values.copy()
    items[first.start], values[first.start + 1], values[first.start + 2] = 10**6, math.nan, math.inf
    odd = gradients(world, rows=RowsByUser(ratings.starts, items, values), rows_per_user=1000)
    assert odd.chosen_rows(np.array([0]))[2].sum() == ratings.counts[0] - 3
    strange = features.copy()
    strange[0] = math.nan
    assert not table_of(gradients(world, features=strange), [0]).any()
    assert table_of(gradients(world, features=strange), [1]).any()
    nobody = RowsByUser(np.zeros(301, dtype=np.int64), ratings.items[:0], ratings.values[:0])
    assert not table_of(gradients(world, rows=nobody), [0, 299]).any()


@pytest.mark.parametrize(("size", "least"), [(20.0, 0.99), (1e30, 0.0)])
def test_a_user_with_a_monstrous_gradient_moves_the_sum_by_at_most_the_bound(
    world: Any, size: float, least: float
) -> None:
    features, _, ratings = world
    monster = features.copy()
    monster[7] *= np.float32(size)
    others = np.delete(np.arange(300), 7)
    with_her = gradients(world, features=monster)
    without = gradients(world, features=features[others], rows=rows_of(ratings.select_users(others)))
    everyone = SampledGaussian(7_937, 1.0, 1e-6, Fraction(1), 1, bound=0.03)
    here, there = (everyone.release(rows, ReplayedNoise(1)).value.steps for rows in (with_her, without))
    assert least * STEPS <= math.sqrt(sum(int(cell) ** 2 for cell in here - there)) <= STEPS


SETTINGS: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "steps": 3, "rate": Fraction(1, 8), "kind": "two-tower"}


def test_the_guarantee_is_that_of_the_mechanism_for_all_steps(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    features, flags, ratings = world
    calls: list[SampledGaussian] = []
    release = SampledGaussian.release

    def counted(self: SampledGaussian, *arguments: Any) -> Any:
        calls.append(self)
        return release(self, *arguments)

    monkeypatch.setattr(SampledGaussian, "release", counted)
    told: list[tuple[Any, ...]] = []
    trained = train_privately(
        features, flags, rows_of(ratings), rng=np.random.default_rng(1), progress=lambda *x: told.append(x), **SETTINGS
    )
    assert trained.guarantee == approximate(3.0, 1e-5, ONE_USER, proof="sampled-gaussian").assuming(PUBLIC)
    assert len(calls) == 3
    assert set(calls) == {SampledGaussian(7_937, 3.0, 1e-5, Fraction(1, 8), 3, bound=0.03)}
    assert told == [(1, 3), (2, 3), (3, 3)]  # and no error, which would be a release of its own


def test_training_sees_the_users_through_the_mechanism_alone(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With releases that follow from the step's number, nothing of the data may be left: neither ratings nor how many users."""
    features, flags, _ = world
    other = tacit.data.synthetic(users=41, items=120, ratings_per_user=9, rng=np.random.default_rng(77))
    low = RowsByUser(other.starts, other.items, np.full_like(other.values, 0.5))
    steps: list[int] = []

    def release(self: SampledGaussian, rows: Any, noise: Any = SYSTEM_NOISE) -> Any:
        steps.append(rows.step)
        drawn = np.random.default_rng(rows.step).integers(-3 * STEPS, 3 * STEPS, self.dimension)
        return release_of(GridVector(drawn, self.noise_law.step), promised(self.guarantee, noise))

    monkeypatch.setattr(SampledGaussian, "release", release)
    unlike = np.random.default_rng(5).dirichlet(np.ones(19), (41, 2)).reshape(41, 38).astype(np.float32)
    one, two = (
        train_privately(table, flags, rows, rng=np.random.default_rng(1), **SETTINGS)
        for table, rows in ((features, rows_of(world[2])), (unlike, low))
    )
    assert steps == [0, 1, 2, 0, 1, 2]
    assert one.guarantee == two.guarantee
    for name, weight in one.value.weights.items():
        assert np.array_equal(weight, two.value.weights[name]), name
    first = initial_weights(architecture("two-tower"), 19, np.random.default_rng(1))
    assert not np.allclose(
        one.value.weights["user.0.weight"], first["user.0.weight"], atol=1e-3
    )  # it did learn from them


@pytest.mark.parametrize("kind", ["network", "two-tower"])
@pytest.mark.parametrize("learning_rate", [1e9, 1e30])
def test_training_that_diverges_is_told_so_without_warnings(world: Any, kind: str, learning_rate: float) -> None:
    _, flags, _ = world
    nobody = RowsByUser(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))
    changed = {"kind": kind, "learning_rate": learning_rate}
    with pytest.raises(InvalidModel, match="training diverged: lower the learning rate"):
        train_privately(
            np.zeros((0, 38), dtype=np.float32), flags, nobody, rng=np.random.default_rng(1), **SETTINGS | changed
        )


def test_replayed_noise_promises_nothing_and_gives_the_same_network_again(world: Any) -> None:
    features, flags, ratings = world

    def train(noise: int, first: int) -> Any:
        return train_privately(
            features, flags, rows_of(ratings), noise=ReplayedNoise(noise), rng=np.random.default_rng(first), **SETTINGS
        )

    release = train(1, 1)
    assert release.guarantee.promises_nothing
    assert ReplayedNoise.caveat in release.guarantee.assumes
    one, again, other = release.value, train(1, 1).value, train(2, 1).value
    assert all(np.array_equal(weight, again.weights[name]) for name, weight in one.weights.items())
    assert any(not np.array_equal(weight, other.weights[name]) for name, weight in one.weights.items())


def test_with_little_noise_it_learns(world: Any) -> None:
    features, flags, ratings = world
    model = train_privately(
        features, flags, rows_of(ratings), epsilon=300.0, delta=1e-5, steps=120, rate=Fraction(1, 4), kind="two-tower",
        rng=np.random.default_rng(1),
    ).value  # fmt: skip
    predicted = model.score(features, np.arange(ratings.n_items))[ratings.users, ratings.items]
    constant = float(np.mean((ratings.values - ratings.values.mean()) ** 2))
    assert float(np.mean((predicted - ratings.values) ** 2)) < 0.93 * constant


def test_the_rating_network_is_trained_too_and_nobody_at_all_is_no_error(world: Any) -> None:
    _, flags, _ = world
    nobody = RowsByUser(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))
    release = train_privately(
        np.zeros((0, 38), dtype=np.float32),
        flags,
        nobody,
        rng=np.random.default_rng(1),
        **SETTINGS | {"kind": "network"},
    )
    assert isinstance(release.value, RatingNetwork)
    assert release.guarantee.epsilon == 3.0


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 0.0},
        {"delta": 1.0},
        {"rate": 0.0},
        {"rate": 2.0},
        {"steps": 0},
        {"clip": -1.0},
        {"rows_per_user": 0},
        {"rows_per_user": 4097},
    ],
    ids=str,
)
def test_settings_outside_their_range_are_refused(world: Any, changed: dict[str, Any]) -> None:
    features, flags, ratings = world
    with pytest.raises(InvalidParameter):
        train_privately(features, flags, rows_of(ratings), rng=np.random.default_rng(1), **SETTINGS | changed)


def test_columns_that_do_not_fit_are_refused(world: Any) -> None:
    features, flags, ratings = world
    for rows in (
        RowsByUser(ratings.starts[:-1], ratings.items, ratings.values),
        RowsByUser(ratings.starts + 1, ratings.items, ratings.values),
        RowsByUser(ratings.starts, ratings.items, ratings.values[:-1]),
        RowsByUser(ratings.starts[::-1], ratings.items, ratings.values),
    ):
        with pytest.raises(InvalidParameter):
            train_privately(features, flags, rows, rng=np.random.default_rng(1), **SETTINGS)


def test_types_that_are_no_columns_are_refused_before_anything_is_looked_at(world: Any) -> None:
    features, flags, ratings = world
    whole = rows_of(ratings)
    for rows in (
        whole._replace(items=ratings.items.tolist()),
        whole._replace(values=ratings.values.tolist()),
        whole._replace(starts=ratings.starts.tolist()),
        whole._replace(items=ratings.items.astype(np.float64)),
        whole._replace(items=ratings.items.astype(str)),
        whole._replace(values=ratings.values.astype(object)),
        whole._replace(items=ratings.items[:, None]),
    ):
        with pytest.raises(InvalidInput, match="numpy arrays"):
            train_privately(features, flags, rows, rng=np.random.default_rng(1), **SETTINGS)
    for tables in ((features.tolist(), flags), (features, flags.tolist()), (features.astype(object), flags)):
        with pytest.raises(InvalidParameter, match="must be a table"):
            train_privately(*tables, whole, rng=np.random.default_rng(1), **SETTINGS)


def test_without_the_extra_it_says_what_to_install(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    features, flags, ratings = world
    monkeypatch.setitem(sys.modules, "jax_privacy", None)
    with pytest.raises(MissingExtra, match="jax-privacy"):
        train_privately(features, flags, rows_of(ratings), rng=np.random.default_rng(1), **SETTINGS)
