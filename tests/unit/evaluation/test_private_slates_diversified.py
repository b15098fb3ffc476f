"""The comparison of `dpp` with `exact`: the measures by hand, the slates those of the server, differences by trial."""

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.evaluation.effort import Effort
from tacit.evaluation.multi_selection.trials import Bench, bench, coins, signal_of
from tacit.evaluation.part import untold
from tacit.evaluation.private_slates import diversified
from tacit.evaluation.private_slates.diversified import ALL, APART, KEPT, PICKED, Case, Found
from tacit.server.multi_selection import Algorithm, AnswerSettings, Guess, LocalModel, choose_slate, class_vectors
from tests.unit.evaluation.tiny_world import tiny_store, tiny_users

ETAS = (0.05, 0.2)
TRIALS = 5


@pytest.fixture(scope="module")
def at() -> Bench:
    return bench(tiny_store(), tiny_users(4), TRIALS, seed=4)


@pytest.fixture(scope="module")
def found(at: Bench) -> Found:
    return diversified.tried(at, diversified.methods(at.tables.r), ETAS, untold)


def guessed(at: Bench, trial: int, settings: AnswerSettings, eta: float = 0.05) -> Guess:
    signal = signal_of(at, trial, eta)
    return Guess(
        settings, at.scorer, at.tables, signal, eta, at.work, coins(at.seed, trial, eta), at.store.space.inside
    )


def test_measures_by_hand(at: Bench) -> None:
    vectors = class_vectors(at.scorer)
    guess = guessed(at, 0, AnswerSettings(r=at.tables.r))
    items = choose_slate(guess, 3, 1)
    user = int(at.users[0])
    got = diversified.measured(at, vectors, user, items, guess)
    of = at.scorer.classes.of
    liked = [float(at.truth[user][of[item]]) for item in items]
    best = float(at.truth[user].max())
    assert got[KEPT] == pytest.approx(max(liked) / best)
    assert got[ALL] == pytest.approx(sum(liked) / 3 / best)
    assert any(got[PICKED] == pytest.approx(one / best) for one in liked)
    flags = at.store.scorer.flags[items].astype(float)  # type: ignore[attr-defined]
    pairs = [(0, 1), (0, 2), (1, 2)]
    cosines = [flags[i] @ flags[j] / np.sqrt(max(1, flags[i].sum()) * max(1, flags[j].sum())) for i, j in pairs]
    assert got[APART] == pytest.approx(1.0 - np.mean(cosines))


def test_every_case_has_every_trial(found: Found) -> None:
    cases = {case for case, _ in found}
    assert len(cases) == (2 + len(diversified.ALPHAS) + 1) * len(ETAS) * len(diversified.SIZES)
    assert all(len(values) == TRIALS for values in found.values())
    for case in cases:
        assert np.all(found[case, PICKED] <= found[case, KEPT] + 1e-12)
        assert np.all(found[case, ALL] <= found[case, KEPT] + 1e-12)
        assert np.all((found[case, APART] >= -1e-12) & (found[case, APART] <= 1.0))


@pytest.mark.parametrize("k", diversified.SIZES)
def test_slates_are_the_servers_own(at: Bench, found: Found, k: int) -> None:
    """Cut from a longer slate or not, they are what the server would have sent for this k."""
    vectors = class_vectors(at.scorer)
    settings = {
        Case("exact", 0.0, 0.05, k): AnswerSettings(r=at.tables.r),
        Case("avg-realuser", 0.0, 0.05, k): AnswerSettings(Algorithm.AVG_REALUSER, r=at.tables.r),
        Case("dpp", 3.0, 0.05, k): AnswerSettings(Algorithm.DPP, alpha=3.0, r=at.tables.r),
        Case("dpp, drawn", 40.0, 0.05, k): AnswerSettings(Algorithm.DPP, alpha=40.0, sampled=True, r=at.tables.r),
    }
    for case, used in settings.items():
        assert used.local_model is LocalModel.RIDGE
        for trial in range(3):
            guess = guessed(at, trial, used)
            got = diversified.measured(at, vectors, int(at.users[trial]), choose_slate(guess, k, 1), guess)
            assert {metric: found[case, metric][trial] for metric in (KEPT, ALL, APART)} == pytest.approx(
                {metric: got[metric] for metric in (KEPT, ALL, APART)}
            )


def test_differences_are_paired_and_from_exact_at_the_same_place(at: Bench, found: Found) -> None:
    rows = list(diversified.rows(found, at.users))
    case = Case("dpp", 3.0, 0.2, 5)
    setting = {"part": "multi-selection", "eta": 0.2, "k": 5, "alpha": 3.0}
    row = next(row for row in rows if row.metric == f"{APART}, less exact" and dict(row.setting) == setting)
    apart = found[case, APART] - found[Case("exact", 0.0, 0.2, 5), APART]
    assert row.value == pytest.approx(apart.mean())
    assert row.stderr is not None
    assert not [row for row in rows if row.method == "exact" and "less" in row.metric]


def test_claims_follow_the_figures(at: Bench, found: Found) -> None:
    claims = {claim.claim: claim.holds for claim in diversified.claims(found, at.users, ETAS)}
    assert len(claims) == 10
    turned = dict(found)
    for (case, metric), values in found.items():
        if metric == APART:  # as if dpp were more diverse than all, beyond doubt; then less
            turned[case, metric] = values + (10.0 if case.method == "dpp" else 0.0)
    more = {claim.claim: claim.holds for claim in diversified.claims(turned, at.users, ETAS)}
    turned = {
        (case, metric): values - (20.0 if metric == APART and case.method == "dpp" else 0.0)
        for (case, metric), values in turned.items()
    }
    less = {claim.claim: claim.holds for claim in diversified.claims(turned, at.users, ETAS)}
    for claim in claims:
        if "diverse" in claim:
            assert more[claim]
            assert not less[claim]
        else:
            assert more[claim] == claims[claim]


def test_run_tries_the_users_who_were_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    store, users = tiny_store(), tiny_users(6)
    people = SimpleNamespace(features=users, held_out=np.array([1, 4]))
    monkeypatch.setattr(diversified, "population", lambda *_, **__: people)
    monkeypatch.setattr(diversified, "trained", lambda *_, **__: SimpleNamespace(store=store))
    monkeypatch.setitem(diversified._TRIALS, Effort.QUICK, 4)
    seen: list[np.ndarray] = []
    monkeypatch.setattr(diversified, "bench", lambda *given, **named: seen.append(given[1]) or bench(*given, **named))
    part = diversified.run(Effort.QUICK, seed=1, progress=untold)
    assert np.array_equal(seen[0], users[[1, 4]])
    assert {row.setting["eta"] for row in part.rows} == {0.1}
    assert {row.n for row in part.rows} == {4}
    assert len(part.claims) == 10
    assert "4 trials" in part.notes[0]
