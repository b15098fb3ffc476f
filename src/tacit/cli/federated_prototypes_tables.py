"""The evaluation of federated prototypes on the terminal: each world's methods beside reference figures, and what they decide."""

from typing import TYPE_CHECKING

from rich.markup import escape

from tacit.cli.claim_tables import print_claims
from tacit.cli.world_tables import print_near, print_worlds
from tacit.evaluation.federated_prototypes import paper, ranking
from tacit.evaluation.federated_prototypes.reference import NAME as REFERENCE
from tacit.evaluation.federated_prototypes.reference import PREFIX
from tacit.evaluation.result import Result, Row

if TYPE_CHECKING:
    from rich.console import Console

_TOLD = (ranking.SEEN, ranking.HEAD, ranking.KEPT, ranking.USED)  # of releases: in the JSON, not on the terminal


def print_result(console: "Console", result: Result) -> None:
    console.print(f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]; seed {result.seed}")
    print_worlds(console, [row for row in result.rows if row.metric not in _TOLD], PREFIX, _figure, _of)
    for by, title in {paper.NAME: "The paper's claims", paper.OURS: "Beyond the paper"}.items():
        print_claims(console, title, [one for one in result.claims if one.paper == by])
    print_near(console, [one for one in result.claims if one.paper == REFERENCE])
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")


def _of(row: Row) -> str:
    return f" of {row.n:,}" if row.metric == ranking.HARMED else ""


def _figure(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if abs(value) < 1.0 else f"{value:.3f}" if abs(value) < 100.0 else f"{value:,.0f}"
