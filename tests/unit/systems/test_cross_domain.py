"""The whole of cross-domain in one process, through its messages."""

import json
from pathlib import Path

import pytest

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER
from tacit.messages.cross_domain import TransferModel
from tacit.systems.cross_domain import simulate
from tests.unit.curator.cross_domain_world import curator, world

READERS = [{1: 5.0, 2: 0.5}, {}, {13: 4.0, 99: 1.0}]


def test_users_are_served_from_what_left_the_curator_and_their_own_ratings(tmp_path: Path) -> None:
    with curator(tmp_path, world(80, 12)) as holder:
        done = simulate(holder, READERS, k=3)
        assert holder.statement().charges == 1  # however many are served
    assert done.wire is not None
    model = TransferModel.from_json(json.loads(done.wire))
    assert (done.guarantee, done.guarantee.protects) == (model.guarantee, ONE_USER)
    for own, served in zip(READERS, done.served, strict=True):
        assert list(served) == list(model.recommend(own, 3))
        assert served == model.predict(own, list(served))
        assert not set(own) & set(served)
    assert "5.0" not in repr(done)


def test_replacements_serve_alter_egos(tmp_path: Path) -> None:
    with curator(tmp_path, world(80, 12)) as holder:
        done = simulate(holder, READERS, k=1, mode="prs_valid")
    assert [len(one) for one in done.served] == [1, 0, 1]
    assert done.served[2] == {13: 4.0}
    assert done.wire is not None
    assert not done.guarantee.promises_nothing


@pytest.mark.parametrize("mode", ["nx", "published"])
def test_what_promises_nothing_stays_inside(tmp_path: Path, mode: str) -> None:
    with curator(tmp_path, world(80, 12), unprotected=[mode]) as holder:
        done = simulate(holder, READERS, k=2, mode=mode)
    assert done.wire is None
    assert done.guarantee.promises_nothing
    assert [len(one) for one in done.served] == [2, 2, 2]


def test_nobody_is_served_nothing(tmp_path: Path) -> None:
    with curator(tmp_path, world(80, 12)) as holder, pytest.raises(InvalidParameter, match="k must"):
        simulate(holder, READERS, k=0)
