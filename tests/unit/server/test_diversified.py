"""Slates by a determinant: against one worked out item by item, and what becomes of large and small alpha, and of chance."""

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.errors import InvalidModel, InvalidParameter
from tacit.messages.multi_selection import Reply, Signal
from tacit.messages.store import Store
from tacit.models.dpp.laws import k_dpp_law, subsets
from tacit.models.items import Classes
from tacit.models.scorers import FactorScorer, TwoTower, class_scores
from tacit.server import Algorithm, AnswerSettings, MultiSelection
from tacit.server.multi_selection import OWN_SHARE, class_vectors
from tests.releases import changed
from tests.unit.models.posterior import look_alike_weights
from tests.unit.server.small_store import random_features, signal_of, small_store

NEARLY_ALL = 1.0 - 1e-9  # of the posterior's weight


@pytest.fixture(scope="module")
def store() -> Store:
    return small_store()


@pytest.fixture(scope="module")
def signal() -> Signal:
    return signal_of(random_features(1, seed=42)[0])


def server(store: Store, seed: int = 3, **settings: object) -> MultiSelection:
    options: dict[str, object] = {"coverage": NEARLY_ALL, **settings}
    return MultiSelection(store, "dpp", "none", rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]


def codes(store: Store, reply: Reply) -> list[int]:
    return [store.items.code_of_number(number) for number in reply.items]


def expected(store: Store, signal: Signal) -> np.ndarray:
    """The mean utility of every class under the posterior, look-alike by look-alike."""
    weights = look_alike_weights(signal.values, store.look_alikes, float(signal.eta))
    return weights @ class_scores(store.scorer, store.look_alikes) / weights.sum()


def cosines(store: Store) -> np.ndarray:
    flags = store.scorer.flags[store.scorer.classes.first].astype(float)  # type: ignore[attr-defined]
    lengths = np.linalg.norm(flags, axis=1)
    return flags @ flags.T / np.maximum(np.outer(lengths, lengths), 1e-300)


def slow(store: Store, signal: Signal, k: int, alpha: float, among: set[int] | None = None) -> list[int]:
    """Each time the class (``among`` these) with the largest determinant, worked out anew."""
    quality = np.exp(alpha / 2.0 * expected(store, signal))
    kernel = quality[:, None] * ((1.0 - OWN_SHARE) * cosines(store) + OWN_SHARE * np.eye(len(quality))) * quality
    chosen: list[int] = []
    for _ in range(k):
        gains = [
            -np.inf
            if one in chosen or (among and one not in among)
            else np.linalg.slogdet(kernel[np.ix_([*chosen, one], [*chosen, one])])[1]
            for one in range(len(kernel))
        ]
        chosen.append(int(np.argmax(gains)))
    return [int(store.scorer.classes.first[one]) for one in chosen]


@pytest.mark.parametrize("alpha", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_slow_one(store: Store, seed: int, alpha: float) -> None:
    signal = signal_of(random_features(1, seed=100 + seed)[0], seed=seed)
    assert codes(store, server(store, alpha=alpha).answer(signal, 6)) == slow(store, signal, 6, alpha)


def test_candidates_are_what_somebody_has_among_her_r_best(store: Store, signal: Signal) -> None:
    scores = class_scores(store.scorer, store.look_alikes)[:, store.scorer.classes.of]
    items = {int(np.lexsort((np.arange(scores.shape[1]), -row))[0]) for row in scores}
    among = set(store.scorer.classes.of[sorted(items)].tolist())
    assert 8 < len(among) < len(store.scorer.classes)
    found = codes(store, server(store, alpha=0.1, r=1).answer(signal, 8))
    assert found == slow(store, signal, 8, 0.1, among) != slow(store, signal, 8, 0.1)


def test_slates_are_nested_and_t_does_not_matter(store: Store, signal: Signal) -> None:
    made = server(store)
    longest = made.answer(signal, 8).items
    assert all(made.answer(signal, k, t).items == longest[:k] for k in (1, 3, 8) for t in (1, k))


def test_a_large_alpha_ranks_by_expected_utility(store: Store, signal: Signal) -> None:
    order = np.argsort(-expected(store, signal), kind="stable")[:6]
    assert codes(store, server(store, alpha=1e5).answer(signal, 6)) == store.scorer.classes.first[order].tolist()


def test_a_smaller_alpha_is_more_diverse_and_less_good(store: Store) -> None:
    apart, good = [], []
    for alpha in (0.5, 3.0, 1e4):
        made = server(store, alpha=alpha)
        found = []
        for seed in range(20):
            signal = signal_of(random_features(1, seed=200 + seed)[0], seed=seed)
            slate = store.scorer.classes.of[codes(store, made.answer(signal, 5))]
            similar = cosines(store)[np.ix_(slate, slate)]
            found.append((1.0 - (similar.sum() - np.trace(similar)) / 20.0, expected(store, signal)[slate].mean()))
        apart.append(np.mean([one for one, _ in found]))
        good.append(np.mean([one for _, one in found]))
    assert apart == sorted(apart, reverse=True)
    assert good == sorted(good)
    assert apart[0] > apart[-1] + 0.1
    assert good[-1] > good[0]


@pytest.mark.parametrize("sampled", [False, True])
def test_more_items_than_genres_or_classes(store: Store, signal: Signal, sampled: bool) -> None:
    made = server(store, sampled=sampled)
    classes = len(store.scorer.classes)
    reply = made.answer(signal, classes)  # five genres, and far more classes
    assert len(set(store.scorer.classes.of[codes(store, reply)].tolist())) == classes
    assert made.answer(signal, classes + 1).short


def test_drawn_slates_follow_the_law_of_the_determinant(signal: Signal) -> None:
    store = small_store(items=6)
    classes = store.scorer.classes
    made = server(store, sampled=True, alpha=1.5)
    drawn = [tuple(sorted(classes.of[codes(store, made.answer(signal, 2))].tolist())) for _ in range(600)]
    pairs = subsets(len(classes), 2)
    counts = np.array([drawn.count(pair) for pair in pairs])

    def p_value(alpha: float) -> float:
        law = k_dpp_law(cosines(store), 2, alpha * expected(store, signal))
        used = law > 1e-12
        assert not counts[~used].any()
        return float(chisquare(counts[used], law[used] / law[used].sum() * counts.sum()).pvalue)

    assert p_value(1.5) > 1e-4
    assert p_value(0.1) < 1e-4


def test_beyond_40_nats_below_the_best_all_items_count_alike(signal: Signal) -> None:
    store = small_store(items=6)
    classes, utilities = store.scorer.classes, expected(store, signal)
    far = utilities.max() - np.sort(utilities)[-2]
    made = server(store, sampled=True, alpha=80.0 / far)  # the second best is 80 nats below, the others further
    drawn = [tuple(sorted(classes.of[codes(store, made.answer(signal, 2))].tolist())) for _ in range(600)]
    pairs, capped = subsets(len(classes), 2), np.where(utilities == utilities.max(), 0.0, -40.0)
    law = k_dpp_law(cosines(store), 2, capped)
    used = law > 1e-12
    assert used.sum() > 2  # not only the two best
    counts = np.array([drawn.count(pair) for pair in pairs])
    assert not counts[~used].any()
    assert chisquare(counts[used], law[used] / law[used].sum() * counts.sum()).pvalue > 1e-4


def test_drawn_slates_differ_from_time_to_time_and_name_the_best_first(store: Store, signal: Signal) -> None:
    made = server(store, sampled=True)
    replies = [codes(store, made.answer(signal, 4)) for _ in range(20)]
    assert len({tuple(reply) for reply in replies}) > 5
    quality = expected(store, signal)[store.scorer.classes.of]
    assert all(np.all(np.diff(quality[reply]) <= 0.0) for reply in replies)
    assert server(store, sampled=True).answer(signal) == server(store, sampled=True).answer(signal)  # the same coins


def test_an_empty_signal_is_answered_as_anybody_would_be(store: Store) -> None:
    told_nothing = AnswerSettings(Algorithm.DPP).without_signal()
    assert told_nothing.algorithm is Algorithm.DPP
    assert told_nothing.ignores_signal


def test_the_signal_that_ignores_itself_weighs_all_alike(store: Store) -> None:
    made = server(store, ignores_signal=True)
    one, other = (signal_of(random_features(1, seed=seed)[0]) for seed in (5, 6))
    assert made.answer(one).items == made.answer(other).items


def test_guarantees_are_what_they_were(store: Store, signal: Signal) -> None:
    before = signal.guarantee
    made = server(store)
    made.answer(signal)
    assert signal.guarantee == before
    assert made.guarantee == store.guarantee


def test_factors_are_vectors_too(store: Store, signal: Signal) -> None:
    rng = np.random.default_rng(1)
    factors = FactorScorer(rng.normal(size=(len(store.items), store.space.dimension)), np.zeros(len(store.items)), 2.5)
    other = changed(store, scorer=factors)
    vectors = class_vectors(factors)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert len(set(server(other).answer(signal, 5).items)) == 5


def test_items_without_genres_are_like_none() -> None:
    made = small_store(items=8)
    scorer = made.scorer
    assert isinstance(scorer, TwoTower)
    flags = np.array(scorer.flags)
    flags[2] = False
    vectors = class_vectors(TwoTower(scorer.weights, flags))
    assert np.isfinite(vectors).all()
    assert not vectors[TwoTower(scorer.weights, flags).classes.of[2]].any()


def test_a_scorer_without_vectors_is_refused(store: Store) -> None:
    class Bare:
        kind = "bare"
        dimension = 10
        classes = Classes(np.arange(4, dtype=np.int32))

        def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
            return np.zeros((len(features), len(items)), dtype=np.float32)

        def tensors(self) -> dict[str, np.ndarray]:
            return {}

    with pytest.raises(InvalidModel, match="choose exact"):
        class_vectors(Bare())


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan, np.inf])
def test_alpha_must_be_above_zero(alpha: float) -> None:
    with pytest.raises(InvalidParameter, match="alpha"):
        AnswerSettings(Algorithm.DPP, alpha=alpha)
