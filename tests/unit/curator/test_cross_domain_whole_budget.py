"""All of the budget for one release across domains, what it promises, and where its ratings may lie."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import account
from tacit.curator.cross_domain.domains import PUBLIC, SERVED, BothDomains
from tacit.curator.fit import RATED_AT_ALL
from tacit.data.pairs import TwoDomains
from tacit.errors import BudgetExhausted, Conflict, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.ledger import Accounting, Budget
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.x_map import PUBLIC_LISTS
from tacit.messages.cross_domain import Replacements, TransferModel
from tests.unit.curator.cross_domain_charged import MODES, ROOMY, charges, stored, told
from tests.unit.curator.cross_domain_world import TABLE, curator, small

# ---- all of the budget


@pytest.mark.parametrize("accounting", [None, "basic", "zcdp"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("epsilon", [2.0, 0.3])
def test_epsilon_may_be_the_whole_budget(
    tmp_path: Path, domains: TwoDomains, accounting: str | None, mode: str, epsilon: float
) -> None:
    budget = Budget(epsilon, 1e-6)
    with curator(tmp_path, domains, accounting=accounting, budget=budget) as holder:
        made = holder.release(epsilon, 1e-6, mode=mode)
        assert made.guarantee.protects == ONE_USER
        terms = holder.statement().terms
        assert terms.accounting is (Accounting.ZCDP if accounting == "zcdp" else Accounting.BASIC)
        if made.guarantee.delta:
            assert made.guarantee.epsilon <= epsilon
        assert holder.statement().windows[0].left.amount <= 1  # nothing to speak of is left
        with pytest.raises(BudgetExhausted):
            holder.release(0.1, 1e-6, mode=mode)


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_so_may_a_delta_that_no_ledger_counts_exactly(tmp_path: Path, domains: TwoDomains, accounting: str) -> None:
    budget = Budget(2 / 3, 1e-6 / 3)
    for mode in MODES:
        with curator(tmp_path, domains, accounting=accounting, budget=budget, ledger=tmp_path / mode) as holder:
            assert holder.release(budget.epsilon, budget.delta, mode=mode).guarantee.delta <= budget.delta


def test_few_draws_may_be_the_whole_of_a_budget_that_adds_up_by_rho(tmp_path: Path, domains: TwoDomains) -> None:
    source = domains.source.catalogue.ids.tolist()[:1]
    with curator(tmp_path, domains, accounting="zcdp", budget=Budget(2.0, 1e-6)) as holder:
        made = holder.release(2.0, 1e-6, mode="prs_valid", sources=source)
        assert made.guarantee.delta == 0.0
        assert 0.5 < made.guarantee.epsilon < 1.0  # what a rho of .07 affords one draw
        assert holder.statement().windows[0].left.amount <= 2


def test_the_default_budget_is_one_release_at_epsilon_2(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains) as holder:
        model = holder.release()
        assert holder.statement().terms.budgets == (Budget(2.0, 1e-6),)
        assert model.guarantee.epsilon == pytest.approx(2.0)
        assert model.guarantee.delta == 1e-6
        assert model.guarantee.loss is not None
        assert (model.guarantee.loss.kind, round(model.guarantee.loss.value, 6)) == (LossKind.GAUSSIAN, 0.448335)
    with curator(tmp_path, domains) as holder:  # and it is agreed, not asked again
        assert holder.statement().terms.budgets == (Budget(2.0, 1e-6),)
        with pytest.raises(BudgetExhausted):
            holder.release(0.1)


def test_a_budget_without_a_delta_has_no_room_for_gaussian_noise(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, budget=Budget(2.0)) as holder:
        with pytest.raises(InvalidParameter, match="needs a budget with a delta"):
            holder.release(1.0)
        assert charges(holder) == 0


def test_a_pure_budget_pays_for_replacements(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, budget=Budget(2.0)) as holder:
        promise = holder.release(2.0, mode="prs_valid").guarantee  # of 15 draws: with a delta they would get more each
        assert (promise.epsilon, promise.delta) == (2.0, 0.0)


def test_it_is_told_whether_a_release_was_drawn_or_sent_again(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, unprotected=["nx"], budget=Budget(4.0, 2e-6)) as holder:
        told = []
        for options in ({}, {}, {"mode": "nx"}, {}, {"request_id": "December"}):
            holder.release(**options)
            told.append(holder.sent_again)
        assert told == [False, True, False, True, False]


# ---- what is promised


@pytest.mark.parametrize("mode", MODES)
def test_the_promise_says_what_it_assumes(tmp_path: Path, mode: str) -> None:
    data = small(np.tile(TABLE, (3, 1)), rated_only=np.ones(3, dtype=np.bool_))
    with curator(tmp_path, data, public_catalogue=True) as holder:
        assert {SERVED, RATED_AT_ALL} <= holder.release(mode=mode).guarantee.assumes
    listed = small(np.tile(TABLE, (3, 1)))
    with curator(tmp_path, listed, ledger=tmp_path / "listed.db") as holder:
        assumes = holder.release(mode=mode).guarantee.assumes
        assert {SERVED, PUBLIC if mode == "moments" else PUBLIC_LISTS} <= assumes
        assert RATED_AT_ALL not in assumes


def test_replayed_noise_promises_nothing_and_is_refused_unless_named(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, noise=ReplayedNoise(1)) as holder, pytest.raises(Exception, match="replayed"):
        holder.release()
    with curator(
        tmp_path, domains, ledger=tmp_path / "b.db", noise=ReplayedNoise(1), unprotected=[ReplayedNoise.caveat]
    ) as holder:
        assert holder.release().guarantee.promises_nothing


def test_what_may_be_too_long_to_be_kept_is_refused_before_it_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domains: TwoDomains
) -> None:
    with curator(tmp_path, domains, budget=ROOMY) as holder:
        for mode in MODES:
            holder.release(1.0, mode=mode)
        longest = max(map(len, stored(holder)))
        monkeypatch.setattr(account, "MOST_BYTES", 2_500)
        for mode in MODES:
            with pytest.raises(InvalidParameter, match="longer than what a ledger keeps"):
                holder.release(1.0, mode=mode, request_id="long")
        assert charges(holder) == 2
        monkeypatch.setattr(account, "MOST_BYTES", 3 * longest + 20_000)  # not much more is asked for than is needed
        for mode in MODES:
            holder.release(1.0, mode=mode, request_id="long")


# ---- where the ratings lie


class Elsewhere:
    """Totals of rows that lie on other machines: exact, and nothing else."""

    def __init__(self, rows: Any) -> None:
        self._parts, self.asked = [rows[:50], rows[50:]], 0

    def totals(self, of: Any) -> Any:
        self.asked += 1
        return sum(of.totals(part) for part in self._parts)


def test_totals_from_elsewhere_are_charged_and_released_as_rows_are(tmp_path: Path, domains: TwoDomains) -> None:
    listed = BothDomains.of(domains)
    there = Elsewhere(listed.read(5))
    models = []
    for name, read in (("here", listed.read), ("there", lambda least: there)):
        options: Any = {"ledger": tmp_path / name, "noise": ReplayedNoise(5), "unprotected": [ReplayedNoise.caveat]}
        with curator(tmp_path, replace(listed, read=read), **options) as holder:
            models.append(holder.release())
            assert charges(holder) == 1
    assert there.asked == 2
    assert told(models[0]) == told(models[1])


def test_wrong_totals_are_not_told_of(tmp_path: Path, domains: TwoDomains) -> None:
    class Short:
        def totals(self, of: Any) -> Any:
            return np.zeros(3, dtype=np.int64)

    elsewhere = replace(BothDomains.of(domains), read=lambda least: Short())
    with curator(tmp_path, elsewhere) as holder, pytest.raises(Conflict, match="used up"):
        holder.release()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("mode", MODES)
def test_no_rating_makes_a_release_fail(tmp_path: Path, domains: TwoDomains, value: float, mode: str) -> None:
    values = domains.source.values.copy()
    values[:5] = value
    with curator(tmp_path, TwoDomains(replace(domains.source, values=values), domains.target)) as holder:
        assert holder.release(mode=mode).guarantee.epsilon <= 2.0


@pytest.mark.parametrize("mode", MODES)
def test_nobody_at_all_is_no_reason_to_fail_or_to_warn(tmp_path: Path, domains: TwoDomains, mode: str) -> None:
    nobody = TwoDomains(
        domains.source.select_users(np.zeros(0, dtype=np.int64)),
        domains.target.select_users(np.zeros(0, dtype=np.int64)),
    )
    with curator(tmp_path, nobody) as holder:
        made = holder.release(mode=mode)
    assert isinstance(made, TransferModel | Replacements)
