"""The evaluation of federated prototypes as a whole on small worlds; references, and claims that figures decide either way."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tacit.cli import app
from tacit.cli.results import print_result
from tacit.errors import InvalidParameter
from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import (
    comparisons,
    counts,
    evaluate,
    names,
    planted,
    rated,
    reference,
    verdicts,
    verdicts_beyond,
    worlds,
)
from tacit.evaluation.federated_prototypes.measures import RANK, RMSE
from tacit.evaluation.federated_prototypes.plots import pictures
from tacit.evaluation.federated_prototypes.rows import key_of, settled
from tacit.evaluation.pictures.drawing import draw_files
from tacit.evaluation.result import Result, Row


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TACIT_DATA", raising=False)
        patch.setitem(counts.USERS, Effort.QUICK, 40)
        patch.setitem(counts.KS, Effort.QUICK, (4,))
        patch.setattr(worlds, "ITEMS", 30)
        patch.setattr(counts, "AFTER", (1, 2))
        patch.setitem(planted.USERS, Effort.QUICK, (150,))
        patch.setitem(planted.EPSILONS, Effort.QUICK, (1.0,))
        patch.setattr(worlds, "RECEIVERS", 4)
        yield


@pytest.fixture(scope="module")
def result(_small: None) -> Result:
    return evaluate("made-up", "quick", seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MovieLens as the 1M release lays it out: 90 made-up users of three ZIP digits, 60 films."""
    rng, where = np.random.default_rng(1), tmp_path_factory.mktemp("films")
    (where / "movies.dat").write_text("".join(f"{film}::Film {film} (1999)::Drama\n" for film in range(1, 61)))
    (where / "users.dat").write_text("".join(f"{user}::F::25::1::{user % 3}{user % 2}123\n" for user in range(1, 91)))
    lines = [
        f"{user}::{film}::{rng.integers(1, 6)}::978300000\n"
        for user in range(1, 91)
        for film in np.sort(rng.choice(np.arange(1, 61), 20, replace=False))
    ]
    (where / "ratings.dat").write_text("".join(lines))
    return where


def test_a_folder_of_films_is_tried_without_reference_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rated, "FEW", 5)
    found = evaluate(folder, "quick")
    tried = {(row.setting["world"], row.method) for row in found.rows}
    assert {
        (names.ZIP1, one) for one in (names.CENTRAL, names.K_RATERS, names.GRID, names.TREE, names.NO_DATA)
    } <= tried
    assert {(names.ZIP2, one) for one in (names.MOMENTS, names.MOMENTS_APART, names.PRIOR_ONCE)} <= tried
    assert {(names.ZIP1, one) for one in (names.DP_POPULARITY, names.DP_MEANS_ONCE, names.PRIOR_RESIDUAL)} <= tried
    assert max(Counter(map(key_of, found.rows)).values()) == 1
    assert not [one for one in found.claims if one.paper == reference.NAME]
    assert any("none to compare with" in note for note in found.notes)
    assert {name.split(",")[0] for name in found.guarantees} >= {names.GRID, names.TREE, names.MOMENTS, names.DP_MEANS}


def test_made_up_worlds_need_no_data_and_give_every_method(result: Result) -> None:
    assert result.system == "federated-prototypes"
    methods = {(row.setting["world"], row.method) for row in result.rows}
    assert {(names.PLANTED, one) for one in (names.GRID, names.GRID_CLIPPED, names.TREE, names.COVARIANCE)} <= methods
    assert {
        (names.SYNTHETIC, one) for one in (names.CENTRAL, names.INDIVIDUAL, names.K_MEANS, names.K_RANDOM)
    } <= methods
    assert max(Counter(map(key_of, result.rows)).values()) == 1
    assert any("TACIT_DATA" in note for note in result.notes)
    assert any("replayed" in note for note in result.notes)


def test_every_private_method_has_its_guarantee(result: Result) -> None:
    kinds = {name.split(",")[0] for name in result.guarantees}
    assert kinds >= {names.GRID, names.TREE, names.COVARIANCE}
    for name, one in result.guarantees.items():
        assert one.epsilon <= float(name.rsplit("epsilon=", 1)[1]) * (1.0 + 1e-9)
        pure = name.startswith(names.GRID)
        assert (one.delta == 0.0) == pure


def test_equal_seeds_give_equal_figures_and_json_keeps_them(result: Result) -> None:
    assert evaluate("made-up", "quick", seed=3).rows == result.rows
    assert Result.from_json(json.loads(json.dumps(result.to_json()))).rows == result.rows


def test_progress_is_told_of_every_part() -> None:
    told: list[tuple[str, int, int]] = []
    evaluate("made-up", "quick", progress=lambda *what: told.append(what))
    assert [what for what, _, _ in told] == [names.SYNTHETIC, names.PLANTED]
    assert {total for _, _, total in told} == {2}


def test_the_terminal_and_the_plots_show_what_there_is(result: Result, tmp_path: Path) -> None:
    out = StringIO()
    print_result(Console(file=out, width=200), result)
    assert names.PLANTED in out.getvalue()
    assert "The paper's claims" in out.getvalue()
    drawn = {path.name for path in draw_files(result, pictures(result), tmp_path)}
    assert {"figure-1.png", "figure-3.png", "figure-4.png", "figure-5.png", "figure-6.png", "figure-7.png"} <= drawn
    assert "figure-8.png" not in drawn  # no films here


def test_the_command_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    run = CliRunner().invoke(
        app, ["evaluate", "federated-prototypes", "--data", "made-up", "--quick", "--workers", "1", "--json", str(file)]
    )
    assert run.exit_code == 0, run.output
    found = json.loads(file.read_text())
    assert found["system"] == "federated-prototypes"
    assert found["claims"]
    assert set(found["rows"][0]) == {"method", "setting", "metric", "value", "stderr", "n"}


def test_options_of_other_systems_are_refused() -> None:
    assert CliRunner().invoke(app, ["evaluate", "federated-prototypes", "--trials", "3"]).exit_code == 2


def test_unknown_data_is_refused_with_what_is_known() -> None:
    with pytest.raises(InvalidParameter, match="movielens-1m"):
        evaluate("nowhere", "quick")


def test_no_reference_figure_is_given_twice() -> None:
    keys = [(one.method, metric, settled(one.setting)) for one in reference.given() for metric in one.figures]
    assert len(keys) == len(set(keys)) > 300


def test_a_reference_decides_by_its_tolerance_and_only_what_was_tried() -> None:
    one = reference.Given(names.CENTRAL, {"world": names.ZIP1, "rank": 10, "regulariser": "sum"}, {RMSE: 0.930})
    near = Row(one.method, one.setting, RMSE, 0.949, 0.01, 5)
    far = replace(near, value=0.951)
    for row, within in ((near, True), (far, False)):
        beside, claims = reference.compared([row])
        assert [claim.holds for claim in claims] == [within]
        assert beside == [Row(reference.PREFIX + one.method, one.setting, RMSE, 0.930)]
    assert reference.compared([]) == ([], [])


def films(private: float, own: float = 0.25) -> list[Row]:
    kept = {"epsilon": rated.PAPER_EPSILON, "k": rated.K, "items each": rated.MANY}
    return [
        Row(names.INDIVIDUAL, {"world": names.ZIP1, "regulariser": "sum", "rank": 10}, RANK, own, 0.01, 9),
        Row(names.GRID, {"world": names.ZIP1, **kept, "rank": 10}, RANK, private, 0.01, 9),
    ]


@pytest.mark.parametrize(("private", "holds"), [(0.5, False), (0.24, False), (0.2, True)])
def test_figure_9_is_decided_by_ranks_and_their_errors(private: float, holds: bool) -> None:
    found = {claim.claim: claim.holds for claim in verdicts.published(films(private))}
    told = [one for one in found if one.startswith("Figure 9: private")]
    assert [found[one] for one in told] == [holds]


def test_what_users_have_in_common_cancels_out_of_a_difference() -> None:
    rows = films(0.24)
    same = np.random.default_rng(1).normal(0.0, 0.1, 100)
    table = comparisons.Rows(rows, {key_of(row): same for row in rows})
    assert table.lower(rows[1], rows[0]).stderr == 0.0
    assert comparisons.Rows(rows).lower(rows[1], rows[0]).stderr == pytest.approx(0.01 * np.sqrt(2.0))
    assert comparisons.Rows(rows).lower(rows[1], rows[0]).value == pytest.approx(0.01)


def test_claims_on_planted_groups_follow_the_errors() -> None:
    found = planted.run(Effort.QUICK, seed=1)
    assert {row.method for row in found.rows} >= {names.INDIVIDUAL, names.CONSTANT, names.RANDOM_V}
    worse = {key: (errors * (9.0 if key[1] == names.TREE else 1.0), who) for key, (errors, who) in found.errors.items()}
    better = {
        key: (errors * (0.01 if key[1] == names.TREE else 1.0), who) for key, (errors, who) in found.errors.items()
    }
    told = f"{names.TREE} at epsilon 1 has a lower error than individual models"
    for errors, holds in ((worse, False), (better, True)):
        claims = list(verdicts_beyond.beyond([], {}, found._replace(errors=errors)))
        assert [one.holds for one in claims if told in one.claim] == [holds]


def test_eigenvectors_below_the_noise_are_left_out() -> None:
    gram = np.diag([100.0, 50.0, 1.0, 1.0])
    assert planted.subspace(gram, 5.0).shape == (4, 2)
    assert planted.subspace(gram, 1000.0).shape == (4, 1)


def test_loss_is_the_squared_distance_to_the_nearest_prototype() -> None:
    from scipy import sparse

    rows = sparse.csr_array(np.array([[3.0, 4.0], [1.0, 0.0]]))
    assert counts.distances(rows, np.array([[0.0, 0.0], [3.0, 3.0]])).tolist() == [1.0, 1.0]
