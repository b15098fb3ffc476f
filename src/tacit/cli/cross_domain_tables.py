"""The evaluation across domains on the terminal: each world's methods beside reference figures, and what they decide."""

from typing import TYPE_CHECKING

from rich.markup import escape

from tacit.cli.claim_tables import print_claims
from tacit.cli.world_tables import print_near, print_worlds
from tacit.evaluation.cross_domain import paper
from tacit.evaluation.cross_domain.reference import NAME as REFERENCE
from tacit.evaluation.cross_domain.reference import PREFIX
from tacit.evaluation.result import Result

if TYPE_CHECKING:
    from rich.console import Console


def print_result(console: "Console", result: Result) -> None:
    console.print(f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]; seed {result.seed}")
    print_worlds(console, result.rows, PREFIX, _figure)
    titles = {
        paper.NAME: "The paper's claims",
        paper.UNVERIFIED: "The paper's claims, unverified",
        paper.OURS: "Beyond the paper",
    }
    for by, title in titles.items():
        print_claims(console, title, [one for one in result.claims if one.paper == by])
    print_near(console, [one for one in result.claims if one.paper == REFERENCE])
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")


def _figure(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10.0 else f"{value:.4g}"
