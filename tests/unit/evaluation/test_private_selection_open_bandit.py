"""Open Bandit: models and estimates on made-up logs whose truth is known; on the real log, that errors are told as they are."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from tacit.data import Impressions
from tacit.evaluation.effort import Effort
from tacit.evaluation.private_selection import open_bandit
from tacit.evaluation.private_selection.click_models import design
from tacit.evaluation.private_selection.open_bandit import EPSILONS, LOGGED, MODEL, Judged, judged, laws

pytest.importorskip("sklearn")
HAS_DATA = (Path(os.environ.get("TACIT_DATA", "")) / "open-bandit").is_dir()
ITEMS = 6


def made_up(rows: int, seed: int) -> Impressions:
    """Users of kind 0 click the items of class 0, users of kind 1 those of class 1: nothing public tells the kinds apart."""
    rng = np.random.default_rng(seed)
    users = rng.integers(2, size=(rows, 4)).astype(np.int32)
    items = rng.integers(ITEMS, size=rows).astype(np.int32)
    categories = np.stack([np.arange(ITEMS) % 2, np.arange(ITEMS) % 3, np.zeros(ITEMS)], axis=1).astype(np.int32)
    chance = np.where(users[:, 0] == categories[items, 0], 0.5, 0.1)
    return Impressions(
        items=items,
        positions=rng.integers(1, 4, size=rows).astype(np.int8),
        clicks=rng.random(rows) < chance,
        propensities=np.full(rows, 1.0 / ITEMS),
        times=np.arange(rows, dtype=np.int64),
        user_features=users,
        affinities=np.zeros((rows, ITEMS), dtype=np.float32),
        item_ids=np.arange(ITEMS),
        item_numbers=np.linspace(-1.0, 1.0, ITEMS)[:, None],
        item_categories=categories,
    )


@pytest.fixture(scope="module")
def found() -> Judged:
    return judged(made_up(6000, 1), made_up(6000, 2), rng=np.random.default_rng(3))


def test_the_private_model_learns_what_only_users_tell(found: Judged) -> None:
    each = np.arange(len(found.shown))
    areas = [open_bandit._area(table[each, found.shown], found.clicks) for table in (found.public, found.private)]
    assert areas[0] < 0.55
    assert areas[1] > 0.7


def test_the_public_model_does_not_know_the_user(found: Judged) -> None:
    log = made_up(6000, 1)
    one, other = (np.flatnonzero((log.user_features[:, 0] == kind) & (log.positions == 1))[:1] for kind in (0, 1))
    rows = np.concatenate([one, other])
    public = design(log, rows, np.array([2, 2]), private=False).toarray()
    np.testing.assert_array_equal(public[0], public[1])
    private = design(log, rows, np.array([2, 2]), private=True).toarray()
    assert (private[0] != private[1]).any()
    hidden = design(log, rows, np.array([2, 2]), private=True, known=False).toarray()
    np.testing.assert_array_equal(hidden[0], hidden[1])


def test_no_impression_is_scored_by_a_model_that_saw_it() -> None:
    log, other = made_up(400, 4), made_up(400, 5)
    before = judged(log, other, rng=np.random.default_rng(6))
    place = int(np.flatnonzero(~log.clicks)[0])
    item = int(log.items[place])
    # The models that score this impression do not know which item it showed.
    changed = log.items.copy()
    changed[place] = (item + 1) % ITEMS
    fields = {name: getattr(log, name) for name in log.__dataclass_fields__} | {"items": changed}
    after = judged(Impressions(**fields), other, rng=np.random.default_rng(6))
    np.testing.assert_array_equal(before.private[place], after.private[place])
    assert (before.private != after.private).any()  # other fifths did learn from it


def test_laws_are_laws_and_rr_keeps_its_ratio(found: Judged) -> None:
    for rule, epsilon, law in laws(found):
        np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-9)
        if epsilon is not None and rule in ("rr", "pf scaled"):
            assert law.max() / law.min() <= math.exp(epsilon) * (1 + 1e-9)
        if rule == "auto":
            assert epsilon is not None
            # Among users whose public scores are alike: the same items offered, and no item more than e^epsilon times as likely.
            _, kind = np.unique(found.public, axis=0, return_inverse=True)
            for one in np.unique(kind):
                alike = law[kind.reshape(-1) == one]
                offered = alike > 0.0
                assert (offered == offered[0]).all()
                high, low = alike.max(axis=0)[offered[0]], alike.min(axis=0)[offered[0]]
                assert (high <= math.exp(epsilon) * (1 + 1e-9) * low).all()


def test_both_methods_agree_where_the_model_is_right_and_clicks_are_many(found: Judged) -> None:
    for rule, _, law in laws(found):
        by_model, by_log = found.by_model(law), found.by_log(law)
        assert abs(by_model.value - by_log.value) < 4.0 * by_log.stderr + 0.02, rule
    greedy = next(law for rule, _, law in laws(found) if rule == "greedy")
    public = next(law for rule, _, law in laws(found) if rule == "public")
    assert found.by_log(greedy - public).above(0.0)


def test_the_log_by_hand() -> None:
    judge = Judged(
        np.full((4, 2), 0.5),
        np.full((4, 2), 0.5),
        np.array([0, 1, 0, 1]),
        np.array([True, False, False, True]),
        np.full(4, 0.5),
    )
    law = np.tile([1.0, 0.0], (4, 1))
    estimate = judge.by_log(law)
    assert estimate.value == pytest.approx((2.0 + 0.0 + 0.0 + 0.0) / 4.0)
    assert estimate.stderr == pytest.approx(math.sqrt(4 * 0.5 * 1.0 / 0.5) / 4.0)
    even = np.full((4, 2), 0.5)  # less is at stake where more is shown: sum of law^2 is 1/2
    assert judge.by_log(even).value == pytest.approx(0.5)
    assert judge.by_log(even).stderr == pytest.approx(math.sqrt(4 * 0.5 * 0.5 / 0.5) / 4.0)
    assert judge.by_log(even - law).stderr == pytest.approx(math.sqrt(4 * 0.5 * 0.5 / 0.5) / 4.0)
    # A rule that no click speaks for is not certain to bring none.
    nothing = Judged(judge.public, judge.private, judge.shown, np.array([False, True, False, True]), judge.propensity)
    assert nothing.by_log(law).value == 0.0
    assert nothing.by_log(law).stderr > 0.4


def test_the_area_under_the_curve_by_hand() -> None:
    chances, clicks = np.array([0.1, 0.2, 0.2, 0.9]), np.array([False, True, False, True])
    assert open_bandit._area(chances, clicks) == pytest.approx((1.0 + 0.5 + 1.0 + 1.0) / 4.0)


def test_without_data_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)
    part = open_bandit.run(Effort.QUICK, seed=0)
    assert part.rows == ()
    assert "left out" in part.notes[0]


@pytest.mark.skipif(not HAS_DATA, reason="needs open-bandit in the folder that TACIT_DATA names")
def test_on_the_real_log_errors_are_as_large_as_rates() -> None:
    part = open_bandit.run(Effort.QUICK, seed=0)
    by = {(row.method, row.metric, row.setting.get("epsilon")): row for row in part.rows}
    assert by["log", "clicks", None].value == 46
    assert by["uniform", LOGGED, None].value == pytest.approx(0.0046)
    public = by["public", LOGGED, None]
    assert public.stderr is not None
    assert public.stderr > 0.5 * by["uniform", LOGGED, None].value
    greedy = by["greedy", MODEL, None].value
    for epsilon in EPSILONS:
        assert by["rr", MODEL, epsilon].value < by["auto", MODEL, epsilon].value <= greedy
        assert by["auto", MODEL, epsilon].value >= by["public", MODEL, None].value - 1e-12
    logged = [claim for claim in part.claims if "by the log" in claim.claim]
    assert logged
    assert not any(claim.holds for claim in logged)
    assert all(claim.evidence.endswith("[not shown]") for claim in logged)  # nor is any refuted
    refuted = [claim for claim in part.claims if not claim.holds and "[not shown]" not in claim.evidence]
    assert all("by the private model" in claim.claim and "-" in claim.evidence for claim in refuted)
