"""Every parameter of an answer does what it says: laws of draws at several eta, ties, weights, numerics, stores at their edges."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import InvalidModel
from tacit.guarantees import ONE_USER, approximate, nothing
from tacit.messages.multi_selection import Signal
from tacit.messages.store import Store
from tacit.models import loops, multi_selection
from tacit.models.features import FoldedTaste, scaled_blocks
from tacit.models.items import Classes, Items
from tacit.models.multi_selection import PrincipalComponents, gram_of, principal_components
from tacit.models.scorers import FactorScorer, class_scores
from tacit.server import MultiSelection
from tacit.server.multi_selection import choose_slate
from tests.releases import changed, message_of
from tests.unit.models.posterior import look_alike_weights
from tests.unit.server.small_store import GENRES, random_features, signal_of, small_store

ETAS = (Fraction(1, 50), Fraction(1, 10), Fraction(1, 2))


@pytest.fixture(scope="module")
def store() -> Store:
    return small_store()


def server(store: Store, algorithm: str, model: str = "none", seed: int = 3, **options: object) -> MultiSelection:
    return MultiSelection(store, algorithm, model, rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("eta", ETAS)
def test_draws_follow_the_posterior_at_every_eta(store: Store, eta: Fraction, compiled: bool) -> None:
    signal = signal_of(random_features(1, seed=42)[0], eta)
    drawn = server(store, "sat-realuser", compiled=compiled).guess(signal).draws(40_000)
    shares = np.bincount(drawn, minlength=80) / 40_000
    weights = look_alike_weights(signal.values, store.look_alikes, float(eta))
    error = np.sqrt(weights * (1 - weights) / 40_000)
    assert (np.abs(shares - weights) <= 6 * error + 1e-6).all()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("eta", ETAS)
def test_exact_weights_are_those_of_every_eta(store: Store, eta: Fraction, compiled: bool) -> None:
    signal = signal_of(random_features(1, seed=42)[0], eta)
    made = server(store, "exact", compiled=compiled, coverage=0.999999999).guess(signal)
    rows, weights = made.weighted(made.eta)
    expected = look_alike_weights(signal.values, store.look_alikes, float(eta))
    assert weights / weights.sum() == pytest.approx(expected[rows], abs=1e-6)


@pytest.mark.parametrize("eta", ETAS)
def test_cap_draws_around_the_signal_with_noise_of_eta(store: Store, eta: Fraction) -> None:
    signal = signal_of(random_features(1, seed=42)[0], eta)
    made = server(store, "sat", seed=11).guess(signal)
    noise = np.random.default_rng(11).laplace(scale=float(eta), size=(25, 2 * GENRES))
    assert made.capped(25) == pytest.approx(scaled_blocks(signal.values + noise))


def test_other_coins_give_other_draws(store: Store) -> None:
    signal = signal_of(random_features(1, seed=42)[0], Fraction(1, 2))
    made = server(store, "sat-realuser")
    one, other = made.guess(signal).draws(25), made.guess(signal).draws(25)
    assert one.tolist() != other.tolist()  # the server's coins go on
    assert one.tolist() != server(store, "sat-realuser", seed=4).guess(signal).draws(25).tolist()


def test_a_slate_for_two_picks_is_another_slate_for_draws_too(store: Store) -> None:
    different = 0
    for seed in range(20):
        signal = signal_of(random_features(1, seed=seed)[0], Fraction(1, 2), seed)
        for algorithm in ("sat-realuser", "sat"):
            single, double = (server(store, algorithm, seed=seed).answer(signal, 4, t).items for t in (1, 2))
            different += single != double
    assert different >= 5


def test_nopost_sees_the_signal_as_it_is(store: Store) -> None:
    """Not cut to the domain: the raw signal may rank items otherwise than the cut one."""
    different = 0
    for seed in range(40):
        signal = signal_of(random_features(1, seed=seed)[0], Fraction(1, 2), seed)
        raw, cut = (class_scores(store.scorer, row[None])[0] for row in (signal.values, np.clip(signal.values, 0, 1)))
        best = store.scorer.classes.first[int(np.argmax(raw))]
        assert server(store, "nopost").answer(signal, 1).items == (int(store.items.numbers[best]),)
        different += int(np.argmax(raw) != np.argmax(cut))
    assert different > 0


def test_of_look_alikes_at_one_distance_the_first_is_the_nearest() -> None:
    made = small_store()
    rows = np.zeros((2, 2 * GENRES), dtype=np.float32)
    rows[0, [0, GENRES]] = 1.0
    rows[1, [1, GENRES + 1]] = 1.0  # both at distance 2 from an empty signal, with other tastes
    for order in (rows, rows[::-1].copy()):
        two = changed(made, look_alikes=order)
        nothing_said = message_of(Signal, np.zeros(2 * GENRES, dtype=np.int64), 20, Fraction(1, 10), simulated=True)
        best = int(np.argmax(class_scores(two.scorer, order[:1])[0]))
        assert server(two, "nopost-realuser").answer(nothing_said, 1).items == (
            int(two.items.numbers[two.scorer.classes.first[best]]),
        )


def test_beyond_most_rows_an_even_sample_stands_for_all(store: Store) -> None:
    signal = signal_of(random_features(1, seed=42)[0], Fraction(1, 2))
    for algorithm, eta in (("exact", 0.5), ("sat-realuser", 1.0)):
        rows, counts = server(store, algorithm, most_rows=12).guess(signal).weighted(eta)
        assert len(rows) <= 12
        assert counts.sum() == 12
    assert len(server(store, "exact").guess(signal).weighted(0.5)[0]) > 60


class TestNumerics:
    def test_directions_just_above_the_cut_stay_and_those_below_go(self) -> None:
        gram = np.diag([1.0, 1e-10, 1e-14, 1.0])
        assert (np.abs(principal_components(gram, 1, 3).basis).sum(axis=0) > 0).tolist() == [True, True, True]
        gram = np.diag([1.0, 1e-14, 1e-14, 1.0])
        assert (np.abs(principal_components(gram, 1, 3).basis).sum(axis=0) > 0).tolist() == [True, True, False]

    def test_there_are_never_more_components_than_known_entries(self) -> None:
        rng = np.random.default_rng(0)
        rows, utilities = rng.random((50, 3)), rng.random((50, 4))
        model = principal_components(gram_of(rows, utilities, np.ones(50)), 4, 8)
        assert (np.abs(model.basis).sum(axis=0) > 0).sum() == 4  # 1 + d

    def test_an_ill_conditioned_plane_is_solved_without_squaring_its_condition(self) -> None:
        """Two directions whose known parts differ by 1e-5 only: normal equations would lose them among 1e-10."""
        basis = np.array([[1.0, 1.0], [0.0, 1e-5], [2.0, 5.0]])
        exact = np.array([[2.0, 3.0 / 1e-5]])  # u = 2 * known[0] + 3e5 * known[1]
        model = PrincipalComponents(basis, 1)
        for feature in (0.0, 1e-5, 3e-5):
            wanted = exact @ np.array([1.0, feature])
            assert model.estimate(np.array([feature])) == pytest.approx(wanted, rel=1e-6)
            assert model.as_map().estimate(np.array([feature])) == pytest.approx(wanted, rel=1e-6)

    @pytest.mark.parametrize("rows", [1, 2, 50])
    def test_ridge_stays_among_utilities_where_look_alikes_are_alike(self, rows: int) -> None:
        made = small_store()
        alike = np.repeat(made.look_alikes[:1], rows, axis=0)
        few = changed(made, look_alikes=alike if rows != 2 else made.look_alikes[:2])
        reply = server(few, "exact", "ridge").answer(signal_of(random_features(1, seed=3)[0]))
        assert reply.model is not None
        for seed in range(10):
            estimates = reply.model.estimate(random_features(1, seed=seed)[0])
            assert np.abs(estimates).max() < 8.0

    @pytest.mark.parametrize("spread", [1e-2, 1e-3, 1e-5])
    def test_ridge_is_right_where_look_alikes_are_nearly_alike(self, spread: float) -> None:
        made = small_store()
        rng = np.random.default_rng(5)
        near = random_features(1, seed=8)[0] * (1 - spread) + spread * random_features(500, seed=9)
        close = changed(made, look_alikes=near.astype(np.float32))
        reply = server(close, "exact", "ridge").answer(signal_of(near[0], Fraction(1, 10)))
        codes = [close.items.code_of_number(number) for number in reply.items]
        truth = class_scores(close.scorer, near[rng.integers(500, size=5)])[:, close.scorer.classes.of[codes]]
        assert reply.model is not None
        estimates = np.array([reply.model.estimate(near[0])])
        assert estimates == pytest.approx(truth[:1], abs=0.05 + 5 * spread)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_signal_that_lies_far_out_is_weighed_as_precisely(self, store: Store, sign: int) -> None:
        far = message_of(Signal, np.full(2 * GENRES, sign * (1 << 30)), 20, Fraction(1, 1000), simulated=True)
        weights = look_alike_weights(np.clip(far.values, 0.0, 1.0), store.look_alikes, 1e-3)
        for compiled in (True, False):
            made = server(store, "exact", coverage=0.999999999, compiled=compiled).guess(far)
            rows, found = made.weighted(1e-3)
            assert found / found.sum() == pytest.approx(weights[rows], abs=1e-3)


def test_the_components_of_exact_are_those_of_its_weights(store: Store) -> None:
    signal = signal_of(random_features(1, seed=42)[0])
    made = server(store, "exact", "pca", components=4, coverage=0.999999999)
    reply = made.answer(signal, 3)
    codes = [store.items.code_of_number(number) for number in reply.items]
    weights = look_alike_weights(signal.values, store.look_alikes, 0.1)
    scores = class_scores(store.scorer, store.look_alikes)[:, store.scorer.classes.of[codes]]
    expected = principal_components(gram_of(store.look_alikes, scores, weights), 3, 4)
    at = random_features(1, seed=9)[0]
    assert reply.model is not None
    assert reply.model.estimate(at) == pytest.approx(expected.estimate(at), abs=5e-3)


def test_the_components_of_cap_are_of_so_many_draws_as_were_asked(store: Store) -> None:
    signal = signal_of(random_features(1, seed=42)[0])
    asked: list[int] = []
    made = server(store, "sat", "pca", model_draws=77)
    guessed = made.guess(signal)
    items = choose_slate(guessed, 3, 1)
    draw = type(guessed).capped

    def counted(self: object, count: int) -> np.ndarray:
        asked.append(count)
        return draw(self, count)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(guessed), "capped", counted)
        from tacit.server.multi_selection import fit_local_model

        fit_local_model(guessed, items)
    assert asked == [77]


@pytest.mark.parametrize("compiled", [True, False])
def test_tied_candidates_go_by_item_also_where_columns_go_otherwise(compiled: bool) -> None:
    """With t = 2 a class is picked again through its next member, whose item may be larger than another class's first."""
    work = loops.choose(compiled)
    table = np.array([[100, 100]], dtype=np.uint16)  # two candidates, equal utilities
    items, sizes = np.array([0, 1]), np.array([2, 1], dtype=np.int32)
    starts, members = np.array([0, 2], dtype=np.int32), np.array([0, 5, 1], dtype=np.int32)  # items 0 and 5; item 1
    one = (table, table.max(axis=1), np.array([0]), np.ones(1, dtype=np.float32))
    assert work.greedy_on_weights(*one, items, sizes, starts, members, 2, 2, 1e-9).tolist() == [0, 1]
    swapped = (items[::-1].copy(), sizes[::-1].copy(), starts[::-1].copy())
    assert work.greedy_on_weights(*one, *swapped, members, 2, 2, 1e-9).tolist() == [0, 1]


def test_a_short_exact_slate_is_filled_by_weighted_utility() -> None:
    classes = Classes(np.arange(4, dtype=np.int32))
    sums = np.array([0.0, 1.0, 3.0, 2.0])
    assert multi_selection.filled(np.array([0]), classes, 3, lambda: sums).tolist() == [0, 2, 3]
    made = small_store(items=4)
    heavy = np.zeros(80)
    heavy[7] = 1.0
    guessed = server(made, "exact").guess(signal_of(random_features(1)[0]))
    from tacit.server.multi_selection import _utility_sums

    everything = class_scores(made.scorer, made.look_alikes)
    assert _utility_sums(guessed, np.arange(80), heavy) == pytest.approx(everything[7], abs=1e-4)


def test_the_servers_guarantee_is_that_of_model_and_look_alikes(store: Store) -> None:
    paid = approximate(2.0, 1e-6, ONE_USER)
    half = changed(store, model_guarantee=paid, look_alikes_guarantee=nothing(ONE_USER, "real people"))
    assert server(half, "exact").guarantee.promises_nothing
    both = changed(store, model_guarantee=paid, look_alikes_guarantee=approximate(1.0, 1e-7, ONE_USER))
    assert server(both, "exact").guarantee.epsilon == 3.0


class TestOtherSpaces:
    def folded(self) -> Store:
        rng = np.random.default_rng(2)
        factors, offsets = rng.normal(size=(20, 3)).astype(np.float32), np.zeros(20, dtype=np.float32)
        public = nothing(ONE_USER, "made up for a test")
        space = FoldedTaste(factors, offsets, 3.0, np.ones(4, dtype=np.float32))
        people = rng.uniform(-1, 1, (30, 3)).astype(np.float32)
        return message_of(
            Store, Items(np.arange(20)), space, FactorScorer(factors, offsets, 3.0), people, public, public
        )

    @pytest.mark.parametrize("algorithm", ["sat", "avg", "exact", "sat-realuser", "nopost", "ig-sig"])
    def test_every_algorithm_works_where_features_are_not_genres(self, algorithm: str) -> None:
        made = self.folded()
        signal = signal_of(np.full(3, 0.2))
        assert len(server(made, algorithm).answer(signal, 3).items) == 3

    def test_cap_stays_in_the_domain_of_the_space(self) -> None:
        drawn = (
            server(self.folded(), "sat")
            .guess(message_of(Signal, np.full(3, -800_000), 20, Fraction(1, 1000), simulated=True))
            .capped(50)
        )
        assert drawn == pytest.approx(np.full((50, 3), -800_000 / 2**20), abs=0.02)

    @pytest.mark.parametrize("algorithm", ["sat", "avg", "nopost"])
    def test_a_signal_that_tells_nothing_is_answered_without_look_alikes_too(self, algorithm: str) -> None:
        nobody = changed(small_store(), look_alikes=np.zeros((0, 2 * GENRES), dtype=np.float32))
        assert len(server(nobody, algorithm).answer(Signal.nothing(2 * GENRES, Fraction(1, 10)), 4).items) == 4


def test_scores_of_the_models_draws_are_checked_too(store: Store) -> None:
    class Late:
        """Usable until it is asked for a few items of many users: the draws of the local model."""

        kind, dimension, classes = "late", store.scorer.dimension, store.scorer.classes

        def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
            scores = store.scorer.score(features, items).copy()
            return scores - 100.0 if len(features) > 500 else scores

        def tensors(self) -> dict[str, np.ndarray]:
            return {}

    made = server(changed(store, scorer=Late()), "sat", "pca")
    with pytest.raises(InvalidModel):
        made.answer(signal_of(random_features(1)[0]))
