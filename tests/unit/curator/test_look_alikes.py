"""Private look-alikes: prototypes with sizes instead of real users, charged before they are drawn, with a guarantee."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit.curator.private_training
import tacit.curator.training
from tacit.curator import PrivateLookAlikes, fit, genre_centre
from tacit.curator.fit import RATED_AT_ALL
from tacit.curator.look_alikes import FACTORS_PUBLIC, GENRES_RADIUS, of_ratings, wanted_users
from tacit.data import load, synthetic
from tacit.errors import BudgetExhausted, Conflict, InvalidModel, InvalidParameter, TacitError, UnknownSubject
from tacit.guarantees import ONE_PROFILE, ONE_USER, LossKind, nothing, pure
from tacit.ledger import Accounting, Budget, PrivacyLedger
from tacit.mechanisms import ReplayedNoise
from tacit.messages.store import NOBODY_TWICE, REAL_USERS, LookAlikes, Store
from tacit.models.features import FoldedTaste, GenreProfile
from tests.releases import message_of
from tests.unit.curator.test_fit import untrained

WORLD = synthetic(users=400, items=60, ratings_per_user=25, rng=np.random.default_rng(3))
FLAGS = np.random.default_rng(5).random((40, 6)) < 0.4
SPACE = GenreProfile(FLAGS)
WISH = PrivateLookAlikes(epsilon=1.0, count=300)


def people(count: int, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.full(6, 3.0), count) for _ in range(2)], axis=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    with PrivacyLedger.create(tmp_path / "curator.db") as opened:
        opened.enrol("users", Budget(epsilon=2.5, delta=1e-5), protects=ONE_USER)
        yield opened


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tacit.curator.training, "train_network", lambda features, flags, rows, **settings: untrained(flags)
    )


# --- what is released


def test_look_alikes_lie_in_the_domain_and_have_sizes_that_add_up_to_the_users() -> None:
    made = WISH.release(people(5000), SPACE, centre=genre_centre(SPACE), noise=ReplayedNoise(1))
    assert made.rows.shape[1] == 12
    assert 280 <= len(made) <= 330
    assert (made.sizes > 0).all()
    assert abs(float(made.sizes.sum()) - 5000) < 700
    blocks = made.rows.reshape(-1, 2, 6).astype(np.float64)
    assert np.abs(blocks.sum(axis=2) - 1.0).max() < 1e-5
    assert blocks.min() >= 0.0


def test_a_prototype_is_spread_in_proportion_to_its_size_and_by_public_noise_of_the_stated_variance() -> None:
    wish = replace(WISH, count=16_000, spread=0.01)
    made = wish.around(np.full(12, 1 / 6), SPACE)
    assert len(made) == 16_000
    assert made.guarantee.epsilon == 0.0
    spread = made.rows.astype(np.float64).var(axis=0)
    assert np.abs(spread / (0.01 * 5 / 36 * 5 / 6) - 1.0).max() < 0.15  # summing to 1 takes a sixth of the variance
    assert len(replace(wish, spread=0.0).around(np.full(12, 1 / 6), SPACE)) == 1


def test_without_spread_the_prototypes_themselves_are_the_look_alikes() -> None:
    wish = replace(WISH, spread=0.0, epsilon=4.0)
    drawn = wish.mechanism(SPACE, genre_centre(SPACE)).release(people(5000), ReplayedNoise(3))
    made = wish.spread_out(drawn, SPACE, genre_centre(SPACE))
    told = drawn.value.sizes > 0
    assert np.allclose(made.sizes, drawn.value.sizes[told])
    assert np.allclose(made.rows, SPACE.inside(drawn.value.centres[told]), atol=1e-6)


def test_they_follow_from_the_release_and_public_numbers_alone() -> None:
    centre = genre_centre(SPACE)
    drawn = WISH.mechanism(SPACE, centre).release(people(3000), ReplayedNoise(3))
    here, there = (WISH.spread_out(drawn, SPACE, centre) for _ in range(2))
    assert (here.rows == there.rows).all()
    assert (here.sizes == there.sizes).all()


def test_no_users_give_look_alikes_all_the_same() -> None:
    centre = genre_centre(SPACE)
    for seed in range(6):  # the root's noisy size is below 0 in some of them
        made = WISH.release(np.zeros((0, 12)), SPACE, centre=centre, noise=ReplayedNoise(seed))
        assert len(made) >= 1
        assert (made.sizes > 0).all()


def test_what_is_promised_is_the_mechanisms_guarantee() -> None:
    made = WISH.release(people(100), SPACE)
    assert (made.guarantee.epsilon, made.guarantee.delta, made.guarantee.protects) == (1.0, 1e-6, ONE_USER)
    assert made.guarantee.proof == "tree-prototypes"
    assert made.guarantee.loss is not None
    assert made.guarantee.loss.kind is LossKind.ZCDP
    assert made.guarantee == WISH.promised(SPACE)
    assert WISH.release(people(100), SPACE, noise=ReplayedNoise(1)).guarantee.promises_nothing
    assert "list" in str(WISH.release(people(9), SPACE, assumes=("the list is public",)).guarantee)


def test_the_public_bounds_are_the_domain_the_catalogues_genres_and_a_constant() -> None:
    centre = genre_centre(SPACE)
    assert np.allclose(centre[:6], FLAGS.sum(axis=0) / FLAGS.sum())
    box = WISH.mechanism(SPACE, centre).bounds
    assert (box.lower, box.upper) == ((0.0,) * 12, (1.0,) * 12)
    assert box.l2 == GENRES_RADIUS
    assert replace(WISH, radius=0.7).mechanism(SPACE).bounds.l2 == 0.7
    assert genre_centre(GenreProfile(np.zeros((2, 4), dtype=np.bool_))).tolist() == [0.25] * 8
    with pytest.raises(InvalidParameter, match="12 features"):
        WISH.mechanism(SPACE, centre[:5])


def test_without_delta_the_guarantee_is_pure_and_the_prototypes_are_a_grids() -> None:
    wish = replace(WISH, delta=None, users=5000)
    made = wish.release(people(5000), SPACE, centre=genre_centre(SPACE))
    assert (made.guarantee.epsilon, made.guarantee.delta, made.guarantee.proof) == (1.0, 0.0, "grid-prototypes")
    assert made.guarantee == wish.promised(SPACE)
    assert 290 <= len(made) <= 310
    drawn = wish.mechanism(SPACE)
    assert (drawn.k, drawn.bounds.l1_bound, drawn.bounds.signed) == (8, 2.0, False)  # type: ignore[union-attr]
    means = np.average(made.rows, axis=0, weights=made.sizes)
    assert np.abs(means - people(5000).mean(axis=0)).max() < 0.1


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0.0}, {"delta": 1.0}, {"count": 0}, {"spread": -0.1}, {"spread": 1.5}, {"radius": 0.0}, {"name": ""}],
    ids=str,
)
def test_parameters_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        PrivateLookAlikes(**({"epsilon": 1.0} | wrong))


# --- the ledger


def test_the_charge_comes_first_and_a_retry_gives_the_same_bytes(ledger: PrivacyLedger) -> None:
    read: list[int] = []

    def features() -> Any:
        assert ledger.statement("users").charges  # charged before anybody's features are read
        read.append(1)
        return people(800)

    first = WISH.charged(features, SPACE, ledger, "users")
    again = WISH.charged(features, SPACE, ledger, "users")
    assert read == [1]
    assert first.to_bytes() == again.to_bytes()
    other = replace(WISH, name="next year").charged(features, SPACE, ledger, "users")
    assert read == [1, 1]
    assert other.to_bytes() != first.to_bytes()
    with pytest.raises(BudgetExhausted):
        replace(WISH, name="one more").charged(features, SPACE, ledger, "users")
    assert read == [1, 1]


def test_users_who_were_promised_nothing_are_not_released(ledger: PrivacyLedger) -> None:
    with pytest.raises(UnknownSubject):
        WISH.charged(lambda: people(10), SPACE, ledger, "others")


@pytest.fixture
def rich(tmp_path: Path) -> Any:
    """A ledger for many releases."""
    with PrivacyLedger.create(tmp_path / "rich.db") as opened:
        opened.enrol("users", Budget(epsilon=1000.0, delta=1e-2), protects=ONE_USER)
        yield opened


class ToldTooMuch(Exception):
    pass


def test_an_error_after_the_draw_uses_the_release_up_and_tells_nothing(
    ledger: PrivacyLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise one charge would pay for as many draws as there are errors, each of which may speak of its draw."""
    drawn: list[LookAlikes] = []
    packed = LookAlikes.to_bytes

    def failing(self: LookAlikes) -> bytes:
        drawn.append(self)
        raise ToldTooMuch(f"sizes {self.sizes[:3]}")

    monkeypatch.setattr(LookAlikes, "to_bytes", failing)
    for _ in range(3):
        with pytest.raises(Conflict, match="another `name`") as problem:
            WISH.charged(lambda: people(100), SPACE, ledger, "users")
        assert problem.value.__cause__ is None
        assert problem.value.__context__ is None
        assert "sizes" not in str(problem.value)
    monkeypatch.setattr(LookAlikes, "to_bytes", packed)
    with pytest.raises(Conflict):
        WISH.charged(lambda: people(100), SPACE, ledger, "users")
    assert len(drawn) == 1
    assert ledger.statement("users").charges == 1
    assert len(replace(WISH, name="anew").charged(lambda: people(100), SPACE, ledger, "users"))


def test_what_is_longer_than_a_ledger_keeps_is_used_up_too(
    ledger: PrivacyLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.ledger.account.MOST_BYTES", 100)
    for _ in range(2):
        with pytest.raises(Conflict, match="nothing could be drawn"):
            WISH.charged(lambda: people(100), SPACE, ledger, "users")


def test_floats_that_a_caller_has_made_errors_of_are_none_while_drawing(ledger: PrivacyLedger) -> None:
    def features() -> Any:
        return people(50) / np.zeros(1) * 0.0

    with np.errstate(all="raise"):
        assert len(WISH.charged(features, SPACE, ledger, "users")) >= 1


def test_a_centre_that_does_not_fit_is_refused_before_the_charge(ledger: PrivacyLedger) -> None:
    with pytest.raises(InvalidParameter, match="12 features"):
        WISH.charged(lambda: people(5), SPACE, ledger, "users", centre=np.zeros(5))
    assert not ledger.statement("users").charges


@pytest.mark.parametrize(
    "other",
    [
        {"epsilon": 0.9},
        {"delta": 1e-7},
        {"count": 299},
        {"radius": 0.5},
        {"spread": 0.03},
        {"seed": 1},
        {"grid_prototypes": 7},
        {"users": 2999},
        {"name": "others"},
    ],
    ids=str,
)
def test_another_parameter_is_another_release_with_another_charge(rich: PrivacyLedger, other: dict[str, Any]) -> None:
    first = WISH.charged(lambda: people(200), SPACE, rich, "users")
    assert rich.statement("users").charges == 1
    second = replace(WISH, **other).charged(lambda: people(200), SPACE, rich, "users")
    assert rich.statement("users").charges == 2
    assert second.to_bytes() != first.to_bytes()


def refitted(seed: int) -> FoldedTaste:
    rng = np.random.default_rng(seed)
    return FoldedTaste(rng.normal(size=(40, 3)), np.zeros(40), 3.5, np.ones(4))


def test_features_of_another_space_or_of_other_users_are_another_release(rich: PrivacyLedger) -> None:
    """The same kind and dimension, but refitted factors: features of these two mean different things."""
    rows = np.random.default_rng(2).uniform(-1.0, 1.0, (100, 3))
    charges = []
    for space in (refitted(1), refitted(2), refitted(1)):
        WISH.charged(lambda: rows, space, rich, "users")
        charges.append(rich.statement("users").charges)
    assert charges == [1, 2, 2]
    ways: list[dict[str, Any]] = [{"whose": "of many"}, {"centre": np.zeros(3)}, {"assumes": ("a list",)}]
    for count, own in enumerate(ways, start=3):
        for _ in range(2):
            WISH.charged(lambda: rows, refitted(1), rich, "users", **own)
            assert rich.statement("users").charges == count


def test_other_users_who_have_enough_ratings_are_another_release(rich: PrivacyLedger) -> None:
    genres = GenreProfile(WORLD.catalogue.genres)  # type: ignore[arg-type]
    for space in (genres, FoldedTaste(np.ones((60, 2)), np.zeros(60), 3.0, np.ones(3))):
        before = rich.statement("users").charges
        for least in (10, 11, 10):
            of_ratings(WISH, WORLD, space, least, rich, "users", (WORLD, ()))
        assert rich.statement("users").charges == before + 2


def test_which_items_were_rated_is_not_in_the_name_of_a_release(rich: PrivacyLedger) -> None:
    """A name is shown to whoever reads the ledger. One user with an item of her own must not change it."""
    listed = WORLD.catalogue.genres
    assert listed is not None
    fewer = WORLD.subset(WORLD.items != 7).compact()
    assert len(fewer.catalogue.ids) == len(WORLD.catalogue.ids) - 1
    for ratings in (WORLD, fewer):
        space = GenreProfile(ratings.catalogue.genres)  # type: ignore[arg-type]
        of_ratings(WISH, ratings, space, 10, rich, "users", (WORLD, ()))
    assert rich.statement("users").charges == 1


def test_users_with_fewer_ratings_are_not_wanted() -> None:
    space = GenreProfile(WORLD.catalogue.genres)  # type: ignore[arg-type]
    features = space.of_many(WORLD.starts, WORLD.items, WORLD.values)
    least = int(np.median(WORLD.counts)) + 1
    wanted = wanted_users(WORLD, space, features, least)
    assert wanted.any()
    assert WORLD.counts[wanted].min() >= least
    assert not wanted[WORLD.counts < least].any()
    tastes = FoldedTaste(np.ones((60, 2)), np.zeros(60), 3.0, np.ones(3))
    assert (wanted_users(WORLD, tastes, np.zeros((400, 2)), least) == (WORLD.counts >= least)).all()


def test_only_the_features_of_wanted_users_are_released(rich: PrivacyLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    release = PrivateLookAlikes.release

    def noted(self: PrivateLookAlikes, features: Any, *rest: Any, **own: Any) -> LookAlikes:
        read.append(np.asarray(features))
        return release(self, features, *rest, **own)

    monkeypatch.setattr(PrivateLookAlikes, "release", noted)
    least = int(np.median(WORLD.counts)) + 1
    enough = int((WORLD.counts >= least).sum())
    genres = GenreProfile(WORLD.catalogue.genres)  # type: ignore[arg-type]
    tastes = FoldedTaste(np.ones((60, 2)), np.zeros(60), 3.0, np.ones(3))
    for space in (genres, tastes):
        of_ratings(WISH, WORLD, space, least, rich, "users", (WORLD, ()))
    assert 0 < len(read[0]) <= enough < len(WORLD.counts)
    assert len(read[1]) == enough


def test_what_is_assumed_is_in_the_charge(ledger: PrivacyLedger) -> None:
    made = WISH.charged(lambda: people(50), SPACE, ledger, "users", assumes=("the list is public",))
    assert "the list is public" in ledger.statement("users").promised.assumes
    assert "the list is public" in made.guarantee.assumes


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("accounting", [Accounting.ZCDP, Accounting.BASIC])
def test_a_budget_of_the_same_epsilon_and_delta_holds_a_release(
    tmp_path: Path, epsilon: float, accounting: Accounting
) -> None:
    wish = replace(WISH, epsilon=epsilon)
    with PrivacyLedger.create(tmp_path / "just.db") as just:
        just.enrol("users", Budget(epsilon, 1e-6), protects=ONE_USER, accounting=accounting)
        made = wish.charged(lambda: people(50), SPACE, just, "users")
        assert (made.guarantee.epsilon, made.guarantee.delta) == (epsilon, 1e-6)
        with pytest.raises(TacitError):
            replace(wish, name="more").charged(lambda: people(50), SPACE, just, "users")


# --- several organisations


def test_releases_of_several_organisations_promise_what_the_weakest_does_if_nobody_is_in_two() -> None:
    parts = [replace(WISH, epsilon=epsilon).release(people(500, seed), SPACE) for epsilon, seed in ((1.0, 1), (2.0, 2))]
    both = LookAlikes.joined(parts)
    assert len(both) == len(parts[0]) + len(parts[1])
    assert float(both.sizes.sum()) == pytest.approx(sum(float(part.sizes.sum()) for part in parts), rel=1e-5)
    assert (both.guarantee.epsilon, both.guarantee.delta) == (2.0, 1e-6)
    assert any(NOBODY_TWICE in reason for reason in both.guarantee.assumes)
    assert LookAlikes.joined(parts[:1]) is parts[0]
    silent = WISH.release(people(50), SPACE, noise=ReplayedNoise(1))
    assert LookAlikes.joined([*parts, silent]).guarantee == silent.guarantee  # nothing more is assumed for no promise
    other = message_of(LookAlikes, silent.rows, silent.sizes, nothing(ONE_PROFILE, "as they are"))
    assert LookAlikes.joined([*parts, other]).guarantee.promises_nothing  # in whatever unit it would have been
    with pytest.raises(InvalidParameter):
        LookAlikes.joined([])
    with pytest.raises(InvalidParameter):
        LookAlikes.joined([parts[0], message_of(LookAlikes, np.zeros((1, 3)), np.ones(1), pure(1.0, ONE_USER))])


def test_a_message_of_look_alikes_comes_back_whole_or_not_at_all() -> None:
    made = WISH.release(people(500), SPACE)
    content = made.to_bytes()
    back = LookAlikes.from_bytes(content)
    assert (back.rows == made.rows).all()
    assert (back.sizes == made.sizes).all()
    assert back.guarantee == made.guarantee
    damaged = bytearray(content)
    damaged[-3] ^= 1
    for wrong in (bytes(damaged), content[:-8], b"", b"nothing of the kind"):
        with pytest.raises(InvalidModel):
            LookAlikes.from_bytes(wrong)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]]], ids=str)
def test_sizes_that_are_no_weights_are_refused(sizes: Any) -> None:
    with pytest.raises(InvalidModel, match="size"):
        message_of(LookAlikes, np.zeros((2, 3)), np.array(sizes), pure(1.0, ONE_USER))


# --- a store


@pytest.mark.usefixtures("trained")
def test_a_store_is_fitted_with_private_look_alikes_and_keeps_them(ledger: PrivacyLedger, tmp_path: Path) -> None:
    store = fit(WORLD, look_alikes=WISH, ledger=ledger, least=10)
    assert store.look_alike_sizes is not None
    assert len(store.look_alike_sizes) == len(store.look_alikes) >= 1
    assert store.look_alikes_guarantee.epsilon == 1.0
    assert "weighed by size" in str(store)
    raw = fit(WORLD, least=10)
    assert raw.look_alikes_guarantee == REAL_USERS
    assert raw.look_alike_sizes is None
    assert not {tuple(row) for row in raw.look_alikes.tolist()} & {tuple(row) for row in store.look_alikes.tolist()}
    back = Store.load(store.save(tmp_path / "store"))
    assert back.version == store.version
    assert back.look_alike_sizes is not None
    assert (back.look_alike_sizes == store.look_alike_sizes).all()
    assert back.look_alikes_guarantee == store.look_alikes_guarantee
    assert ledger.statement("users").charges == 1
    same = fit(WORLD, look_alikes=WISH, ledger=ledger, least=10)  # a retry: no second charge, no second draw
    assert ledger.statement("users").charges == 1
    assert (same.look_alikes == store.look_alikes).all()


@pytest.mark.usefixtures("trained")
def test_whoever_has_too_few_ratings_is_left_out_by_her_own_ratings_and_nobody_left_is_no_error(
    ledger: PrivacyLedger,
) -> None:
    store = fit(WORLD, look_alikes=WISH, ledger=ledger, least=1000)
    assert len(store.look_alikes) >= 1


@pytest.mark.usefixtures("trained")
def test_what_is_assumed_of_the_items_is_said(ledger: PrivacyLedger) -> None:
    assert WORLD.catalogue.listed.all()
    assert RATED_AT_ALL not in fit(WORLD, look_alikes=WISH, ledger=ledger, least=10).look_alikes_guarantee.assumes
    blind = load("movielens-small")
    wish = replace(WISH, name="blind")
    assert RATED_AT_ALL in fit(blind, look_alikes=wish, ledger=ledger).look_alikes_guarantee.assumes


def test_features_of_fitted_factors_assume_that_these_are_public(ledger: PrivacyLedger) -> None:
    store = fit(WORLD, model="factors", rank=3, look_alikes=WISH, ledger=ledger, least=10)
    assert FACTORS_PUBLIC in store.look_alikes_guarantee.assumes
    assert np.abs(store.look_alikes).max() <= 1.0


@pytest.mark.usefixtures("trained")
def test_look_alikes_that_organisations_released_make_a_store(ledger: PrivacyLedger) -> None:
    dimension = 2 * len(WORLD.catalogue.vocabulary)
    given = message_of(LookAlikes, np.full((2, dimension), 0.1), np.array([3.0, 5.0]), pure(0.5, ONE_USER))
    store = fit(WORLD, look_alikes=given)
    assert store.look_alikes_guarantee == given.guarantee
    assert store.look_alike_sizes is not None
    assert store.look_alike_sizes.tolist() == [3.0, 5.0]


@pytest.mark.usefixtures("trained")
def test_private_look_alikes_need_a_ledger_and_others_take_none(ledger: PrivacyLedger) -> None:
    with pytest.raises(InvalidParameter, match="charged"):
        fit(WORLD, look_alikes=WISH)
    with pytest.raises(InvalidParameter, match="are not charged"):
        fit(WORLD, ledger=ledger)
    assert not ledger.statement("users").charges
