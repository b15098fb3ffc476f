"""One domain or two: what a curator of either makes, and what is refused before the charge."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit.data
from tacit.curator import Curator
from tacit.curator.cross_domain.domains import BothDomains
from tacit.data.pairs import TwoDomains
from tacit.errors import InvalidParameter
from tacit.ledger import Budget, PrivacyLedger
from tacit.models.cross_domain.transfer import TransferSettings
from tests.unit.curator.cross_domain_charged import charges
from tests.unit.curator.cross_domain_world import curator
from tests.unit.curator.slates_world import CountedNoise

# ---- one domain, or two


def test_slates_are_of_one_domain_and_releases_of_two(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains) as holder:
        for ask in (
            lambda: holder.slate(3, 0.1),
            lambda: holder.plan(3, 0.1),
            lambda: holder.popularity(0.1),
            lambda: holder.similarity(0.1),
            lambda: holder.items,
        ):
            with pytest.raises(InvalidParameter, match="holds two domains"):
                ask()
        assert charges(holder) == 0
    with curator(tmp_path, domains.source, ledger=tmp_path / "one.db") as holder:
        with pytest.raises(InvalidParameter, match="holds one domain"):
            holder.release()
        assert holder.slate(2, 0.1)


@pytest.mark.parametrize("options", [{"features": np.ones((15, 2))}, {"most_likes": 3.0}], ids=str)
def test_what_belongs_to_slates_is_refused_for_two_domains(tmp_path: Path, domains: TwoDomains, options: Any) -> None:
    with pytest.raises(InvalidParameter, match="belong to slates"):
        curator(tmp_path, domains, **options)


@pytest.mark.parametrize("options", [{"catalogues": ([1], [2])}, {"public_catalogue": True}], ids=str)
def test_what_belongs_to_two_catalogues_is_refused_where_there_is_one_or_both_are_known(
    tmp_path: Path, domains: TwoDomains, options: Any
) -> None:
    for data in (domains.source, BothDomains.of(domains)):
        with pytest.raises(InvalidParameter, match="catalogues"):
            curator(tmp_path, data, budget=Budget(2, 1e-6), **options)
    assert not (tmp_path / "curator.db").exists()


def test_public_lists_are_what_a_release_speaks_of(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, catalogues=([1, 2, 77], [16, 99])) as holder:
        model = holder.release()
        assert (model.source, model.target) == ((1, 2, 77), (16, 99))
    for wrong in (([1, 2],), [1], {"a": 1}):
        with curator(tmp_path, domains, catalogues=wrong) as holder, pytest.raises(InvalidParameter, match="catalogue"):
            holder.release()


def test_two_scales_are_refused_at_once(tmp_path: Path, domains: TwoDomains) -> None:
    other = replace(domains.target, scale=tacit.data.Scale(0.0, 10.0))
    with pytest.raises(InvalidParameter, match="one scale"):
        curator(tmp_path, TwoDomains(domains.source, other), budget=Budget(2, 1e-6))
    assert not (tmp_path / "curator.db").exists()


def test_a_curator_without_a_ledger_is_refused(domains: TwoDomains) -> None:
    with pytest.raises(InvalidParameter, match=r"ledger='curator\.db'"):
        Curator(domains)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"mode": "magic"}, "mode must be one of 'moments', 'prs_valid', 'published', 'nx'"),
        ({"colour": 3}, "has no option 'colour'; its options are"),
        ({"post": "magic"}, "post must be one of"),
        ({"settings": 3}, "TransferSettings"),
        ({"settings": TransferSettings.for_scale(1.0, 5.0)}, "scale"),
        ({"settings": TransferSettings.for_scale(0.5, 5.0), "users": 3}, "users"),
        ({"least": 0}, "least must"),
        ({"users": 0}, "users must"),
        ({"request_id": ""}, "a request_id must"),
        ({"request_id": "x" * 101}, "a request_id must"),
        ({"mode": "prs_valid", "sources": []}, "at least one item"),
        ({"mode": "prs_valid", "candidates": []}, "at least one item"),
        ({"mode": "prs_valid", "least": 0}, "least must"),
        ({"mode": "prs_valid", "edges": 0}, "edges must"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_before_the_charge(
    tmp_path: Path, domains: TwoDomains, options: dict[str, Any], match: str
) -> None:
    noise = CountedNoise()
    with curator(tmp_path, domains, noise=noise) as holder:
        with pytest.raises(InvalidParameter, match=match):
            holder.release(**options)
        assert (charges(holder), noise.draws) == (0, 0)


def test_one_ledger_may_be_shared_and_stays_open(tmp_path: Path, domains: TwoDomains) -> None:
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        with Curator(domains, ledger=ledger, subject="people") as holder:
            holder.release()
        assert ledger.statement("people").charges == 1
