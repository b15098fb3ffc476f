"""The server's answers: every algorithm against a slow version of its definition, bad input, tables that fit their store."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tacit.errors import InvalidMessage, InvalidModel, InvalidParameter, NoLookAlikes
from tacit.messages.multi_selection import ModelKind, Reply, Request, Signal
from tacit.messages.store import Store
from tacit.models.multi_selection import fit_ridge, gram_of, principal_components
from tacit.models.scorers import class_scores
from tacit.models.tables import Tables, build_tables, tables_version
from tacit.server import Algorithm, AnswerSettings, LocalModel, MultiSelection
from tests.releases import changed, message_of
from tests.unit.models.posterior import look_alike_weights
from tests.unit.server.small_store import GENRES, random_features, random_network, signal_of, small_store

ALL = list(Algorithm)


@pytest.fixture(scope="module")
def store() -> Store:
    return small_store()


@pytest.fixture(scope="module")
def tables(store: Store) -> Tables:
    return build_tables(store.scorer, store.look_alikes, r=10, store_version=store.version)


def server(store: Store, algorithm: str, local_model: str = "none", seed: int = 3, **options: object) -> MultiSelection:
    return MultiSelection(store, algorithm, local_model, rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]


def codes(store: Store, reply: Reply) -> list[int]:
    return [store.items.code_of_number(number) for number in reply.items]


def item_scores(store: Store, features: np.ndarray) -> np.ndarray:
    return class_scores(store.scorer, features)[:, store.scorer.classes.of].astype(np.float64)


@pytest.fixture(scope="module")
def signal() -> Signal:
    return signal_of(random_features(1, seed=42)[0])


@pytest.mark.parametrize("algorithm", ALL)
def test_every_algorithm_answers_with_k_different_items(store: Store, signal: Signal, algorithm: str) -> None:
    for k in (1, 2, 5):
        reply = server(store, algorithm).answer(signal, k)
        assert len(set(reply.items)) == k
        assert not reply.short


@pytest.mark.parametrize("algorithm", ALL)
def test_the_same_coins_give_the_same_answer_and_other_coins_do_not_matter_to_those_without(
    store: Store, signal: Signal, algorithm: str
) -> None:
    first = server(store, algorithm).answer(signal)
    assert first == server(store, algorithm).answer(signal)
    if algorithm in ("nopost", "nopost-realuser", "exact"):
        assert first == server(store, algorithm, seed=4).answer(signal)


@pytest.mark.parametrize("algorithm", ALL)
def test_compiled_and_plain_loops_answer_alike(store: Store, signal: Signal, algorithm: str) -> None:
    model = "none" if algorithm.startswith("nopost") else "pca"
    replies = [server(store, algorithm, model, compiled=compiled).answer(signal) for compiled in (True, False)]
    assert replies[0].items == replies[1].items
    assert np.abs(replies[0].numbers) == pytest.approx(np.abs(replies[1].numbers), abs=1e-4)


def test_nopost_ranks_items_at_the_raw_signal(store: Store, signal: Signal) -> None:
    scores = item_scores(store, signal.values[None])[0]
    best = sorted(range(len(scores)), key=lambda item: (-scores[item], item))[:5]
    assert codes(store, server(store, "nopost").answer(signal)) == best


def test_nopost_realuser_ranks_items_for_the_nearest_look_alike(store: Store, signal: Signal) -> None:
    nearest = int(np.argmin(np.abs(store.look_alikes - signal.values).sum(axis=1)))
    scores = item_scores(store, store.look_alikes[nearest : nearest + 1])[0]
    best = sorted(range(len(scores)), key=lambda item: (-scores[item], item))[:5]
    assert codes(store, server(store, "nopost-realuser").answer(signal)) == best


def test_of_two_equally_near_look_alikes_the_first_counts() -> None:
    made = small_store()
    rows = np.array(made.look_alikes)
    rows[3] = rows[17]
    twins = changed(made, look_alikes=rows)
    signal = signal_of(
        rows[3].astype(np.float64) / rows[3].reshape(2, -1).sum(axis=1).repeat(GENRES), Fraction(1, 1000)
    )
    scores = item_scores(twins, rows[3:4])[0]
    assert codes(twins, server(twins, "nopost-realuser").answer(signal, 1)) == [int(np.argmax(scores))]


def greedy_by_item(scores: np.ndarray, weights: np.ndarray, k: int, t: int, r: int) -> list[int]:
    """u^{t,r} for weighted samples, item by item. ``scores`` are samples x items."""
    cut = np.zeros_like(scores)
    for row, values in enumerate(scores):
        best = np.lexsort((np.arange(len(values)), -values))[:r]
        cut[row, best] = values[best]
    slate: list[int] = []
    for _ in range(k):
        bars = np.array([([0.0] * t + sorted(row[slate]))[-t:][0] for row in cut])
        gains = weights @ np.maximum(cut - bars[:, None], 0.0)
        gains[slate] = -1.0
        if gains.max() <= 1e-12:
            break
        slate.append(int(np.argmax(gains > gains.max() - 1e-9)))
    return slate


@pytest.mark.parametrize("algorithm", ["sat-realuser", "avg-realuser", "ig-sig"])
def test_draws_of_look_alikes_give_the_greedy_slate_of_their_items(
    store: Store, signal: Signal, algorithm: str
) -> None:
    for seed in range(10):
        made = server(store, algorithm, seed=seed, r=8)
        rows = replace(made.guess(signal), rng=np.random.default_rng(seed)).draws(25)
        expected = greedy_by_item(
            item_scores(store, store.look_alikes[rows]), np.ones(25), 3, 3 if algorithm.startswith("avg") else 1, 8
        )
        assert codes(store, server(store, algorithm, seed=seed, r=8).answer(signal, 3))[: len(expected)] == expected


@pytest.mark.parametrize("algorithm", ["sat", "avg"])
def test_draws_around_the_signal_give_the_greedy_slate_of_their_items(
    store: Store, signal: Signal, algorithm: str
) -> None:
    for seed in range(5):
        made = server(store, algorithm, seed=seed, r=8)
        drawn = replace(made.guess(signal), rng=np.random.default_rng(seed)).capped(25)
        expected = greedy_by_item(item_scores(store, drawn), np.ones(25), 3, 3 if algorithm == "avg" else 1, 8)
        assert codes(store, made.answer(signal, 3))[: len(expected)] == expected


@pytest.mark.parametrize("eta", [Fraction(1, 50), Fraction(1, 10), Fraction(1)])
@pytest.mark.parametrize("t", [1, 2])
def test_exact_maximises_the_expected_utility_under_the_posterior(store: Store, eta: Fraction, t: int) -> None:
    signal = signal_of(random_features(1, seed=42)[0], eta)
    weights = look_alike_weights(signal.values, store.look_alikes, float(signal.eta))
    made = server(store, "exact", coverage=0.999999999)
    classes = store.scorer.classes
    candidates = np.sort(classes.first[made.tables.columns[: made.tables.candidates]])  # type: ignore[union-attr]
    every = np.flatnonzero(np.isin(classes.of, classes.of[candidates]))
    scores = item_scores(store, store.look_alikes)[:, every]
    expected = [int(every[place]) for place in greedy_by_item(scores, weights, 3, t, len(every))]
    assert len(expected) >= 2
    assert codes(store, made.answer(signal, 3, t))[: len(expected)] == expected


def test_exact_beats_a_slate_of_draws_in_what_both_maximise(store: Store) -> None:
    """Expected best utility under the posterior: greedy on the true weights must not lose to greedy on 25 draws."""
    gains = []
    for seed in range(30):
        signal = signal_of(random_features(1, seed=100 + seed)[0], seed=seed)
        weights = look_alike_weights(signal.values, store.look_alikes, float(signal.eta))
        scores = item_scores(store, store.look_alikes)
        exact, drawn = (
            codes(store, server(store, name, seed=seed).answer(signal, 3)) for name in ("exact", "sat-realuser")
        )
        gains.append(weights @ (scores[:, exact].max(axis=1) - scores[:, drawn].max(axis=1)))
    assert np.mean(gains) > 0.0
    assert min(gains) > -0.02


def test_a_slate_for_a_device_that_takes_two_may_hold_a_class_twice(store: Store) -> None:
    for seed in range(20):
        reply = server(store, "exact").answer(signal_of(random_features(1, seed=seed)[0], seed=seed), 4, 2)
        kinds = store.scorer.classes.of[codes(store, reply)]
        if len(set(kinds.tolist())) < 4:
            return
    pytest.fail("no class was ever picked twice")


def test_ig_sig_learns_nothing_about_the_user(store: Store) -> None:
    one, other = (signal_of(random_features(1, seed=seed)[0]) for seed in (1, 2))
    for model in ("pca", "ridge", "none"):
        assert server(store, "ig-sig", model).answer(one) == server(store, "ig-sig", model).answer(other)
    assert server(store, "sat-realuser").answer(one) != server(store, "sat-realuser").answer(other)


def test_a_signal_that_tells_nothing_is_answered_as_ig_sig_answers(store: Store) -> None:
    empty = Signal.nothing(2 * GENRES, Fraction(1, 10))
    for model in ("ridge", "pca", "none"):
        assert server(store, "sat-realuser", model).answer(empty) == server(store, "ig-sig", model).answer(empty)


def test_exact_answers_a_signal_that_tells_nothing_by_weighing_everybody_alike(store: Store) -> None:
    empty = Signal.nothing(2 * GENRES, Fraction(1, 10))
    reply = server(store, "exact", "ridge").answer(empty, 3)
    scores = item_scores(store, store.look_alikes)
    slate = greedy_by_item(scores, np.full(len(scores), 1 / len(scores)), 3, 1, scores.shape[1])
    assert codes(store, reply) == slate
    assert reply.numbers == pytest.approx(fit_ridge(store.look_alikes, scores[:, slate], np.ones(80)).matrix, abs=2e-3)
    assert reply == server(store, "exact", "ridge", seed=9).answer(empty, 3)  # no coins: there is nothing to draw


def test_ridge_is_fitted_with_tempered_weights_of_all_look_alikes(store: Store, signal: Signal) -> None:
    made = server(store, "exact", "ridge", coverage=0.999999999)
    reply = made.answer(signal, 3)
    weights = look_alike_weights(signal.values, store.look_alikes, 0.4)
    scores = item_scores(store, store.look_alikes)[:, codes(store, reply)]
    expected = fit_ridge(store.look_alikes, scores, weights)
    assert reply.numbers == pytest.approx(expected.matrix, abs=2e-3)  # 16-bit utilities


def test_principal_components_are_those_of_the_posteriors_draws(store: Store, signal: Signal) -> None:
    made = server(store, "sat-realuser", "pca", components=4)
    reply = made.answer(signal, 3)
    coins = np.random.default_rng(3)
    again = replace(made.guess(signal), rng=coins)
    again.draws(25)
    rows, counts = np.unique(again.draws(1000), return_counts=True)
    scores = item_scores(store, store.look_alikes[rows])[:, codes(store, reply)]
    expected = principal_components(gram_of(store.look_alikes[rows], scores, counts), 3, 4)
    at = random_features(1, seed=9)[0]
    assert reply.model is not None
    assert reply.model.estimate(at) == pytest.approx(expected.estimate(at), abs=2e-3)


def test_the_map_of_principal_components_picks_what_they_pick(store: Store, signal: Signal) -> None:
    at = random_features(1, seed=9)[0]
    whole, small = (server(store, "sat-realuser", kind).answer(signal) for kind in ("pca", "pca-map"))
    assert whole.items == small.items
    assert whole.kind is ModelKind.PRINCIPAL_COMPONENTS
    assert small.kind is ModelKind.LINEAR_MAP
    assert whole.model is not None
    assert small.model is not None
    assert whole.model.estimate(at) == pytest.approx(
        small.model.estimate(at), abs=1e-2
    )  # both were sent in single precision


def test_where_the_device_has_the_model_nothing_is_sent_along(store: Store, signal: Signal) -> None:
    assert server(store, "exact", "network").answer(signal).kind is ModelKind.NETWORK
    assert server(store, "exact", "none").answer(signal).kind is ModelKind.NONE


def test_the_wire_form_is_the_same_answer(store: Store, signal: Signal) -> None:
    request = Request(signal, 4, 2)
    assert server(store, "exact", "ridge").answer_bytes(request.to_bytes()) == (
        server(store, "exact", "ridge").answer(signal, 4, 2).to_bytes()
    )


def test_the_length_of_a_reply_depends_on_nothing_that_the_signal_says(store: Store) -> None:
    made = server(store, "sat-realuser", "pca")
    lengths = {
        len(made.answer(signal_of(random_features(1, seed=seed)[0], eta, seed)).to_bytes())
        for seed in range(5)
        for eta in (Fraction(1, 1000), Fraction(1, 10), Fraction(1))
    }
    assert len(lengths) == 1


class TestBadInput:
    def test_a_signal_outside_the_domain_is_normal(self, store: Store) -> None:
        far = message_of(Signal, np.array([-5_000_000, 9_000_000] * GENRES), 20, Fraction(1, 10), simulated=True)
        for algorithm in ALL:
            assert len(server(store, algorithm).answer(far).items) == 5

    @pytest.mark.parametrize(("k", "t"), [(0, 1), (-1, 1), (256, 1), (2, 0), (2, 3), (True, 1), (2.0, 1)])
    def test_sizes_of_slates(self, store: Store, signal: Signal, k: int, t: int) -> None:
        with pytest.raises((InvalidParameter, InvalidMessage)):
            server(store, "exact").answer(signal, k, t)

    def test_a_signal_of_another_dimension_is_refused_without_showing_it(self, store: Store) -> None:
        strange = message_of(Signal, np.array([123456, 7]), 20, Fraction(1, 10), simulated=True)
        with pytest.raises(InvalidMessage) as refused:
            server(store, "exact").answer(strange)
        assert "123456" not in str(refused.value)

    @pytest.mark.parametrize("algorithm", ALL)
    def test_more_items_than_there_are_give_all_of_them_once_and_say_so(self, algorithm: str) -> None:
        tiny = small_store(items=4)
        classes = len(tiny.scorer.classes)
        reply = server(tiny, algorithm).answer(signal_of(random_features(1)[0]), 9)
        assert reply.short
        assert len(reply.items) == (4 if algorithm.startswith("nopost") else classes)
        assert len(reply.to_bytes()) == Reply.size(reply.kind, 9, 2 * GENRES)

    def test_a_short_slate_carries_a_model_of_the_full_length(self) -> None:
        tiny = small_store(items=3)
        for model in ("ridge", "pca", "pca-map"):
            reply = server(tiny, "sat-realuser", model).answer(signal_of(random_features(1)[0]), 9)
            assert Reply.from_bytes(reply.to_bytes()) == reply
            assert reply.model is not None
            assert len(reply.model.estimate(random_features(1)[0])) == len(reply.items)

    def test_r_above_the_number_of_items_is_the_number_of_items(self, store: Store, signal: Signal) -> None:
        assert server(store, "sat-realuser", r=10_000).answer(signal) == server(store, "sat-realuser", r=60).answer(
            signal
        )

    @pytest.mark.parametrize("name", ["draws", "model_draws", "r", "components", "most_rows"])
    def test_sizes_of_draws_below_one(self, name: str) -> None:
        with pytest.raises(InvalidParameter, match=name):
            AnswerSettings(**{name: 0})

    def test_unknown_names_list_the_known_ones(self, store: Store) -> None:
        with pytest.raises(InvalidParameter, match="sat-realuser"):
            MultiSelection(store, "best")
        with pytest.raises(InvalidParameter, match="ridge"):
            MultiSelection(store, "exact", "linear")

    @pytest.mark.parametrize("algorithm", ALL)
    def test_no_look_alikes_is_an_error_at_the_start_where_they_are_needed(
        self, algorithm: str, signal: Signal
    ) -> None:
        nobody = changed(small_store(), look_alikes=np.zeros((0, 2 * GENRES), dtype=np.float32))
        if algorithm in ("nopost", "sat", "avg"):
            assert len(server(nobody, algorithm).answer(signal).items) == 5
            with pytest.raises(NoLookAlikes):
                server(nobody, algorithm, "ridge")
        else:
            with pytest.raises(NoLookAlikes, match="sat, avg or nopost"):
                server(nobody, algorithm)

    def test_principal_components_need_a_posterior(self) -> None:
        with pytest.raises(InvalidParameter, match="nopost has no posterior"):
            AnswerSettings(Algorithm.NOPOST, LocalModel.PCA)

    @pytest.mark.parametrize("score", [np.nan, np.inf, -0.5])
    def test_a_model_with_unusable_scores_is_refused_at_the_start(self, store: Store, score: float) -> None:
        class Strange:
            kind, dimension, classes = "strange", store.scorer.dimension, store.scorer.classes

            def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
                scores = store.scorer.score(features, items).copy()
                scores[0, 0] = score
                return scores

            def tensors(self) -> dict[str, np.ndarray]:
                return {}

        with pytest.raises(InvalidModel, match="at least 0"):
            server(changed(store, scorer=Strange()), "exact")

    def test_a_score_that_turns_unusable_is_an_error_and_no_partial_reply(self, store: Store, signal: Signal) -> None:
        made = server(store, "nopost")
        broken = SimpleNamespace(
            kind="b", dimension=10, classes=store.scorer.classes, score=lambda f, i: np.full((len(f), len(i)), np.nan)
        )
        made.store = changed(store)
        object.__setattr__(made.store, "scorer", broken)
        with pytest.raises(InvalidModel):
            made.answer(signal)


class TestTables:
    def test_they_survive_the_disk_and_answer_the_same(
        self, store: Store, signal: Signal, tables: Tables, tmp_path: Path
    ) -> None:
        tables.save(tmp_path / "tables.safetensors")
        loaded = Tables.load(tmp_path / "tables.safetensors", tables.version)
        for algorithm in ("exact", "sat-realuser"):
            made, again = (server(store, algorithm, "ridge", tables=one, r=10) for one in (tables, loaded))
            assert made.answer(signal) == again.answer(signal)

    def test_tables_of_another_store_or_r_are_refused(self, store: Store, tables: Tables, tmp_path: Path) -> None:
        other = small_store(seed=1)
        with pytest.raises(InvalidModel, match="another"):
            server(other, "exact", tables=tables, r=10)
        with pytest.raises(InvalidModel, match="another"):
            server(store, "exact", tables=tables, r=11)
        tables.save(tmp_path / "tables")
        with pytest.raises(InvalidModel, match="another model"):
            Tables.load(tmp_path / "tables", tables_version(other.version, 10))

    def test_what_is_no_table_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "odd").write_bytes(b"not tables at all, but long enough to be read as a header")
        with pytest.raises(InvalidModel, match="build them again"):
            Tables.load(tmp_path / "odd", "x")

    @pytest.mark.parametrize(
        ("name", "damage"),
        [
            ("starts", lambda a: np.where(np.arange(a.size) == 5, 10**6, a).astype(a.dtype)),
            ("listed", lambda a: np.full_like(a, np.iinfo(a.dtype).max)),
            ("utilities", lambda a: a[:, ::-1].copy()),
            ("features", lambda a: a[:5].copy()),
            ("exact", None),
            ("surplus", lambda a: np.zeros(3)),
        ],
    )
    def test_damaged_tables_are_refused_and_never_looked_up(
        self, tables: Tables, tmp_path: Path, name: str, damage: Callable[[np.ndarray], np.ndarray] | None
    ) -> None:
        from safetensors import safe_open
        from safetensors.numpy import save_file

        place = tmp_path / "tables"
        tables.save(place)
        with safe_open(place, framework="numpy") as file:
            about, arrays = file.metadata(), {one: file.get_tensor(one) for one in file.keys()}  # noqa: SIM118
        if damage is None:
            del arrays[name]
        else:
            arrays[name] = damage(arrays.get(name, np.zeros(3)))
        save_file(arrays, place, metadata=about)
        with pytest.raises(InvalidModel, match="build them again"):
            Tables.load(place, tables.version)

    @pytest.mark.parametrize(
        "change",
        [
            {"starts": lambda t: t.starts + 1},
            {"listed": lambda t: t.listed + 1000},
            {"columns": lambda t: np.zeros_like(t.columns)},
            {"utilities": lambda t: t.utilities[:, :-1]},
            {"tops": lambda t: t.tops[:-1]},
            {"sizes": lambda t: t.sizes * 0},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_an_index_that_points_nowhere_is_noticed(
        self, tables: Tables, change: dict[str, Callable[[Tables], np.ndarray]]
    ) -> None:
        assert tables._consistent()
        ((name, how),) = change.items()
        assert not replace(tables, **{name: how(tables)})._consistent()

    def test_utilities_are_read_back_within_a_ten_thousandth(self, store: Store, tables: Tables) -> None:
        every = np.arange(len(store.scorer.classes))
        read = tables.utilities_of(np.arange(len(tables)), every)
        assert read == pytest.approx(class_scores(store.scorer, store.look_alikes), abs=5e-5)

    def test_a_scale_that_grows_late_keeps_earlier_rows_right(self) -> None:
        """Rows are scored in parts: the largest score may come in the last one."""

        class Growing:
            kind, dimension = "growing", 1
            classes = random_network(np.eye(4, dtype=bool)).classes

            def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
                return np.asarray(features * np.array([[0.1, 0.2, 0.3, 0.4]])[:, items], dtype=np.float32)

            def tensors(self) -> dict[str, np.ndarray]:
                return {}

        levels = np.arange(1.0, 1001.0)[:, None]
        grown = build_tables(Growing(), levels, r=2)
        read = grown.utilities_of(np.arange(1000), np.arange(4))
        assert read == pytest.approx(levels * [[0.1, 0.2, 0.3, 0.4]], abs=3 * 500 / 65535)

    def test_they_take_what_their_arithmetic_says(self) -> None:
        flags = np.unpackbits(np.arange(1, 1001, dtype=">u2").view(np.uint8).reshape(-1, 2), axis=1).astype(bool)[
            :, -10:
        ]
        network = random_network(np.repeat(flags, 17, axis=0))
        built = build_tables(network, random_features(300, genres=10))
        per_look_alike = built.bytes / 300
        assert per_look_alike <= 1.2 * 2 * len(network.classes) + 8 * len(network.classes) / 300
