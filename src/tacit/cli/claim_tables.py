"""Claims on the terminal: what holds, what does not, and by which figures."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.evaluation.result import Claim

if TYPE_CHECKING:
    from rich.console import Console


def print_claims(console: "Console", title: str, claims: Sequence[Claim]) -> None:
    """Nothing where there are no claims."""
    if not claims:
        return
    held = sum(claim.holds for claim in claims)
    table = Table(title=f"{title}: {held} of {len(claims)} hold", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("holds", no_wrap=True)
    table.add_column("claim", ratio=2)
    table.add_column("evidence", ratio=3)
    for claim in claims:
        table.add_row("[green]yes[/]" if claim.holds else "[red]no[/]", escape(claim.claim), escape(claim.evidence))
    console.print(table)
