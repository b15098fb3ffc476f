import numpy as np
import pytest

from tacit.data import STARS, Scale, holdout, leave_out_per_user, synthetic, synthetic_counts
from tacit.errors import InvalidParameter
from tests.unit.data.layouts import rows


def rng(seed: int = 11) -> np.random.Generator:
    return np.random.default_rng(seed)


def rmse(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.fixture(scope="module")
def world():
    return synthetic(users=1500, items=400, ratings_per_user=60, rank=4, rng=rng())


def centred(ratings):
    """Values without the user's and the item's (shrunken) mean, and what was taken off."""
    mean = ratings.values.mean(dtype=np.float64)
    users = np.bincount(ratings.users, ratings.values - mean, ratings.n_users) / (ratings.counts + 5)
    items = np.bincount(ratings.items, ratings.values - mean - users[ratings.users], ratings.n_items)
    items = items / (ratings.item_counts + 5)
    return mean, users, items


def test_equal_generators_give_equal_worlds():
    first, second, other = (synthetic(users=50, items=40, rng=rng(seed)) for seed in (1, 1, 2))
    assert rows(first) == rows(second) != rows(other)


def test_the_world_has_the_sizes_asked_for(world):
    assert (world.n_users, world.n_items) == (1500, 400)
    assert len(world) / 1500 == pytest.approx(60, rel=0.1)
    assert world.counts.min() >= 1
    assert world.catalogue.genres.any(axis=1).all()
    assert world.times.min() > 0


def test_popularity_has_a_long_tail(world):
    counts = np.sort(world.item_counts)[::-1]
    assert counts[:40].sum() > 0.25 * len(world)  # a tenth of the items
    flat = synthetic(users=1500, items=400, ratings_per_user=60, popularity=0.0, rng=rng())
    assert np.sort(flat.item_counts)[::-1][:40].sum() < 0.16 * len(flat)


def test_user_and_item_means_predict_better_than_the_global_mean(world):
    split = holdout(world, 0.2, rng=rng())
    mean, users, items = centred(split.train)
    test = split.test
    assert rmse(test.values - mean - users[test.users] - items[test.items]) < 0.95 * rmse(test.values - mean)


def test_a_low_rank_model_predicts_better_than_the_means(world):
    split = holdout(world, 0.2, rng=rng())
    mean, users, items = centred(split.train)
    rest = split.train.csr().copy().astype(np.float64)
    rest.data = split.train.values - mean - users[split.train.users] - items[split.train.items]
    # Each user's taste by ridge regression on item factors, found in turns: plain alternating least squares.
    left, right = None, rng(1).standard_normal((world.n_items, 4))
    for _ in range(8):
        left = ridge(rest, right)
        right = ridge(rest.T.tocsr(), left)
    test = split.test
    base = test.values - mean - users[test.users] - items[test.items]
    model = base - np.einsum("ij,ij->i", left[test.users], right[test.items])
    assert rmse(model) < 0.95 * rmse(base)


def ridge(matrix, factors, weight: float = 4.0) -> np.ndarray:
    found = np.zeros((matrix.shape[0], factors.shape[1]))
    for row in range(matrix.shape[0]):
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        near = factors[matrix.indices[span]]
        found[row] = np.linalg.solve(near.T @ near + weight * np.eye(near.shape[1]), near.T @ matrix.data[span])
    return found


def test_what_is_rated_carries_taste_too():
    """Users who rated the same genre before rate it again: the pattern alone predicts held-out items."""
    scores = {}
    for selectivity in (0.0, 2.0):
        world = synthetic(users=800, items=300, rank=4, popularity=0.0, selectivity=selectivity, rng=rng())
        split = leave_out_per_user(world, 5, keep=5, rng=rng())
        rated = world.csr().toarray() > 0
        seen = (split.train.csr() > 0).astype(np.float64).toarray()
        together = seen.T @ seen - np.outer(seen.sum(axis=0), seen.sum(axis=0)) / len(seen)  # beyond mere popularity
        np.fill_diagonal(together, 0.0)
        scored = seen @ together
        likeness = scored[split.test.users, split.test.items]
        other = rng().integers(world.n_items, size=split.test.users.size)
        chance = scored[split.test.users, other]
        scores[selectivity] = np.mean((likeness > chance)[~rated[split.test.users, other]])
    assert scores[0.0] < 0.54
    assert scores[2.0] > 0.62


def test_taste_transfers_to_the_second_domain():
    pair = synthetic(users=1500, items=300, ratings_per_user=50, rank=4, second_domain=True, overlap=0.6, rng=rng())
    assert pair.shared.size == pytest.approx(0.6 * 1500, abs=2)
    # A user's mean by genre in one domain foretells the same user's mean by genre in the other.
    tables = []
    for side in (pair.source, pair.target):
        mean, users, items = centred(side)
        rest = side.values - mean - users[side.users] - items[side.items]
        flags = side.catalogue.genres.astype(np.float64)[side.items, :6]
        sums = np.stack([np.bincount(side.users, rest * flags[:, genre], side.n_users) for genre in range(6)], axis=1)
        counts = np.stack([np.bincount(side.users, flags[:, genre], side.n_users) for genre in range(6)], axis=1)
        tables.append((sums / (counts + 3))[pair.shared])
    assert np.corrcoef(tables[0].ravel(), tables[1].ravel())[0, 1] > 0.15
    moved = rng().permutation(pair.shared.size)
    assert abs(np.corrcoef(tables[0].ravel(), tables[1][moved].ravel())[0, 1]) < 0.08


def test_the_two_domains_share_users_and_no_items():
    pair = synthetic(users=100, items=50, second_domain=True, overlap=0.0, rng=rng())
    assert pair.shared.size == 0
    assert np.all((pair.source.counts > 0) != (pair.target.counts > 0))
    assert not set(pair.source.catalogue.ids) & set(pair.target.catalogue.ids)
    everyone = synthetic(users=100, items=50, second_domain=True, overlap=1.0, rng=rng())
    assert everyone.shared.size == 100


def test_entities_hold_all_users_and_differ_in_taste():
    world = synthetic(users=2000, items=200, entities=5, rng=rng())
    assert world.entities.sizes.sum() == 2000
    flags = world.catalogue.genres[world.items].astype(np.float64)
    shares = np.stack([flags[world.entities.codes[world.users] == code].mean(axis=0) for code in range(5)])
    shuffled = rng().permutation(world.entities.codes)
    mixed = np.stack([flags[shuffled[world.users] == code].mean(axis=0) for code in range(5)])
    assert shares.std(axis=0).sum() > 1.5 * mixed.std(axis=0).sum()


@pytest.mark.parametrize("scale", [STARS, Scale(0, 100), Scale(-1, 1, 0.25)])
def test_ratings_lie_on_any_scale_and_use_its_width(scale):
    world = synthetic(users=300, items=100, scale=scale, timestamps=False, rng=rng())
    assert scale.first_outside(world.values) is None
    assert np.ptp(world.values) > 0.8 * (scale.high - scale.low)
    assert world.times is None


def test_a_small_catalogue_is_exhausted_without_repeats():
    world = synthetic(users=20, items=4, ratings_per_user=50, rng=rng())
    assert world.counts.max() <= 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"users": 0},
        {"items": 1},
        {"rank": 0},
        {"overlap": 1.5},
        {"genres": ()},
        {"ratings_per_user": 0},
        {"entities": -1},
    ],
)
def test_impossible_worlds_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        synthetic(**wrong, rng=rng())


def test_counts_have_the_mean_of_their_law():
    lognormal = synthetic_counts(users=3000, items=100, rank=20, entities=4, rng=rng())
    assert lognormal.values.sum() / 300_000 == pytest.approx(
        np.exp(0.5), rel=0.1
    )  # 1.65: exp of a normal of variance 1
    assert lognormal.entities.sizes.tolist() == np.bincount(lognormal.entities.codes).tolist()
    gamma = synthetic_counts(users=3000, items=100, rank=20, law="gamma", rng=rng())
    assert gamma.values.sum() / 300_000 == pytest.approx(1.0, rel=0.1)
    with pytest.raises(InvalidParameter):
        synthetic_counts(law="normal", rng=rng())


@pytest.mark.parametrize("bad", [{"selectivity": 1e6}, {"selectivity": -11}, {"popularity": -1e6}])
def test_exponents_that_would_overflow_are_refused(bad):
    with pytest.raises(InvalidParameter, match="must lie from -10 to 10"):
        synthetic(users=5, items=5, rng=rng(), **bad)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("steep", [-10, 10])
def test_the_steepest_worlds_are_made_without_a_warning(steep):
    assert len(synthetic(users=200, items=50, selectivity=steep, popularity=steep, rng=rng())) > 0


def test_a_seed_in_place_of_a_generator_is_refused():
    for make in (synthetic, synthetic_counts):
        with pytest.raises(InvalidParameter, match="rng must be a numpy Generator"):
            make(users=5, items=5, rng=1)
