"""The evaluation of multi-selection on the terminal: losses beside the paper's, claims, and the baseline to beat."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tacit.evaluation.multi_selection.baseline import BASELINE, FREE, STATED_BY
from tacit.evaluation.multi_selection.look_alikes import PRIVATE
from tacit.evaluation.multi_selection.plan import DRAWS, SIZES
from tacit.evaluation.result import PAPER, Claim, Result, Row, Setting

if TYPE_CHECKING:
    from rich.console import Console

_METHODS = (*FREE, "nopost", "nopost-realuser", "avg", "avg-realuser", "sat", "sat-realuser", "exact")
_MODELS = ("pca", "ridge")
_FACTS = (
    "best utility",
    "different best classes",
    "test rmse",
    "within half a star",
    "neighbour difference",
    "duplication",
    "clusters within",
)


def print_result(console: "Console", result: Result) -> None:
    counts = {row.setting["of"]: int(row.value) for row in result.select("count")}
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    console.print(f"[bold]{result.system}[/] on [bold]{escape(result.data)}[/]: {told}; seed {result.seed}")
    etas = sorted({float(row.setting["eta"]) for row in result.select("d_i", "sat-realuser", draws=DRAWS)})
    console.print(
        _losses(
            result,
            "d_i",
            etas,
            "d_i: what the slate lacks of the best item, in stars (also the pick, with the network on the device)",
        )
    )
    console.print(
        _losses(result, "d_f", etas, "d_f: what the pick by the local model lacks of the best item, in stars")
    )
    console.print(
        "[green]Green[/]: lower than ig-sig with the same local model by at least 2 standard errors, trial by trial; "
        "[red]red[/]: higher. ig-sig is told nothing about the user: it is what an operator has to beat."
    )
    if any("training_epsilon" in row.setting for row in result.rows):
        console.print(_private(result))
    if result.select("d_f", look_alikes=PRIVATE):
        console.print(_look_alikes(result, etas))
    console.print(_facts(result))
    console.print(_claims("Claims", [claim for claim in result.claims if claim.paper != STATED_BY]))
    console.print(
        _claims(
            "Does the signal pay? Against what needs none (ig-sig), k=5",
            [c for c in result.claims if c.paper == STATED_BY],
        )
    )
    for note in result.notes:
        console.print(f"[dim]- {escape(note)}[/]")
    for row in result.select("trials per second"):
        console.print(f"{row.value:.1f} trials per second, each with all methods, eta and k.")


def _losses(result: Result, metric: str, etas: list[float], title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("method", no_wrap=True)
    table.add_column("k", justify="right")
    for eta in etas:
        table.add_column(f"eta {eta:g}", justify="right", no_wrap=True)
    for method in _METHODS:
        lines = list(_lines(result, metric, method, etas))
        for name, k, cells in lines:
            table.add_row(name, str(k), *cells)
        if lines:
            table.add_section()
    return table


def _lines(result: Result, metric: str, method: str, etas: list[float]) -> Iterator[tuple[str, int, list[str]]]:
    """Ours, and where there is one the paper's, for each local model and k."""
    for model in ("",) if metric == "d_i" else _MODELS:
        for k in SIZES:
            setting = {"k": k, "draws": DRAWS} | ({"local_model": model} if model else {})
            ours = [_at(result, metric, method, eta, setting) for eta in etas]
            if not any(ours):
                continue
            name = f"{method} + {model}" if model else method
            yield name, k, [_cell(result, row) for row in ours]
            papers = [_at(result, metric, PAPER + method, eta, setting) for eta in etas]
            if any(papers):
                yield "[dim]  paper[/]", k, [f"[dim]{row.value:.4f}       [/]" if row else "" for row in papers]


def _at(result: Result, metric: str, method: str, eta: float, setting: Setting) -> Row | None:
    return result.find(metric, method, eta=eta, **setting) or result.find(metric, method, **setting)


def _cell(result: Result, row: Row | None) -> str:
    if row is None:
        return ""
    against = result.find(f"{row.metric} against {BASELINE}", row.method, **row.setting)
    told = f"{row.value:.4f} ±{row.stderr or 0.0:.4f}"
    if against is None or against.stderr is None:
        return told
    if against.value + 2.0 * against.stderr < 0.0:
        return f"[green]{told}[/]"
    return f"[red]{told}[/]" if against.value - 2.0 * against.stderr > 0.0 else told


def _facts(result: Result) -> Table:
    table = Table(title="The model and the users", title_justify="left", box=SIMPLE_HEAD)
    for column in ("what", "setting", "here", "paper"):
        table.add_column(column, justify="right" if column in ("here", "paper") else "left")
    for metric in _FACTS:
        for row in result.select(metric):
            if row.is_papers:
                continue
            papers = result.find(metric, PAPER + row.method, **row.setting)
            setting = ", ".join(f"{name} {value}" for name, value in row.setting.items())
            error = f" ±{row.stderr:.3f}" if row.stderr is not None else ""
            name = metric if row.method in ("network", "users") else f"{metric}, {row.method}"
            table.add_row(name, setting, f"{row.value:.3f}{error}", f"{papers.value:.2f}" if papers else "")
    return table


def _private(result: Result) -> Table:
    """What private training costs: the network fitted with noise answers, the one without noise judges."""
    title = "Private training: d_f at eta 0.1, k=5, judged by the network without noise"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    rows = [
        row
        for row in result.select("d_f", k=5)
        if "training_epsilon" in row.setting and row.setting.get("eta", 0.1) == 0.1
    ]
    epsilons = list(dict.fromkeys(row.setting["training_epsilon"] for row in rows))
    table.add_column("method")
    for name in ("the judge itself", *("another seed" if one == "inf" else f"epsilon {one:g}" for one in epsilons)):
        table.add_column(name, justify="right")
    for method, model in dict.fromkeys((row.method, row.setting["local_model"]) for row in rows):
        found = [row for row in rows if (row.method, row.setting["local_model"]) == (method, model)]
        same = {name: value for name, value in found[0].setting.items() if not name.startswith("training")}
        if model == "network":  # then the pick is the best of the slate
            plain = result.find("d_i", method, **{name: value for name, value in same.items() if name != "local_model"})
        else:
            plain = result.find("d_f", method, **same)
        table.add_row(f"{method} + {model}", *(_cell(result, row) for row in (plain, *found)))
    return table


def _look_alikes(result: Result, etas: list[float]) -> Table:
    """What a server loses that holds no real person's features."""
    title = "Look-alikes: d_i / d_f of exact + ridge, k=5. Public ones are of nobody: a release has to beat them"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("look-alikes")
    rows = [row for row in result.select("d_f", "exact", k=5) if "look_alikes" in row.setting]
    shown = [eta for eta in etas if any(row.setting.get("eta") == eta for row in rows)]
    for eta in shown:
        table.add_column(f"eta {eta:g}", justify="right", no_wrap=True)
    for kind in dict.fromkeys(
        tuple(row.setting.get(name) for name in ("look_alikes", "epsilon", "delta")) for row in rows
    ):
        named = {
            name: value
            for name, value in zip(("look_alikes", "epsilon", "delta"), kind, strict=True)
            if value is not None
        }
        cells = []
        for eta in shown:
            slate, pick = (result.select(metric, "exact", eta=eta, k=5, **named)[0] for metric in ("d_i", "d_f"))
            cells.append(f"{slate.value:.4f} / {pick.value:.4f} ±{pick.stderr or 0.0:.4f}")
        how = f", {'tree' if kind[2] else 'grid'}, epsilon {kind[1]:g}" if kind[1] is not None else ""
        table.add_row(f"{kind[0]}{how}", *cells)
    return table


def _claims(title: str, claims: list[Claim]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("holds", no_wrap=True)
    table.add_column("claim", ratio=2)
    table.add_column("evidence: differences ± standard errors, negative is lower", ratio=3)
    for claim in claims:
        by = "" if claim.paper.startswith("tacit") else "paper: "
        table.add_row(
            "[green]yes[/]" if claim.holds else "[red]no[/]", escape(by + claim.claim), escape(claim.evidence)
        )
    return table
