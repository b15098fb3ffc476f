"""Lists with shared moments: the release's noise and promise, the blend of an entity, the gate, harm, and the controls."""

import numpy as np
import pytest
from scipy import sparse

from tacit.data import Entities, synthetic_counts
from tacit.entity.fit import BlendSettings, fit_blend
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import moments, names, ranking
from tacit.evaluation.federated_prototypes.chance import noise_of, rng_of
from tacit.evaluation.federated_prototypes.measures import Ranks
from tacit.evaluation.federated_prototypes.moments import Constants
from tacit.evaluation.federated_prototypes.ranking import Key, Ranked, gate
from tacit.evaluation.federated_prototypes.splits import Held
from tacit.mechanisms.moment_shares import PopularityShare, moment_rhos
from tacit.models.moments import SharedMoments, item_ridge

PLAIN = Constants(0.15, 2.0, 0.3, ((0.0, 0.03), (4.0, 0.1)), 10.0)


def marks(users: int, items: int, seed: int = 1) -> sparse.csr_array:
    """Users of two tastes."""
    rng = np.random.default_rng(seed)
    likes = np.where(np.arange(items)[None, :] % 2 == rng.integers(2, size=users)[:, None], 0.35, 0.03)
    return sparse.csr_array((rng.random((users, items)) < likes) * 1.0)


def test_chance_depends_on_every_part_of_its_name() -> None:
    drawn = {noise_of(seed, *what).draw(8) for seed in (1, 2) for what in (("a", 1), ("a", 2), ("a", 1, 0))}
    assert len(drawn) == 6
    assert noise_of(1, "a").draw(8) == noise_of(1, "a").draw(8)
    assert rng_of(1, "a").random() != rng_of(1, "b").random()


def test_noise_once_and_noise_per_entity_have_the_deviations_of_their_sums() -> None:
    rows = marks(3000, 300)
    popularity, gram = moment_rhos(8.0, names.DELTA, 0.15)
    once = moments.released(rows, 8.0, 0.15, 9, noise_of(1, "x"), once=True).shared
    apart = moments.released(rows, 8.0, 0.15, 9, noise_of(1, "x"), once=False).shared
    assert once.popularity_sd == pytest.approx(1.0 / np.sqrt(2.0 * popularity), rel=1e-9)
    assert apart.popularity_sd == pytest.approx(3.0 * once.popularity_sd, rel=1e-9)
    assert apart.gram_sd == pytest.approx(3.0 * once.gram_sd, rel=1e-9)
    assert once.gram_sd == pytest.approx(0.5 / np.sqrt(gram), rel=1e-9)


def test_the_noise_drawn_has_the_deviation_that_is_told() -> None:
    rows = marks(2000, 2000)
    exact = PopularityShare(2000, 1.0, names.DELTA).totals(rows) / 2**20
    for once, spread in ((True, 1.0), (False, 5.0)):
        shared = moments.released(rows, 1.0, 0.15, 25, noise_of(3, once), once=once).shared
        drawn = float((shared.popularity - exact).std())
        assert drawn == pytest.approx(spread * 11.6987, rel=0.08)


def test_guarantees_are_those_of_the_whole_budget_whoever_adds_the_noise() -> None:
    rows = marks(3000, 200)
    for once in (True, False):
        found = moments.released(rows, 4.0, 0.15, 9, noise_of(1, "y"), once=once)
        assert found.shared.informative
        assert found.guarantee.epsilon == pytest.approx(4.0, rel=1e-6)
        assert found.guarantee.epsilon <= 4.0 * (1.0 + 1e-9)
        assert found.guarantee.delta == names.DELTA
        assert any("sum" in one for one in found.guarantee.assumes) == once


def test_where_the_release_tells_nothing_only_the_popularity_is_paid() -> None:
    found = moments.released(marks(30, 400), 0.1, 0.15, 9, noise_of(1, "z"), once=True)
    assert not found.shared.informative
    assert found.guarantee.epsilon < 0.1
    base = item_ridge(marks(30, 400), 2.0)
    assert np.array_equal(moments.blended_scores(base, found.shared, 0.1, PLAIN, 30), moments.own_scores(base, PLAIN))


def test_a_run_that_is_not_stopped_goes_on_with_the_same_popularity_and_the_smallest_head() -> None:
    rows = marks(30, 400)
    stopped, not_ = (
        moments.released(rows, 0.5, 0.15, 9, noise_of(1, "z"), once=False, stops=stops) for stops in (True, False)
    )
    assert not stopped.shared.informative
    assert np.array_equal(stopped.shared.popularity, not_.shared.popularity)
    assert not_.shared.head.size == 60
    assert not_.shared.popularity[not_.shared.head].min() >= np.sort(stopped.shared.popularity)[-60]
    assert stopped.guarantee.epsilon < 0.5
    assert not_.guarantee.epsilon == pytest.approx(0.5, rel=1e-6)
    many = marks(3000, 400)
    both = [moments.released(many, 8.0, 0.15, 9, noise_of(1, "z"), once=True, stops=stops) for stops in (True, False)]
    assert both[0].shared.informative
    assert np.array_equal(both[0].shared.pseudo_rows, both[1].shared.pseudo_rows)


def test_the_popularity_alone_has_the_whole_budget_and_no_pseudo_rows() -> None:
    everybody, mine = marks(3000, 200), marks(40, 200, seed=7)
    found = moments.popularity_alone(everybody, 4.0, 9, noise_of(1, "p"))
    assert found.guarantee.epsilon == pytest.approx(4.0, rel=1e-6)
    assert any("at least 9 shares" in one for one in found.guarantee.assumes)
    part = moments.released(everybody, 4.0, 0.15, 9, noise_of(1, "p"), once=True).shared.popularity_sd
    assert found.shared.popularity_sd == pytest.approx(part * np.sqrt(0.15), rel=1e-6)
    assert not found.shared.informative
    base = item_ridge(mine, PLAIN.ridge)
    scores = moments.popular_scores(base, found.shared, PLAIN, 3000)
    added = scores - moments.own_scores(base, PLAIN)
    assert added == pytest.approx(np.tile(PLAIN.gamma * np.maximum(found.shared.popularity, 0.0) / 3000, (40, 1)))
    assert added.max() > 0.01


def test_scores_are_those_of_an_entity() -> None:
    """The evaluation reuses a regression for many releases; an entity does the same in one go."""
    everybody, mine = marks(3000, 200), marks(40, 200, seed=7)
    shared = moments.released(everybody, 4.0, 0.15, 9, noise_of(2, "s"), once=True).shared
    settings = BlendSettings(ridge=PLAIN.ridge, alpha=0.1, gamma=PLAIN.gamma, users=3000)
    entity = fit_blend(mine, shared, settings, rng=np.random.default_rng(1), gate=False)
    found = moments.blended_scores(item_ridge(mine, PLAIN.ridge), shared, 0.1, PLAIN, 3000)
    assert found == pytest.approx(entity.scores())
    alone = fit_blend(mine, None, settings, rng=np.random.default_rng(1))
    assert moments.own_scores(item_ridge(mine, PLAIN.ridge), PLAIN) == pytest.approx(alone.scores())


def test_alphas_go_by_epsilon_and_by_how_noisy_the_sum_is() -> None:
    assert PLAIN.alpha(1.0) == 0.03
    assert PLAIN.alpha(4.0) == 0.1
    assert PLAIN.alpha(8.0, spread=4) == 0.1
    assert PLAIN.alpha(8.0, spread=9) == 0.03


def test_a_release_of_nobody_has_the_heads_size_and_none_of_its_content() -> None:
    rows = marks(3000, 600)
    real = moments.released(rows, 4.0, 0.15, 9, noise_of(1, "n"), once=True).shared
    nobody = moments.of_nobody(real, 600, 0.15, 4.0, noise_of(2, "n"))
    assert nobody.head.size == real.head.size
    assert nobody.gram_sd == pytest.approx(real.gram_sd, rel=1e-9)
    assert abs(nobody.popularity.mean()) < 4.0 * nobody.popularity_sd / np.sqrt(600)
    assert np.linalg.norm(nobody.pseudo_rows) < 0.5 * np.linalg.norm(real.pseudo_rows)


def judged(ndcg: list[float]) -> Ranks:
    found = Ranks.empty(len(ndcg))
    for values in found:
        values[:] = 1.0
    found.ndcg[:] = ndcg
    return found


HELD = Held(
    sparse.csr_array((12, 3)), sparse.csr_array((12, 3)), np.tile([False] * 3 + [True] * 3, 2), np.repeat([0, 1], 6), 2
)  # fmt: skip


def test_the_gate_asks_users_who_are_not_reported_and_nobody_else() -> None:
    own = judged([0.5] * 12)
    harm, gain = [0.2, 0.3, 0.25], [0.7, 0.8, 0.9]
    blend = judged([*harm, *gain, *gain, *harm])
    chosen, used = gate(HELD, own, blend)
    assert used == 1
    assert chosen.ndcg[:6].tolist() == [0.5] * 6
    assert chosen.ndcg[6:].tolist() == [*gain, *harm]


def test_a_difference_within_one_error_lets_the_blend_in() -> None:
    blend = judged([0.4, 0.6, 0.49] * 4)
    assert gate(HELD, judged([0.5] * 12), blend)[1] == 2


def test_an_entity_without_users_to_ask_takes_the_blend() -> None:
    held = Held(HELD.train, HELD.test, np.ones(12, dtype=np.bool_), HELD.entities, 2)
    assert gate(held, judged([0.5] * 12), judged([0.0] * 12))[1] == 2


def test_harm_is_counted_over_entities_and_draws_by_reported_users() -> None:
    own = judged([0.5] * 12)
    worse = judged([0.9] * 3 + [0.1, 0.12, 0.14] + [0.1] * 3 + [0.6, 0.7, 0.8])
    found = {Key(names.INDIVIDUAL, names.INF): own, Key(names.MOMENTS, 1.0, 0): worse, Key(names.MOMENTS, 1.0, 1): own}
    tried = Ranked("w", HELD, found, {}, {})
    assert tried.harmed(names.MOMENTS, 1.0) == (1, 4)
    gain = tried.gain(names.MOMENTS, 1.0)
    assert gain is not None
    expected = np.array([0.1, 0.12, 0.14, 0.6, 0.7, 0.8])
    assert gain.value == pytest.approx(((expected - 0.5) / 2).mean())
    assert gain.n == 6
    assert tried.gain(names.MOMENTS, 2.0) is None


@pytest.fixture(scope="module")
def small() -> Ranked:
    world = synthetic_counts(users=600, items=80, rank=5, law="gamma", rng=np.random.default_rng(3))
    world = world.with_entities(Entities("entity", tuple("abcdef"), np.arange(600) % 6))
    return ranking.ranked(names.HOSPITALS, world, Effort.QUICK, seed=1)


def test_a_whole_world_has_every_method_and_the_same_figures_again(small: Ranked) -> None:
    rows = list(ranking.rows(small))
    assert len({(row.method, row.metric, tuple(row.setting.items())) for row in rows}) == len(rows)
    methods = {row.method for row in rows}
    assert {
        names.INDIVIDUAL,
        names.MOMENTS,
        names.MOMENTS_NO_GATE,
        names.MOMENTS_APART,
        names.MOMENTS_NOT_STOPPED,
        names.POPULARITY_PRIOR,
        names.POPULARITY,
        names.CENTRAL,
    } <= methods
    assert all(row.setting["world"] == names.HOSPITALS for row in rows)
    assert {row.metric for row in rows} >= {"mean rank", "recall@20", "NDCG@20", ranking.GAIN, ranking.HARMED}
    world = synthetic_counts(users=600, items=80, rank=5, law="gamma", rng=np.random.default_rng(3))
    world = world.with_entities(Entities("entity", tuple("abcdef"), np.arange(600) % 6))
    again = ranking.ranked(names.HOSPITALS, world, Effort.QUICK, seed=1)
    assert list(ranking.rows(again)) == rows


def test_figures_are_of_the_users_reported_and_releases_promise_what_was_asked_for(small: Ranked) -> None:
    found = small.ranks(names.INDIVIDUAL, names.INF)
    assert found is not None
    assert found.ndcg.size == small.held.reported.sum() == 300
    own = small.found[Key(names.INDIVIDUAL, names.INF)]
    assert np.array_equal(found.ndcg, own.ndcg[small.held.reported], equal_nan=True)
    assert len(small.guarantees) >= 4
    for name, one in small.guarantees.items():
        epsilon = float(name.split("epsilon=")[1])
        assert one.epsilon <= epsilon * (1.0 + 1e-9)


def test_a_world_whose_runs_are_not_stopped_has_the_same_figures_for_both(small: Ranked) -> None:
    """And where the rule stops a run, the method keeps to itself; the line that goes on does not."""
    for epsilon in (1.0, 4.0):
        stopped = not small.releases[Key(names.MOMENTS_APART, epsilon)].shared.informative
        own = small.found[Key(names.INDIVIDUAL, names.INF)]
        method = small.found[Key(names.MOMENTS_APART, epsilon)]
        assert np.array_equal(method.ndcg, own.ndcg, equal_nan=True) == stopped
        other = small.found[Key(names.MOMENTS_NOT_STOPPED, epsilon)]
        assert np.array_equal(method.ndcg, other.ndcg, equal_nan=True) != stopped
        assert small.releases[Key(names.MOMENTS_NOT_STOPPED, epsilon)].shared.informative


def test_where_nothing_is_told_scores_alone_are_the_popularity() -> None:
    shared = SharedMoments(np.array([3.0, -1.0, 2.0]), np.zeros(0, dtype=np.int64), np.zeros((0, 0)), 1.0, 1.0, 0)
    found = moments.alone_scores(marks(2, 3), shared=shared, constants=PLAIN, users=10)
    assert found.tolist() == [[0.3, 0.0, 0.2]] * 2
