"""``tacit ledger forget``: what has lapsed is deleted and counted, and nothing else."""

import sys
from pathlib import Path

import pytest

from tacit import cli
from tacit.ledger import DisplayLedger, ImpressionLedger, Offered, Settlement
from tacit.ledger.verification import check

ROOT = Path(__file__).parents[3]
LATER = 4_000_000_000


def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["tacit", "ledger", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0), capfd.readouterr().out


def test_lapsed_offers_and_displays_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "shop.db"
    expiries = (0, 0, LATER)
    with ImpressionLedger.create(path, clock=lambda: 0) as shop:
        for place, expires in enumerate(expiries):
            shop.offer(Offered(f"t{place}", (("pear", 1),), "", expires))
    with ImpressionLedger.open(path) as shop, DisplayLedger.open(path) as device:
        for place, expires in enumerate(expiries):
            device.choose("shop", f"t{place}", ("pear",), expires if place else LATER)
        assert call(monkeypatch, capfd, "forget", path) == (0, f"Deleted 2 offers and 1 display from {path}.\n")
        assert shop.settle("t0", ("pear",)) is Settlement.UNKNOWN
        assert shop.settle("t2", ("pear",)) is Settlement.OK
        assert device.find("shop", "t1") is None
    assert check(path).sound


def test_it_has_help_with_an_example_and_its_place_in_the_docs(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out = call(monkeypatch, capfd, "forget", "--help")
    assert status == 0
    assert "Example: tacit ledger forget" in out
    assert "tacit ledger forget" in (ROOT / "docs" / "command-line.md").read_text()
