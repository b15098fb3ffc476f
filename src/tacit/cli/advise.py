"""``tacit advise``: which system and mode fit, what they promise, what you can expect, and the commands that run
them."""

import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tacit.cli.output import check_different, check_json_target, console, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.evaluation.advice import Advice, Expectation, Situation

_DELTA = 1e-6
_COUNT = re.compile(r"[0-9]{1,18}|[0-9]{1,3}(,[0-9]{3}){1,5}")


class Holder(StrEnum):  # as in tacit.evaluation.advice, which takes long to load
    device = "device"
    entity = "entity"
    curator = "curator"


class Wants(StrEnum):
    item = "item"
    slate = "slate"


def advise(
    holder: Annotated[
        Holder | None,
        typer.Option(
            help="Who holds the raw data: each user's own device, several organisations (entity), or one trusted party (curator)."
        ),
    ] = None,
    must_see: Annotated[
        bool | None,
        typer.Option(
            "--must-see-choice/--need-not-see", help="Whether a server must see, count or bill what was shown."
        ),
    ] = None,
    domains: Annotated[
        int | None, typer.Option(min=1, max=2, help="2 if tastes are known in one domain and wanted in another.")
    ] = None,
    wants: Annotated[Wants | None, typer.Option(help="One item for a user, or a slate that is shown as it is.")] = None,
    releases: Annotated[
        int | None,
        typer.Option(metavar="N", help="The number of answers, impressions, slates or models in the period of epsilon."),
    ] = None,
    items: Annotated[int | None, typer.Option(metavar="N", help="The approximate number of items.")] = None,
    users: Annotated[int | None, typer.Option(metavar="N", help="The approximate number of users.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="What one user may lose in the period, in nats.")] = None,
    delta: Annotated[float, typer.Option(help="The delta of the guarantee; 0 if none is allowed.")] = _DELTA,
    entities: Annotated[
        int | None, typer.Option(metavar="N", help="With --holder entity: the number of organisations.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False,
            help="Use the figures of your own report (`tacit report --json FILE`) instead of those that come with tacit.",
        ),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
    ] = None,
) -> None:  # fmt: skip
    """Recommend a system and mode for your situation: what they promise, what you can expect, and the commands to run.

    On a terminal it asks for what you did not give. It reads no ratings, and writes and charges nothing.
    """

    from tacit.evaluation.advice import advise as advised
    from tacit.evaluation.advice import measured
    from tacit.evaluation.advice.measured import curves_in

    check_json_target(json_file)
    check_different({"--report": report, "--json": json_file})
    told: dict[str, Any] = {
        "holder": holder, "entities": entities, "must_see": must_see, "domains": domains, "wants": wants, "users": users,
        "items": items, "releases": releases, "epsilon": epsilon,
    }  # fmt: skip
    asked = _completed(told)
    at = _situation(told, delta)
    if report is not None:
        curves, source, origin = curves_in(report), None, str(report)
    else:
        kept = measured()
        curves, source = kept.curves, {"command": kept.command, "date": kept.date, "seed": kept.seed}
        origin = f"`{kept.command}` of {kept.date}, seed {kept.seed}"
    found = advised(at, curves)
    if json_file is not None:
        write_json(json_file, {**found.to_json(), "measured": source, "again": again(at)})
        return
    print_advice(console(), found, origin)
    if asked:
        typer.echo(f"\nTo get the same advice again: {again(at)}")


def again(at: "Situation") -> str:
    """The command line that gives the same advice."""
    words = [
        "tacit", "advise", "--holder", at.holder.value, *(["--entities", str(at.entities)] if at.entities else []),
        "--must-see-choice" if at.server_sees_choice else "--need-not-see", "--domains", "2" if at.two_domains else "1",
        "--wants", at.wants.value, "--releases", str(at.releases), "--items", str(at.items), "--users", str(at.users),
        "--epsilon", f"{at.epsilon!r}", *([] if at.delta == _DELTA else ["--delta", f"{at.delta!r}"]),
    ]  # fmt: skip
    return shlex.join(words)


_NEEDED = {"holder": "--holder", "users": "--users", "items": "--items", "epsilon": "--epsilon"}
_USUAL: dict[str, Any] = {"must_see": False, "domains": 1, "wants": Wants.item, "releases": 1}
_RELEASES = {
    Holder.device: "How many answers or impressions in the period that the epsilon is for (a month, a day)?",
    Holder.entity: "How many runs (models, or slates of each organisation) in the period that the epsilon is for?",
    Holder.curator: "How many slates or models in the period that the epsilon is for?",
}


def _completed(told: dict[str, Any]) -> bool:
    """Asks for missing answers on a terminal; otherwise raises an error that names the missing options."""
    missing = [option for name, option in _NEEDED.items() if told[name] is None]
    if told["holder"] is Holder.entity and told["entities"] is None:
        missing.append("--entities")
    if not missing:
        told.update({name: usual for name, usual in _USUAL.items() if told[name] is None})
        return False
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"there is no terminal to ask on: give {', '.join(missing)}.")
    _ask(told)
    return True


def _ask(told: dict[str, Any]) -> None:
    """Asks on standard error; standard output is for the advice."""

    def ask(name: str, text: str, usual: str, read: Callable[[str], Any]) -> None:
        if told[name] is None:
            told[name] = typer.prompt(text, default=usual, value_proc=read, err=True)

    from tacit.evaluation.advice.situation import MOST
    from tacit.messages.federated_prototypes.manifest import MOST_ENTITIES

    typer.echo("Orders of magnitude are enough; press Enter for the value in brackets.\n", err=True)
    who = "Who holds the raw data: each user's own device, several organisations (entity), or one trusted curator?"
    ask("holder", who, Holder.device.value, _one_of(Holder))
    if told["holder"] is Holder.entity:
        most = min(MOST_ENTITIES, told["users"] or MOST_ENTITIES)
        ask("entities", "How many organisations?", str(min(10, most)), _whole(1, most))
    ask("must_see", "Must a server see, count or bill what was shown? yes or no", "no", _yes)
    ask(
        "domains",
        "Domains: 2 if tastes are known in one (films) and wanted in another (books), else 1",
        "1",
        _one_or_two,
    )
    ask(
        "wants",
        "What is wanted: one item for a user, or a slate that is shown as it is?",
        Wants.item.value,
        _one_of(Wants),
    )
    fewest = told["entities"] or 1  # every organisation has a user
    ask("users", "How many users in all?", str(max(5000, fewest)), _whole(fewest, MOST))
    ask("items", "How many items?", "4000", _whole(1, MOST))
    ask("releases", _RELEASES[told["holder"]], "1", _whole(1, MOST))
    ask("epsilon", "What may one user lose in that period, in nats (1 is cautious, 10 is much)?", "1", _above_zero)


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """Reads one of these words; on any other answer the question is asked again, as below."""

    def read(text: str) -> StrEnum:
        if text.strip() in list(kind):
            return kind(text.strip())
        raise typer.BadParameter(f"answer with {', '.join(kind)}.")

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    """Reads a count from ``least`` to ``most``, written as 1000 or 1,000."""

    def read(text: str) -> int:
        if _COUNT.fullmatch(text.strip()) and least <= (count := int(text.replace(",", ""))) <= most:
            return count
        raise typer.BadParameter(f"answer with a whole number from {least:,} to {most:,}.")

    return read


def _above_zero(text: str) -> float:
    try:
        if 0.0 < (number := float(text)) < math.inf:
            return number
    except ValueError:  # also 0,5: a comma may separate thousands or a fraction
        pass
    raise typer.BadParameter("answer with a number above 0, such as 1 or 0.5.")


def _yes(text: str) -> bool:
    if (word := text.strip().lower()) in ("y", "yes", "n", "no"):
        return word.startswith("y")
    raise typer.BadParameter("answer with yes or no.")


def _one_or_two(text: str) -> int:
    if text.strip() in ("1", "2"):
        return int(text)
    raise typer.BadParameter("answer with 1 or 2.")


def _situation(told: dict[str, Any], delta: float) -> "Situation":
    from tacit.evaluation.advice import Situation

    return Situation(
        holder=told["holder"], entities=told["entities"], server_sees_choice=told["must_see"], two_domains=told["domains"] == 2,
        wants=told["wants"], users=told["users"], items=told["items"], releases=told["releases"],
        epsilon=told["epsilon"], delta=delta,
    )  # fmt: skip


def print_advice(to: "Console", advice: "Advice", origin: str) -> None:
    """Prints the advice: the answer first, then promises, expectations, reasons and commands. ``origin`` is the source
    of the figures."""
    to.print(f"[bold]{escape(advice.headline)}[/bold]", highlight=False)
    _lines(to, "", [advice.why])
    if advice.guarantee is not None:
        same = advice.each == advice.guarantee
        _lines(
            to,
            "Promises",
            [f"{'' if same else 'in all: '}{advice.guarantee}", *([] if same else [f"each: {advice.each}"])],
        )
    if advice.expected is not None:
        _expected(to, advice.expected, origin)
    if advice.baseline:
        _lines(to, "Costs no privacy", [advice.baseline])
    _lines(to, "Why so", advice.reasons)
    _lines(to, "Mind", advice.warnings)
    _lines(to, "Why not", [f"{system.value}: {line}." for system, line in advice.rejected.items()])
    for name, content in advice.files.items():
        _verbatim(to, f"{name}", content.splitlines())
    if advice.evaluate:
        _verbatim(to, "Try it on data", [advice.evaluate])
    _lines(to, "You need", [f"{name}: {holds}" for name, holds in advice.needs.items()])
    _verbatim(to, "Run it", advice.commands)
    _verbatim(to, "In Python", advice.python.splitlines())
    to.print(f"More: {advice.page}", highlight=False)


def _expected(to: "Console", found: "Expectation", origin: str) -> None:
    curve = found.curve
    table = Table(box=None, pad_edge=False)
    for name in ("", "method", "value", "stderr"):
        table.add_column(name, justify="left" if name in ("", "method") else "right")
    rows = [
        ("learns nothing", curve.nothing.method, curve.nothing.value, curve.nothing.stderr),
        (
            f"private, {curve.measured_in} = {found.private.epsilon:.3g}",
            found.method,
            found.private.value,
            found.private.stderr,
        ),
        ("not private", curve.plain.method, curve.plain.value, curve.plain.stderr),
    ]
    for row, method, value, error in rows:
        table.add_row(row, method, f"{value:.4g}", "" if error is None else f"{error:.2g}")
    _lines(to, "Expected", [f"{curve.metric}: {curve.unit}, {curve.better} is better"])
    to.print(Padding(table, (0, 0, 0, 2), expand=False), highlight=False)
    share = "" if found.share is None else f"{found.share:.0%} of the way from nothing to everything. "
    _lines(to, "", [f"{share}From {curve.world}; {origin}.", *found.notes])


def _lines(to: "Console", title: str, lines: Iterable[str]) -> None:
    """Prints sentences, wrapped; nothing if there are none."""
    found = list(lines)
    if found and title:
        to.print(f"\n[bold]{title}[/bold]", highlight=False)
    for line in found:
        to.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _verbatim(to: "Console", title: str, lines: Iterable[str]) -> None:
    """Prints lines to copy, which are never wrapped."""
    found = list(lines)
    if found:
        to.print(f"\n[bold]{escape(title)}[/bold]", highlight=False)
    for line in found:
        to.print(Text(f"  {line}"), soft_wrap=True, highlight=False)
