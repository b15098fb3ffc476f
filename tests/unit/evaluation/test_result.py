"""The JSON that tools read, and finding rows in a result."""

import json

from tacit.evaluation.result import Claim, Result, Row, versions_of
from tacit.evaluation.statistics import Estimate
from tacit.guarantees import ONE_USER, metric, nothing

ROWS = (
    Row("sat", {"eta": 0.1, "k": 5}, "d_i", 0.5, 0.01, 100),
    Row("sat", {"eta": 0.1, "k": 5, "model": "other"}, "d_i", 0.6, 0.01, 100),
    Row("paper:sat", {"eta": 0.1, "k": 5}, "d_i", 0.7, None, 1500),
    Row("sat", {"eta": 0.2, "k": 5}, "d_i", 0.8, 0.01, 100),
)
RESULT = Result(
    "multi-selection", "made-up", ROWS, (Claim("a paper", "it is so", True, "it was seen"),),
    {"signal": metric(10.0), "model": nothing(ONE_USER, "no noise")}, 3, ("a note",),
)  # fmt: skip


def test_the_json_has_the_shape_that_all_systems_share() -> None:
    told = json.loads(json.dumps(RESULT.to_json(), allow_nan=False))
    assert {"system", "data", "rows", "claims", "guarantees", "versions", "seed"} <= set(told)
    assert set(told["rows"][0]) == {"method", "setting", "metric", "value", "stderr", "n"}
    assert told["rows"][2]["stderr"] is None
    assert set(told["claims"][0]) == {"paper", "claim", "holds", "evidence"}
    assert told["guarantees"]["model"]["epsilon"] == "inf"
    assert told["guarantees"]["signal"]["metric"]["distance"] == "L1"
    assert (told["seed"], told["system"], told["data"]) == (3, "multi-selection", "made-up")
    assert {"tacit", "python", "numpy"} <= set(told["versions"])


def test_a_result_is_read_back_as_it_was() -> None:
    assert Result.from_json(json.loads(json.dumps(RESULT.to_json()))).to_json() == RESULT.to_json()


def test_find_wants_the_whole_setting_and_select_a_part() -> None:
    assert RESULT.find("d_i", "sat", eta=0.1, k=5) is ROWS[0]
    assert RESULT.find("d_i", "sat", k=5) is None
    assert RESULT.select("d_i", "sat", k=5) == [ROWS[0], ROWS[1], ROWS[3]]
    assert RESULT.select("d_i", eta=0.1, model="other") == [ROWS[1]]
    assert [row.is_papers for row in ROWS] == [False, False, True, False]


def test_an_error_that_cannot_be_told_is_null() -> None:
    assert Row.of("sat", "d_i", Estimate(1.0, float("nan"), 1), k=1).to_json()["stderr"] is None


def test_packages_that_are_not_installed_have_no_version() -> None:
    assert "no-such-package" not in versions_of("no-such-package")
