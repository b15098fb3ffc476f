"""The entity's blend: what is added to its own scores, what the gate holds out, and when it keeps the release out."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.entity import fit as module
from tacit.entity.fit import BlendReport, BlendSettings, fit_blend, gate_report, held_out_gains
from tacit.entity.fit import hold_out_rows as held_out
from tacit.errors import InvalidInput, InvalidParameter
from tacit.models.moments import Blend, SharedMoments, item_ridge, pseudo_rows, unit_rows

ITEMS, GROUPS = 120, 8


def world(rng: np.random.Generator, users: int) -> NDArray[np.float64]:
    """Users have items of one group out of eight, and few others."""
    group = rng.integers(0, GROUPS, users)
    likely = np.where(np.arange(ITEMS) % GROUPS == group[:, None], 0.6, 0.02)
    return (rng.random((users, ITEMS)) < likely).astype(np.float64)


def moments_of(rows: NDArray[np.float64], head: Any = None, sd: float = 0.5) -> SharedMoments:
    """What a federation of these users would broadcast, without its noise."""
    unit = unit_rows(rows)[0].toarray()
    chosen = np.arange(ITEMS) if head is None else np.asarray(head)
    part = unit_rows(rows[:, chosen])[0].toarray()
    return SharedMoments(unit.sum(axis=0), chosen, pseudo_rows(part.T @ part, sd), 1.0, sd, ITEMS)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_229)


SETTINGS = BlendSettings(ridge=1.0, alpha=0.3, gamma=0.0, users=4000)


# --- the scores


def test_scores_are_the_blend_plus_both_popularities(rng: np.random.Generator) -> None:
    rows, shared = world(rng, 20), moments_of(world(rng, 4000), head=np.arange(0, 90))
    shared.popularity[5] = -30.0
    settings = replace(SETTINGS, gamma=0.7)
    base = item_ridge(rows, 1.0)
    own = unit_rows(rows)[0].toarray().mean(axis=0)
    everywhere = np.maximum(shared.popularity, 0.0) / 4000
    expected = Blend(base, shared.head, shared.pseudo_rows).scores(0.3) + 0.7 * (everywhere + 0.3 * own)
    fit = fit_blend(rows, shared, settings, rng=rng, gate=False)
    assert fit.scores() == pytest.approx(expected, abs=1e-12)
    assert fit.scores(users=slice(3, 5)) == pytest.approx(expected[3:5], abs=1e-12)
    other = world(rng, 3)
    assert fit.scores(other).shape == (3, ITEMS)
    assert everywhere[5] == 0.0


def test_items_outside_the_head_keep_the_score_of_the_entity_alone(rng: np.random.Generator) -> None:
    rows, head = world(rng, 20), np.arange(0, ITEMS, 2)
    shared = moments_of(world(rng, 4000), head)
    blended, alone = (fit_blend(rows, one, SETTINGS, rng=rng, gate=False).scores() for one in (shared, None))
    assert blended[:, 1::2] == pytest.approx(alone[:, 1::2], abs=1e-12)
    assert np.abs(blended[:, ::2] - alone[:, ::2]).max() > 0.01


def test_without_information_the_entity_stays_with_its_own_rows(rng: np.random.Generator) -> None:
    rows = world(rng, 15)
    none = SharedMoments(np.full(ITEMS, 90.0), np.zeros(0, dtype=np.int64), np.zeros((0, 0)), 1.0, 1.0, 3)
    settings = replace(SETTINGS, gamma=0.5)
    own = unit_rows(rows)[0].toarray().mean(axis=0)
    for shared in (None, none):
        fit = fit_blend(rows, shared, settings, rng=rng)
        assert fit.report is None
        assert fit.scores() == pytest.approx(item_ridge(rows, 1.0).scores() + 0.5 * 0.3 * own, abs=1e-12)


@pytest.mark.parametrize("users", [0, 1, 2])
def test_hardly_any_users_take_the_same_path(users: int, rng: np.random.Generator) -> None:
    shared = moments_of(world(rng, 4000))
    for rows in (world(rng, users), np.zeros((users, ITEMS))):
        fit = fit_blend(rows, shared, SETTINGS, rng=rng)
        assert fit.scores().shape == (users, ITEMS)
        assert np.isfinite(fit.scores()).all()
        assert fit.report is not None
        assert fit.report.compared <= users


def test_rows_of_another_catalogue_are_refused(rng: np.random.Generator) -> None:
    with pytest.raises(InvalidInput, match="120 numbers"):
        fit_blend(np.eye(3), moments_of(world(rng, 50)), SETTINGS, rng=rng)


@pytest.mark.parametrize(
    "bad",
    [
        {"ridge": 0.0},
        {"alpha": -1.0},
        {"gamma": -0.1},
        {"alpha": math.nan},
        {"users": 0},
        {"users": 2.5},
        {"gamma": math.inf},
    ],
)
def test_settings_outside_their_ranges_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        BlendSettings(**bad)


# --- what is held out


def test_a_tenth_of_each_users_items_is_held_out_and_three_stay(rng: np.random.Generator) -> None:
    sizes = np.array([0, 1, 3, 4, 5, 10, 19, 20, 35, 100])
    rows = sparse.csr_array((sizes[:, None] > np.arange(120)).astype(float))
    train, held = held_out(rows, rng)
    assert np.diff(held.indptr).tolist() == [0, 0, 0, 1, 1, 1, 1, 2, 3, 10]
    assert ((train + held).toarray() == rows.toarray()).all()
    assert train.multiply(held).nnz == 0
    again = held_out(rows, rng)[1]
    assert (again.toarray() != held.toarray()).any()  # at random


def test_every_cell_of_a_user_is_as_likely_to_be_held_out(rng: np.random.Generator) -> None:
    rows = sparse.csr_array(np.ones((20_000, 10)))
    counts = held_out(rows, rng)[1].sum(axis=0)
    assert np.abs(np.asarray(counts) - 2000).max() < 6 * math.sqrt(2000)


class Fixed:
    """Scores from a table."""

    def __init__(self, table: Any) -> None:
        self.table = np.array(table, dtype=np.float64)

    def scores(self, rows: Any = None, users: slice = slice(None)) -> NDArray[np.float64]:
        return self.table[users].copy()


def gains(scores: Any, train: Any, held: Any) -> list[float]:
    tables = (sparse.csr_array(np.array(one, dtype=float)) for one in (train, held))
    return held_out_gains(Fixed(scores), *tables).tolist()  # type: ignore[arg-type]


def test_gains_are_the_ndcg_of_twenty_items_among_those_not_trained_with() -> None:
    log = math.log2
    assert gains([[9, 8, 7, 6]], [[1, 0, 0, 0]], [[0, 1, 0, 0]]) == [1.0]
    assert gains([[9, 8, 7, 6]], [[1, 0, 0, 0]], [[0, 0, 1, 0]]) == pytest.approx([1 / log(3)])
    assert gains([[9, 8, 7, 6]], [[1, 0, 0, 0]], [[0, 1, 0, 1]]) == pytest.approx([(1 + 1 / log(4)) / (1 + 1 / log(3))])
    row = [list(range(30, 0, -1))]
    assert gains(row, [[0] * 30], [[0] * 19 + [1] + [0] * 10]) == pytest.approx([1 / log(21)])
    assert gains(row, [[0] * 30], [[0] * 20 + [1] + [0] * 9]) == [0.0]
    assert gains([[1, 1, 1]], [[0, 0, 0]], [[1, 0, 0]]) == pytest.approx([1 / log(3)])  # half of two ties above
    assert gains([[1.0, 2.0], [3.0, 1.0]], [[1, 0], [0, 0]], [[0, 0], [1, 0]]) == [0.0, 1.0]
    assert gains([[math.nan, math.nan]], [[0, 0]], [[1, 0]]) == [0.0]  # and never better than the best


def test_users_are_scored_in_parts(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, shared = world(rng, 30), moments_of(world(rng, 1000))
    whole = gate_report(rows, shared, SETTINGS, rng=np.random.default_rng(1))
    monkeypatch.setattr(module, "_CELLS", 7 * ITEMS)
    parts = gate_report(rows, shared, SETTINGS, rng=np.random.default_rng(1))
    assert parts.means == pytest.approx(whole.means)


# --- the gate


def test_a_release_of_many_alike_users_is_let_in_and_beats_both_controls(rng: np.random.Generator) -> None:
    rows, shared = world(rng, 25), moments_of(world(rng, 4000))
    fit = fit_blend(rows, shared, SETTINGS, rng=rng)
    report = fit.report
    assert report is not None
    assert report.keeps_blend
    assert report.informative
    assert fit.blend is not None
    assert report.difference > 2 * report.stderr
    assert report.means["blend"] - report.means["local"] == pytest.approx(report.difference)
    assert set(report.means) == {"local", "blend", "data-free", "constant"}


def test_a_release_that_misleads_is_kept_out(rng: np.random.Generator) -> None:
    """Pseudo-rows that join each item with items of other groups, at a weight that drowns the entity's own rows."""
    rows = world(rng, 200)
    true = moments_of(world(rng, 4000))
    wrong = replace(true, pseudo_rows=true.pseudo_rows[:, rng.permutation(ITEMS)] * 30)
    fit = fit_blend(rows, wrong, SETTINGS, rng=rng)
    assert fit.report is not None
    assert not fit.report.keeps_blend
    assert not fit.report.informative
    assert fit.blend is None
    assert (fit.scores() == fit_blend(rows, None, SETTINGS, rng=rng).scores()).all()
    assert (fit_blend(rows, wrong, SETTINGS, rng=rng, gate=False).scores() != fit.scores()).any()


def test_a_broadcast_out_of_all_bounds_is_kept_out_or_harmless(rng: np.random.Generator) -> None:
    rows, true = world(rng, 60), moments_of(world(rng, 4000))
    for factor in (1e30, 3e38):
        wild = replace(true, pseudo_rows=rng.normal(size=(3, ITEMS)) * factor, popularity=true.popularity * factor)
        fit = fit_blend(rows, wild, replace(SETTINGS, gamma=1.0), rng=rng)
        assert fit.report is not None
        assert fit.report.means["blend"] <= 1.0
        assert np.isfinite(fit.scores()).all()


def test_noise_without_data_is_told_from_a_release(rng: np.random.Generator) -> None:
    """A release that is no better than its own controls is flagged, inside, whatever the gate does."""
    report = BlendReport({"local": 0.2, "blend": 0.3, "data-free": 0.3, "constant": 0.1}, 0.1, 0.01, 40)
    assert report.keeps_blend
    assert not report.informative
    assert not BlendReport({**report.means, "data-free": 0.1, "constant": 0.31}, 0.1, 0.01, 40).informative
    assert BlendReport({**report.means, "data-free": 0.2}, 0.1, 0.01, 40).informative


@pytest.mark.parametrize(
    ("difference", "stderr", "keeps"),
    [
        (0.02, 0.01, True),
        (-0.0099, 0.01, True),
        (-0.0101, 0.01, False),
        (-0.001, 0.0, False),
        (0.0, 0.0, True),
        (-0.5, math.nan, True),  # a single user
        (math.nan, math.nan, True),  # nobody
    ],
)
def test_the_blend_is_kept_unless_it_is_a_standard_error_worse(difference: float, stderr: float, keeps: bool) -> None:
    assert BlendReport({}, difference, stderr, 10).keeps_blend is keeps


def test_the_difference_is_paired_and_its_error_is_that_of_the_users_compared(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users with nothing held out do not count, and the error is that of differences, not of means."""
    told = iter([np.array([0.5, 0.1, 0.9, 9.0]), np.array([0.6, 0.1, 0.8, 0.0])] + [np.zeros(4)] * 2)
    monkeypatch.setattr(module, "held_out_gains", lambda *_: next(told))
    rows = np.zeros((4, ITEMS))
    rows[:3, :10] = 1.0
    report = gate_report(rows, moments_of(world(rng, 500)), SETTINGS, rng=rng)
    assert report.compared == 3
    assert report.difference == pytest.approx(0.0)
    assert report.stderr == pytest.approx(np.std([0.1, 0.0, -0.1], ddof=1) / math.sqrt(3))
    assert report.means["local"] == pytest.approx(0.5)


def test_nothing_private_is_shown(rng: np.random.Generator) -> None:
    fit = fit_blend(world(rng, 37), moments_of(world(rng, 500)), SETTINGS, rng=rng)
    assert repr(fit) == "BlendedFit(120 items)"
    assert repr(fit.report) == "BlendReport(private)"
    assert "37" not in repr(fit) + str(fit.report) + repr(fit.base)
