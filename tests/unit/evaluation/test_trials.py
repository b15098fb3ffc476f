"""Trials against the real thing: the same picks as device, wire and server; nested slates; the same for any number of processes."""

from fractions import Fraction

import numpy as np
import pytest

from tacit.device.multi_selection import best, estimator
from tacit.evaluation.multi_selection.losses import D_F, D_I, Case, Losses
from tacit.evaluation.multi_selection.parallel import losses
from tacit.evaluation.multi_selection.plan import ETAS, IG_SIG_EXACT, Effort, Task, main_tasks, plan
from tacit.evaluation.multi_selection.remembering import Remembering
from tacit.evaluation.multi_selection.trials import ANY_ETA, Bench, bench, coins, noise_seed, signal_of
from tacit.mechanisms import ReplayedNoise
from tacit.messages.multi_selection import Signal
from tacit.models import loops
from tacit.server.multi_selection import Algorithm, AnswerSettings, Guess, LocalModel, MultiSelection, choose_slate
from tacit.systems.multi_selection import simulate
from tests.unit.evaluation.tiny_world import tiny_store, tiny_users

STORE = tiny_store(items=120, look_alikes=60)
USERS = tiny_users(12)
TRIALS = 4
AT = (0.05, 0.2)


@pytest.fixture(scope="module")
def at() -> Bench:
    return bench(STORE, USERS, TRIALS, seed=4)


@pytest.fixture(scope="module")
def found(at: Bench) -> Losses:
    return losses(at, main_tasks(AT, TRIALS, TRIALS))


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_the_picks_are_those_of_device_wire_and_server(algorithm: Algorithm, at: Bench, found: Losses) -> None:
    models = {case.local_model for case in found.cases(D_F) if case.method == algorithm} or {"none"}
    etas = (ANY_ETA,) if algorithm is Algorithm.IG_SIG else AT
    for model in models:
        for k in (1, 2, 5):
            for eta in etas:
                for trial in range(TRIALS):
                    outcome = simulate(
                        STORE,
                        at.features[at.users[trial]],
                        eta,
                        k,
                        1,
                        algorithm,
                        "ridge" if model == "none" else model,
                        ReplayedNoise(noise_seed(4, trial, eta)),
                        coins(4, trial, eta),
                        at.tables,
                    )
                    said = None if algorithm is Algorithm.IG_SIG else eta
                    slate_loss = found.of(Case(D_I, algorithm.value, said, k))[trial]
                    assert slate_loss == pytest.approx(outcome.best - outcome.offered, abs=1e-6)
                    if model != "none":
                        pick_loss = found.of(Case(D_F, algorithm.value, said, k, model))[trial]
                        assert pick_loss == pytest.approx(outcome.best - outcome.taken, abs=1e-6)


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_slates_are_nested(algorithm: Algorithm, at: Bench) -> None:
    def chosen(k: int) -> list[int]:
        guess = Guess(
            AnswerSettings(algorithm, LocalModel.NONE),
            STORE.scorer,
            at.tables,
            signal_of(at, 0, 0.1),
            0.1,
            loops.choose(),
            coins(1, 2, 0.1),
        )
        return choose_slate(guess, k, 1).tolist()

    largest = chosen(12)
    assert len(set(largest)) == 12
    for k in range(1, 12):
        assert chosen(k) == largest[:k]


def test_losses_are_at_least_zero_fall_with_k_and_picks_lose_no_less_than_slates(found: Losses) -> None:
    for case in found.cases(D_I):
        assert (found.of(case) >= 0.0).all()
        if case.k > 1:
            assert (found.of(case) <= found.of(case._replace(k=case.k - 1))).all()
    for case in found.cases(D_F):
        assert (found.of(case) >= found.of(case._replace(measure=D_I, local_model=""))).all()
        assert np.array_equal(found.of(case._replace(k=1)), found.of(case._replace(measure=D_I, local_model="", k=1)))


def test_signals_are_the_same_for_all_and_new_in_every_trial_and_eta(at: Bench) -> None:
    assert np.array_equal(signal_of(at, 1, 0.1), signal_of(at, 1, 0.1))
    assert not np.array_equal(signal_of(at, 1, 0.1), signal_of(at, 2, 0.1))
    noise = [signal_of(at, 1, eta) - at.features[at.users[1]] for eta in (0.1, 0.2)]
    assert not np.allclose(noise[0] * 2.0, noise[1])


def test_signals_have_noise_of_the_stated_scale() -> None:
    many = bench(STORE, USERS, 400, seed=5)
    spread = np.mean([np.abs(signal_of(many, trial, 0.1) - many.features[many.users[trial]]) for trial in range(400)])
    assert spread == pytest.approx(0.1, rel=0.05)  # the mean size of Laplace noise is its scale


def test_what_ignores_the_signal_is_what_the_server_answers_to_an_empty_one(at: Bench, found: Losses) -> None:
    server = MultiSelection(STORE, "exact", "ridge", tables=at.tables)
    reply = server.answer(Signal.nothing(STORE.space.dimension, Fraction(1, 10)), k=5)
    codes = [STORE.items.code_of_number(number) for number in reply.items]
    for trial in range(TRIALS):
        features, truth = at.features[at.users[trial]], at.truth[at.users[trial]]
        lost = truth.max() - truth[STORE.scorer.classes.of[codes]]
        assert found.of(Case(D_I, IG_SIG_EXACT, None, 5))[trial] == pytest.approx(lost.min(), abs=1e-6)
        picked = best(estimator(reply, codes, STORE.space.dimension, None)(features), 1)[0]
        assert found.of(Case(D_F, IG_SIG_EXACT, None, 5, "ridge"))[trial] == pytest.approx(lost[picked], abs=1e-6)


def test_another_judge_changes_the_losses_but_not_the_slates(at: Bench) -> None:
    other = tiny_store(items=120, look_alikes=60, seed=3)
    judged = bench(STORE, USERS, TRIALS, seed=4, truth=other)
    assert not np.array_equal(judged.truth, at.truth)
    assert np.array_equal(signal_of(judged, 0, 0.1), signal_of(at, 0, 0.1))


def test_two_processes_find_what_one_finds(at: Bench) -> None:
    tasks = [Task(Algorithm.SAT_REALUSER, AT, 24, local_models=(LocalModel.PCA,))]
    longer = bench(STORE, USERS, 24, seed=4, tables=at.tables)
    told: list[tuple[int, int]] = []
    alone, shared = losses(longer, tasks), losses(longer, tasks, workers=2, progress=lambda *done: told.append(done))
    assert set(alone.values) == set(shared.values)
    assert all(np.array_equal(alone.of(case), shared.of(case)) for case in alone.values)
    assert told[-1] == (24, 24)


def test_a_slow_task_has_the_first_trials(at: Bench) -> None:
    some = losses(at, [Task(Algorithm.SAT, AT, 2), Task(Algorithm.SAT_REALUSER, AT, TRIALS)])
    case = Case(D_I, "sat", 0.05, 5)
    assert len(some.of(case)) == 2
    assert some.gap(case, case._replace(method="sat-realuser")).n == 2


def test_a_scorer_that_remembers_gives_the_same_scores() -> None:
    remembering = Remembering(STORE.scorer, last=2)
    rng = np.random.default_rng(1)
    tables = [tiny_users(3, seed) for seed in range(4)]
    for _ in range(40):
        features, items = tables[rng.integers(4)], rng.integers(120, size=7)
        assert np.allclose(remembering.score(features, items), STORE.scorer.score(features, items), atol=1e-5)


def test_the_plans_cover_what_the_paper_tables_need() -> None:
    for effort in Effort:
        wanted = plan(effort)
        main = [task for task in wanted.tasks if task.draws == 25]
        assert {task.algorithm for task in main} == set(Algorithm)
        assert all(0.05 in task.etas or None in task.etas for task in main)
    assert plan(Effort.DEFAULT).etas == plan(Effort.FULL).etas == ETAS
    assert plan(Effort.FULL).epsilons == (float("inf"), 8.0, 4.0, 2.0)
    assert not plan(Effort.QUICK).epsilons
    assert {task.trials for task in plan(Effort.DEFAULT, trials=7).tasks} == {7}
    draws = {task.draws for task in plan(Effort.QUICK).tasks if task.algorithm is Algorithm.SAT_REALUSER}
    assert draws == {1, 5, 25, 50, 100}
