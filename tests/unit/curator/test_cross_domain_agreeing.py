"""Terms are for good: agreed with a first charge that fits, for people who are told apart by name and not by file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.curator import Curator
from tacit.curator.account import OF_TWO_DOMAINS
from tacit.curator.cross_domain.moments import Moments
from tacit.curator.cross_domain.x_map import ValidReplacements
from tacit.data.pairs import TwoDomains
from tacit.errors import BudgetExhausted, Conflict, GuaranteeRefused, InvalidParameter
from tacit.guarantees import ONE_USER
from tacit.ledger import Accounting, Budget, PrivacyLedger, Terms
from tests.unit.curator.cross_domain_world import curator, small, world
from tests.unit.unsynced import unsynced

__all__ = ["unsynced"]


def renamed(domains: TwoDomains, name: str) -> TwoDomains:
    return TwoDomains(replace(domains.source, name=name), domains.target)


def subjects(folder: Path) -> list[str]:
    with PrivacyLedger.open(folder / "curator.db") as ledger:
        return list(ledger.subjects())


def test_ratings_by_another_name_get_no_second_budget(tmp_path: Path) -> None:
    with curator(tmp_path) as first:
        first.release(least=1)
    with pytest.raises(InvalidParameter, match=r"knows 'users of books and films'\..*subject=.*--subject NAME"):
        curator(tmp_path, renamed(small(), "films, December"))
    assert subjects(tmp_path) == ["users of books and films"]
    same = curator(tmp_path, renamed(small(), "films, December"), subject="users of books and films")
    with same, pytest.raises(BudgetExhausted):
        same.release(least=1, request_id="December")
    with curator(tmp_path, renamed(small(), "other films"), subject="other people") as others:
        others.release(least=1)
    with curator(tmp_path) as again:  # known by its own name, whoever else is there
        assert again.statement().charges == 1
    assert subjects(tmp_path) == ["users of books and films", "other people"]


def test_two_that_opened_one_ledger_before_either_charged_are_told_apart_at_the_charge(tmp_path: Path) -> None:
    with PrivacyLedger.create(tmp_path / "curator.db") as ledger:
        first, second = (Curator(renamed(small(), name), ledger=ledger) for name in ("a", "b"))
        twin = Curator(renamed(small(), "a"), ledger=ledger)
        first.release(least=1)
        with pytest.raises(InvalidParameter, match="'users of a and books'"):
            second.release(least=1)
        assert twin.release(least=1) == first.release(least=1)
        assert list(ledger.subjects()) == ["users of a and books"]


def test_a_subject_that_another_process_meets_meanwhile_is_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PrivacyLedger.create(tmp_path / "curator.db") as ledger:
        twin, first = Curator(small(), ledger=ledger), Curator(small(), ledger=ledger)
        listing = PrivacyLedger.subjects

        def slowly(own: PrivacyLedger) -> Iterator[str]:
            monkeypatch.setattr(PrivacyLedger, "subjects", listing)
            first.release(least=1)
            return listing(own)

        monkeypatch.setattr(PrivacyLedger, "subjects", slowly)
        assert twin.release(least=1) == first.release(least=1)
        assert twin.statement().charges == 1


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["anna@example.org"], "others"),
        (["users of a", "users of b"], "'users of a', 'users of b'"),
        (["anna@example.org", "users of a", "my users of b"], "'users of a' and others"),
        (
            [f"users of {name}" for name in "abcdef"],
            ", ".join(f"'users of {name}'" for name in "abcde") + " and others",
        ),
    ],
    ids=["a person", "data", "both", "many"],
)
def test_only_a_few_names_are_listed_and_none_that_may_be_a_persons(
    tmp_path: Path, names: list[str], told: str
) -> None:
    with PrivacyLedger.create(tmp_path / "curator.db") as ledger:
        ledger.enrol_many(names, Terms((Budget(2.0, 1e-6),), ONE_USER))
        with pytest.raises(InvalidParameter) as refused:
            Curator(small(), ledger=ledger)
    assert f"It knows {told}. The same" in str(refused.value)
    assert "anna" not in str(refused.value)


def test_slates_of_one_domain_are_named_as_ever(tmp_path: Path) -> None:
    for name in ("films", "films again"):
        with curator(tmp_path, replace(small().source, name=name)):
            pass
    assert subjects(tmp_path) == ["users of films", "users of films again"]


def test_a_data_set_may_have_and_in_its_name(tmp_path: Path) -> None:
    for name in ("rock and roll", "rock", "roll"):
        with curator(tmp_path, replace(small().source, name=name)) as one:
            one.slate(2, 0.5)
    assert subjects(tmp_path) == ["users of rock and roll", "users of rock", "users of roll"]
    assert set(OF_TWO_DOMAINS) == {Moments.name, ValidReplacements.name}


@pytest.mark.parametrize("part", ["source", "target"])
def test_slates_of_one_of_two_known_domains_get_no_second_budget(tmp_path: Path, part: str) -> None:
    with curator(tmp_path) as both:
        both.release(least=1)
    one = getattr(small(), part)
    with pytest.raises(InvalidParameter, match=r"one of these two domains.*subject='users of books and films'"):
        curator(tmp_path, one)
    assert subjects(tmp_path) == ["users of books and films"]
    with curator(tmp_path, one, subject="users of books and films") as same, pytest.raises(BudgetExhausted):
        same.slate(2, 0.9)
    with curator(tmp_path, replace(one, name="music")) as others:
        others.slate(2, 0.9)
    assert subjects(tmp_path) == ["users of books and films", "users of music"]


@pytest.mark.parametrize(
    ("mode", "options", "asked", "larger"),
    [
        (
            "moments",
            {},
            {"epsilon": 5.0},
            r"no more than epsilon 2, delta 1e-06 in all.*Budget\(5\.?0*, 1e-06\).*--budget",
        ),
        ("prs_valid", {}, {"epsilon": 5.0}, r"takes 5\S* epsilon.*Budget\(5\.?0*, 1e-06\)"),
        ("moments", {}, {"delta": 1e-5}, r"takes 0\.0000\S* delta.*Budget\(2\.?0*, 1e-05\)"),
        ("moments", {"accounting": Accounting.ZCDP}, {"epsilon": 5.0}, r"rho.*Budget\(epsilon, delta\)"),
    ],
    ids=["epsilon", "a table", "delta", "zcdp"],
)
def test_what_a_first_release_asks_must_fit_or_nothing_is_agreed(
    tmp_path: Path, mode: str, options: dict[str, Accounting], asked: dict[str, float], larger: str
) -> None:
    domains = world(60, 8)
    with curator(tmp_path, domains, **options) as first, pytest.raises(BudgetExhausted, match=larger):
        first.release(mode=mode, **asked)
    assert subjects(tmp_path) == []
    with curator(tmp_path, domains, budget=Budget(6.0, 2e-5), **options) as second:
        second.release(mode=mode, **asked)
        assert second.statement().charges == 1


def test_what_is_refused_or_merely_looked_at_agrees_nothing(tmp_path: Path) -> None:
    with curator(tmp_path) as first:
        assert (first.statement().charges, first.statement().terms.budgets) == (0, (Budget(2.0, 1e-6),))
        assert first.statement().windows[0].left.amount == 2 * 10**9
        with pytest.raises(GuaranteeRefused, match="unprotected"):
            first.release(mode="nx")
        with pytest.raises(InvalidParameter):
            first.release(mode="moments", post="magic")
    assert subjects(tmp_path) == []
    with pytest.raises(InvalidParameter, match="too small"):
        curator(tmp_path, budget=Budget(1e-12, 1e-6))
    with curator(tmp_path, unprotected=["nx"]) as second:
        second.release(mode="nx", least=1)
    assert subjects(tmp_path) == ["users of books and films"]


def test_who_comes_with_another_budget_is_told_which_one_stands(tmp_path: Path) -> None:
    with PrivacyLedger.create(tmp_path / "curator.db") as ledger:
        late = Curator(small(), ledger=ledger, budget=Budget(3.0, 1e-6))
        Curator(small(), ledger=ledger).release(least=1)
        stands = r"\(epsilon 2, delta 1e-06 in all; basic accounting\).*leave `budget` out"
        with pytest.raises(Conflict, match=stands):
            late.release(least=1)
        with pytest.raises(Conflict, match=stands):
            Curator(small(), ledger=ledger, budget=Budget(3.0, 1e-6))
