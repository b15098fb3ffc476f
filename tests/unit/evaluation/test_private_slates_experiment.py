"""The evaluation of private slates as a whole, on a made-up world, and claims that figures decide either way."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import tacit.data
from tacit.data import Ratings
from tacit.errors import MissingExtra
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, untold
from tacit.evaluation.private_slates import (
    diversified,
    evaluate,
    experiment,
    names,
    paper,
    preselected,
    reference,
    released,
    table,
    tries,
)
from tacit.evaluation.private_slates.drawn import capped, high
from tacit.evaluation.private_slates.films import Films, films
from tacit.evaluation.private_slates.measures import METRICS, measured
from tacit.evaluation.private_slates.reference import PREFIX, TABLE
from tacit.evaluation.private_slates.table import Measured, agreement
from tacit.evaluation.private_slates.tries import INF, K, Tried
from tacit.evaluation.private_slates.verdicts import ahead, verdicts
from tacit.evaluation.result import Result, Row
from tacit.evaluation.statistics import Estimate

METHODS = {value for name, value in vars(names).items() if name.isupper()}


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return tacit.data.synthetic(users=300, items=130, rng=np.random.default_rng(5))


@pytest.fixture(scope="module")
def world(ratings: Ratings) -> Films:
    return films(ratings, rng=np.random.default_rng([1, 61]))


@pytest.fixture(scope="module")
def result(ratings: Ratings) -> Result:
    return _quickly(ratings, 1)


def _quickly(ratings: Ratings, seed: int) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tries.MANY, Effort.QUICK, 8)
        patch.setitem(tries.FEW, Effort.QUICK, 3)
        patch.setattr(diversified, "run", _elsewhere)
        return evaluate(ratings, Effort.QUICK, seed=seed)


def _elsewhere(effort: Effort, *, seed: int, progress: object) -> Part:
    """Multi-selection has tests of its own; here it is enough that its part is in the result."""
    return Part((Row("dpp", {"part": "multi-selection"}, "utility kept", float(seed)),), (), (f"{effort} elsewhere",))


def test_every_method_has_every_metric_with_errors_and_survives_json(result: Result) -> None:
    slates = [row for row in result.rows if row.metric in METRICS and row.setting.keys() == {"epsilon"}]
    assert {row.method for row in slates} == METHODS
    for metric in METRICS:
        assert {(row.method, row.setting["epsilon"]) for row in slates if row.metric == metric} == {
            (row.method, row.setting["epsilon"]) for row in slates
        }
    without = {names.TOP, names.GREEDY}
    assert all((row.stderr is None) == (row.method in without) for row in slates)
    back = Result.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False)))
    assert back == result
    assert not [row for row in result.rows if row.method.startswith(PREFIX)]  # the reference is of other data
    assert paper.NAME in {claim.paper for claim in result.claims}
    assert reference.NAME not in {claim.paper for claim in result.claims}


def test_guarantees_are_those_of_the_mechanisms(result: Result) -> None:
    promised = result.guarantees
    for method in METHODS - {names.PUBLISHED, names.UNIFORM, names.TOP, names.GREEDY, names.K_DPP}:
        assert promised[f"{method}, epsilon=1.0"].epsilon == pytest.approx(1.0)
        assert promised[f"{method}, epsilon=1.0"].delta == (1e-6 if "Gaussian" in method else 0.0)
    assert promised[f"{names.PUBLISHED}, epsilon=1.0"].promises_nothing
    assert promised[f"{names.UNIFORM}, epsilon=0.0"].epsilon == 0.0
    assert not [name for name in promised if name.startswith((names.TOP, names.GREEDY, names.K_DPP))]


def test_equal_seeds_give_equal_figures(ratings: Ratings, result: Result) -> None:
    again = _quickly(ratings, 1)
    assert again.rows == result.rows
    assert again.claims == result.claims
    assert _quickly(ratings, 2).rows != result.rows


def test_slates_are_different_films_and_few_methods_beat_top_k(world: Films) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tries.MANY, Effort.QUICK, 8)
        patch.setitem(tries.FEW, Effort.QUICK, 3)
        found = table.table(world, Effort.QUICK, seed=3, progress=untold).found
    for one in found.values():
        slates = one.tried.slates
        assert slates.shape[1] == K
        assert (np.diff(slates, axis=1) > 0).all()
        assert (slates >= 0).all()
        assert (slates < world.items).all()
        assert (one.values["popularity"] <= 1.0).all()
    assert found[names.KERNEL_K_DPP, 1.0].releases == released.KERNELS[Effort.QUICK]
    assert found[names.NATURAL, 1.0].releases == 8
    # noise is redrawn where it should be
    for key in ((names.LAPLACE, 0.1), (names.TWO_STAGE, 0.1), (names.SPARSE, 0.1), (names.KERNEL_GREEDY, 0.1)):
        assert len(np.unique(found[key].tried.slates, axis=0)) > 1


def test_of_every_user_only_some_likes_count(world: Films) -> None:
    cut = released.some_likes(world, 4, rng=np.random.default_rng(1))
    each = np.diff(world.likes.indptr)
    np.testing.assert_array_equal(np.diff(cut.indptr), np.minimum(each, 4))
    assert (cut.toarray() <= world.likes.toarray()).all()
    other = released.some_likes(world, 4, rng=np.random.default_rng(2))
    assert (cut != other).nnz > 0  # not always the first ones


def test_too_few_candidates_are_filled_up_and_never_refused(world: Films) -> None:
    rng = np.random.default_rng(1)
    for candidates in (np.array([], dtype=np.int64), np.array([3, 7]), np.arange(9), np.arange(130)):
        slate = preselected.public_slate(world, candidates, rng=rng)
        assert np.unique(slate).size == K
        assert np.isin(candidates, slate).all() or candidates.size > K
    alike = Films("alike", world.likes, world.held_out, np.ones((130, 1)))
    few = np.array([1, 4, 6, 8, 9, 11, 13, 17, 19, 23, 29, 31])
    assert np.isin(preselected.public_slate(alike, few, rng=rng), few).all()  # candidates come before all others


def test_the_noisy_kernels_positive_part_is_the_nearest_kernel() -> None:
    values, vectors = released.positive_part(np.array([[0.0, 2.0], [2.0, 0.0]]))
    np.testing.assert_allclose(values, [2.0])
    np.testing.assert_allclose(vectors * values @ vectors.T, [[1.0, 1.0], [1.0, 1.0]])


def test_quality_and_diversity_both_count_in_the_greedy_slate() -> None:
    genres = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    small = Films("small", sparse.csr_array((1, 3)), sparse.csr_array((1, 3)), genres)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(released, "K", 2)
        assert released.by_quality(small, np.array([9.0, 10.0, -50.0])).tolist() == [1, 2]


def test_the_range_of_tempered_slates_and_its_cap_are_public() -> None:
    likes = sparse.csr_array((4832, 40))
    genres = np.eye(40)
    big = Films("big", likes, likes, genres)
    assert high(big) == 2750.0
    assert capped(big) == 0.145


def test_agreement_is_decided_by_figures_and_tolerances() -> None:
    key = (names.NATURAL, 1.0)
    given = TABLE[key]

    def claim(off: float, releases: int | None = None, **changes: object) -> bool:
        ours = {
            metric: Estimate(value + off, 0.001, 9)
            for metric, value in zip(reference.METRICS, given.figures, strict=True)
        }
        return agreement(key, given._replace(**changes), ours, releases=releases).holds

    assert claim(0.029)
    assert claim(-0.029)
    assert not claim(0.031)
    assert claim(0.035, tolerance=0.05)
    assert claim(0.035, releases=9)  # 2 deviations of one draw are .006
    assert not claim(0.037, releases=9)
    assert not claim(0.035, one_draw=True)  # unless it is asked for, nothing is granted
    one_off = {
        metric: Estimate(value, 0.001, 9) for metric, value in zip(reference.METRICS, given.figures, strict=True)
    }
    one_off[reference.METRICS[2]] = Estimate(given.figures[2] + 0.04, 0.001, 9)
    assert not agreement(key, given, one_off).holds


def test_every_row_of_the_reference_is_one_that_is_tried() -> None:
    assert {method for method, _ in TABLE} == METHODS - {names.SEARCHED}  # which the reference does not have
    assert len(TABLE) == 26
    assert len(list(reference.rows())) == 3 * 26 + 2 + 4


def _made_up(
    world: Films, popularity: dict[str, float], diversity: dict[str, float], *, falling: bool = False
) -> dict[tuple[str, float | str], Measured]:
    slates = np.tile(np.arange(K), (20, 1))
    base = measured(world, slates)
    found = {}
    for name in METHODS:
        for epsilon in (0.0, 0.1, 0.145, 1.0, 3.0, INF):
            jitter = np.linspace(-0.01, 0.01, 20)
            values = base | {
                "popularity": popularity.get(name, 0.5) + jitter - (0.02 if falling and epsilon == 3.0 else 0.0),
                "genre diversity": diversity.get(name, 0.5) + jitter,
                "coverage": popularity.get(name, 0.5) + jitter,
            }
            found[name, epsilon] = Measured(Tried(name, epsilon, slates), values)
    return found


def test_verdicts_can_go_either_way(world: Films) -> None:
    likes = {names.UNIFORM: 0.1, names.PUBLISHED: 0.1, names.NATURAL: 0.3, names.K_DPP: 0.35, names.TOP: 1.0}
    likes |= {names.SPARSE: 0.4, names.TEMPERED: 0.9, names.TWO_STAGE: 0.6, names.LAPLACE: 0.8, names.GUMBEL: 0.9}
    apart = {names.TOP: 0.4, names.K_DPP: 0.7, names.TEMPERED: 0.7, names.LAPLACE: 0.7}
    good = list(verdicts(world, _made_up(world, likes, apart), 0.145))
    open_one = "the greedy slate of co-likes has something for more held-out users than the most liked films"
    assert {claim.claim for claim in good if not claim.holds} == {open_one}  # both are the same slate here
    turned = {name: 1.0 - value for name, value in likes.items()} | {names.PUBLISHED: 1.0}
    bad = list(
        verdicts(world, _made_up(world, turned, dict.fromkeys(apart, 0.2) | {names.TOP: 0.9}, falling=True), 0.145)
    )
    assert [claim.claim for claim in bad] == [claim.claim for claim in good]
    assert not any(claim.holds for claim in bad)
    equal = list(verdicts(world, _made_up(world, {}, {}), 0.145))
    so = ("by the paper's bound", "tempered slates that find their range")  # what equal figures bear out
    assert [claim.holds for claim in equal] == [claim.claim.startswith(so) for claim in equal]


def test_tempered_slates_that_lose_popularity_anywhere_as_epsilon_rises_are_told(world: Films) -> None:
    found = _made_up(world, {}, {}, falling=True)  # by 0.02, from 1 to 3, and by nothing before
    (claim,) = [one for one in verdicts(world, found, 0.145) if "find their range" in one.claim]
    assert not claim.holds
    assert "0.500, 0.480 at epsilon 0, 0.1, 0.145, 1, 3" in claim.evidence


def test_greedy_and_top_k_are_compared_by_the_same_held_out_users(world: Films) -> None:
    found = _made_up(world, {}, {})
    asked = np.asarray(world.held_out.sum(axis=0)).ravel()
    wide, narrow = np.sort(np.argsort(-asked)[:K])[None], np.sort(np.argsort(asked)[:K])[None]
    for name, slate in ((names.GREEDY, wide), (names.TOP, narrow)):
        found[name, INF] = found[name, INF]._replace(tried=Tried(name, INF, slate))
    (claim,) = [one for one in verdicts(world, found, 0.145) if "held-out users than" in one.claim]
    assert claim.holds
    assert f"{world.held_out.shape[0]:,} held-out users" in claim.evidence


def test_a_difference_has_the_errors_of_both(world: Films) -> None:
    found = _made_up(world, {names.TOP: 0.9}, {})
    one = ahead(found, (names.TOP, INF), (names.UNIFORM, 0.0), "popularity")
    each = found[names.TOP, INF].estimate("popularity").stderr
    assert one.value == pytest.approx(0.4)
    assert one.stderr == pytest.approx(each * np.sqrt(2))


def test_claims_against_the_reference_are_made_on_its_data_only(world: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tries.MANY, Effort.QUICK, 4)
    monkeypatch.setitem(tries.FEW, Effort.QUICK, 2)
    named = replace(world, name=reference.DATA)
    part = table.table(named, Effort.QUICK, seed=1, progress=untold).part
    assert {claim.paper for claim in part.claims} == {reference.NAME}
    granted = [claim.claim for claim in part.claims if "deviations of one noise draw" in claim.claim]
    assert len(granted) == 3
    assert len(part.claims) == len(TABLE) + 3  # beside the strict ones, not instead of them
    assert not all(claim.holds for claim in part.claims)  # a made-up world is another one
    (untried,) = [claim for claim in part.claims if claim.evidence == "not tried"]  # the cap is another one here
    assert untried.claim == "tempered slate at epsilon 0.145: near the reference"
    assert not untried.holds
    assert [row for row in part.rows if row.method.startswith(PREFIX)]


def test_a_large_catalogue_has_no_noisy_kernels(world: Films, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(released, "LARGEST", 100)
    assert list(released.noisy_kernels(world, Effort.QUICK, 2, 1, untold)) == []


def test_the_part_on_multi_selection_is_in_it(result: Result) -> None:
    assert result.find("utility kept", "dpp", part="multi-selection") is not None
    assert "quick elsewhere" in result.notes


def test_without_the_extra_of_multi_selection_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(effort: Effort, *, seed: int, progress: object) -> Part:
        raise MissingExtra("no training here.")

    monkeypatch.setattr(diversified, "run", missing)
    part = experiment._multi_selection(Effort.QUICK, 1, untold)
    assert part == Part(notes=("Diversified multi-selection was left out: missing-extra: no training here.",))


def test_notes_say_which_data_were_taken(result: Result) -> None:
    assert any("240 users to make slates from, 60 held out, 130 films" in note for note in result.notes)
    assert experiment.SYSTEM == result.system == "private-slates"
