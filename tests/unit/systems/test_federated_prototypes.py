"""The whole conversation in one process: what it promises, who sends how much, and that it can help."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tacit.entity import Policy, Tuning
from tacit.entity.fit import BlendSettings
from tacit.errors import GuaranteeRefused, InvalidParameter, TooFewEntities
from tacit.guarantees import rho_for
from tacit.mechanisms import ReplayedNoise
from tacit.systems.federated_prototypes import simulate
from tests.unit.federated_world import ITEMS, PROTOTYPES, USERS, rows_of

CATALOGUE = list(range(ITEMS))
ROWS = {name: rows_of(name) for name in ("a", "b", "c", "d")}


@pytest.mark.parametrize(
    "own",
    [
        {"mechanism": "grid", **PROTOTYPES},
        {"mechanism": "tree", **PROTOTYPES},
        {"aggregation": "none"},
        {"fewest": 3},
    ],
    ids=str,
)
def test_a_run_from_end_to_end(own: dict[str, Any]) -> None:
    with simulate(ROWS, CATALOGUE, epsilon=8.0, users=USERS, receivers={"z": rows_of("z", 3)}, **own) as run:
        assert run.model is not None
        assert run.model.informed
        assert run.guarantee.epsilon == 8.0
        assert run.sent["z"] == 0
        assert len({run.sent[name] for name in ROWS}) == 1
        assert {entity.shared()[1].hash for entity in run.entities.values()} == {run.model.hash}
        assert run.entities["z"].fit(rng=np.random.default_rng(0)).scores().shape == (3, ITEMS)


def test_a_silent_entity_is_left_out() -> None:
    with simulate(ROWS, CATALOGUE, epsilon=8.0, users=USERS, fewest=3, silent={"c": "popularity"}) as run:
        assert run.model is not None
        assert run.model.contributors == 3
        assert run.entities["c"].statement().charges == 0
    with pytest.raises(TooFewEntities):
        simulate(ROWS, CATALOGUE, epsilon=8.0, users=USERS, fewest=3, silent={"c": "popularity", "a": "gram"})


def test_ledgers_may_stay(tmp_path: Any) -> None:
    with simulate(ROWS, CATALOGUE, epsilon=8.0, users=USERS, folder=tmp_path, mechanism="tree", **PROTOTYPES) as run:
        assert run.entities["a"].statement().spent.amount == pytest.approx(rho_for(8.0, 1e-6) * 1e12, abs=1.0)
    assert {file.name for file in tmp_path.glob("*.db")} == {"a.db", "b.db", "c.db", "d.db"}


def test_what_an_entity_does_not_agree_to_is_not_run() -> None:
    with pytest.raises(GuaranteeRefused):
        simulate(ROWS, CATALOGUE, epsilon=8.0, users=USERS, policy=Policy(epsilon=1.0))
    with pytest.raises(InvalidParameter):
        simulate(ROWS, CATALOGUE, epsilon=8.0, users=USERS, receivers={"a": rows_of("a")})


def test_replayed_noise_is_for_those_who_name_it() -> None:
    noise = ReplayedNoise(1)
    with simulate(
        ROWS,
        CATALOGUE,
        epsilon=8.0,
        users=USERS,
        aggregation="none",
        noise=noise,
        unprotected=[noise.caveat],
    ) as run:
        assert run.model is not None


def test_the_shared_model_helps_entities_of_few_users() -> None:
    """Four groups of items, and users of one of them: what four users cannot show, fifty can."""
    rng = np.random.default_rng(4)

    def rows(users: int) -> np.ndarray:
        group = rng.integers(0, 4, users)
        likely = np.where((np.arange(ITEMS) % 4)[None, :] == group[:, None], 0.6, 0.03)
        return np.asarray(rng.random((users, ITEMS)) < likely, dtype=np.float64)

    small = {f"e{place}": rows(4) for place in range(12)}
    with simulate(small, CATALOGUE, epsilon=40.0, users=10) as run:
        tuning = Tuning(blend=BlendSettings(ridge=1.0, alpha=1.0), gate=False)
        alone = Tuning(blend=BlendSettings(ridge=1.0, alpha=0.0), gate=False)
        test = rows(400)
        split = rng.random(test.shape) < 0.5
        given, wanted = test * split, test * ~split
        gains: list[float] = []
        for entity in run.entities.values():
            for one in (tuning, alone):
                scores = entity.fit(tuning=one).scores(given)
                scores[given > 0] = -np.inf
                best = np.argsort(-scores, axis=1)[:, :5]
                gains.append(np.take_along_axis(wanted, best, axis=1).mean().item())
    assert np.mean(gains[::2]) > np.mean(gains[1::2]) + 0.02


def test_it_is_found_among_the_systems_and_weighs_on_no_other() -> None:
    from tacit import systems

    assert systems.federated_prototypes.simulate is simulate
    assert not hasattr(systems, "nonsense")
    code = "import sys, tacit.systems; print({'cryptography', 'tacit.entity'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
