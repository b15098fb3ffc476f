"""Counts at several epsilons: refused together, or released one after the other."""

from pathlib import Path
from typing import Any

import pytest

from tacit.curator.private_slates.draw import Slates
from tacit.errors import BudgetExhausted, InvalidParameter
from tacit.ledger import Budget
from tests.unit.curator.slates_charged import charges
from tests.unit.curator.slates_world import curator

THREE = Budget(epsilon=3)


def test_what_does_not_fit_together_is_refused_before_any_is_charged(tmp_path: Path) -> None:
    with curator(tmp_path, budget=THREE) as holder:
        with pytest.raises(BudgetExhausted):
            holder.popularities([0.5, 1.0, 2.0])
        assert charges(holder) == 0
        assert [one.guarantee.epsilon for one in holder.popularities([0.5, 1.0])] == [0.5, 1.0]
        assert charges(holder) == 2


def test_where_another_takes_what_is_left_meanwhile_those_before_are_charged_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Slates.require_left
    with curator(tmp_path, budget=THREE) as holder, curator(tmp_path, budget=THREE) as other:

        def then_the_other_charges(*given: Any) -> None:
            looked(*given)
            other.popularity(1.5)

        monkeypatch.setattr(Slates, "require_left", then_the_other_charges)
        with pytest.raises(BudgetExhausted):
            holder.popularities([0.5, 2.0])
        assert charges(holder) == 2  # the other's, and the first of these
        first = holder.popularity(0.5)
        assert first.to_json() == holder.popularity(0.5).to_json()
        assert charges(holder) == 2
        with pytest.raises(BudgetExhausted):
            holder.popularity(1.25)  # 1 is left: nobody got more than was agreed


@pytest.mark.parametrize("wrong", [0.5, None, "0.5", b"1"])
def test_a_single_epsilon_is_told_to_be_several(tmp_path: Path, wrong: Any) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(InvalidParameter, match=r"epsilons must be a collection, such as a list or a tuple, not "):
            holder.popularities(wrong)
        assert charges(holder) == 0


def test_epsilons_may_come_one_by_one(tmp_path: Path) -> None:
    with curator(tmp_path) as holder:
        made = holder.popularities(number / 2 for number in (1, 2))  # type: ignore[arg-type]
        assert [one.guarantee.epsilon for one in made] == [0.5, 1.0]


@pytest.mark.parametrize("wrong", [0.0, float("nan"), "1", None])
def test_one_that_is_no_epsilon_is_refused_before_any_is_charged(tmp_path: Path, wrong: Any) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(InvalidParameter, match="epsilon"):
            holder.popularities([0.5, wrong])
        assert charges(holder) == 0
