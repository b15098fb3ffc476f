"""``tacit advise``: recommends a system and mode, with their guarantee, the expected utility and the commands to run."""

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

from tacit.cli.output import Json, check_different, check_json_target, console, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.evaluation.advice import Advice, Expectation, Situation

_DELTA = 1e-6
_COUNT = re.compile(r"[0-9]{1,18}|[0-9]{1,3}(,[0-9]{3}){1,5}")


class HolderOption(StrEnum):  # tacit.evaluation.advice.Holder, without loading that module
    device = "device"
    entity = "entity"
    curator = "curator"


class WantsOption(StrEnum):  # tacit.evaluation.advice.Wants
    item = "item"
    slate = "slate"


def advise(
    holder: Annotated[
        HolderOption | None,
        typer.Option(
            help="The holder of the raw data: each user's own device, several organisations (entity), or one trusted party "
            "(curator)."
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
    wants: Annotated[
        WantsOption | None, typer.Option(help="One item for a user, or a slate that is shown as it is.")
    ] = None,
    releases: Annotated[
        int | None,
        typer.Option(metavar="N", help="The number of answers, impressions, slates or models in the period of epsilon."),
    ] = None,
    items: Annotated[int | None, typer.Option(metavar="N", help="The approximate number of items.")] = None,
    users: Annotated[int | None, typer.Option(metavar="N", help="The approximate number of users.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="The privacy loss that you allow for one user in the period, in nats.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta of the guarantee; 0 asks for pure epsilon.")] = _DELTA,
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
    json_file: Json = None,
) -> None:  # fmt: skip
    """Recommend a system and mode for your situation: what they promise, what you can expect, and the commands to run.

    On a terminal it asks for missing options. It reads no ratings, and writes and charges nothing.
    """

    from tacit.evaluation.advice import Situation, measured
    from tacit.evaluation.advice import advise as advise_on
    from tacit.evaluation.advice.measured import curves_in

    check_json_target(json_file)
    check_different({"--report": report, "--json": json_file})
    answers: dict[str, Any] = {
        "holder": holder, "entities": entities, "must_see": must_see, "domains": domains, "wants": wants, "users": users,
        "items": items, "releases": releases, "epsilon": epsilon,
    }  # fmt: skip
    is_interactive = _complete(answers)
    situation = Situation(
        holder=answers["holder"], entities=answers["entities"], server_sees_choice=answers["must_see"],
        two_domains=answers["domains"] == 2, wants=answers["wants"], users=answers["users"], items=answers["items"],
        releases=answers["releases"], epsilon=answers["epsilon"], delta=delta,
    )  # fmt: skip
    if report is not None:
        curves, source, origin = curves_in(report), None, str(report)
    else:
        figures = measured()
        curves, source = figures.curves, {"command": figures.command, "date": figures.date, "seed": figures.seed}
        origin = f"`{figures.command}` of {figures.date}, seed {figures.seed}"
    advice = advise_on(situation, curves)
    if json_file is not None:
        write_json(json_file, {**advice.to_json(), "measured": source, "again": _command_for(situation)})
        return
    print_advice(console(), advice, origin)
    if is_interactive:
        typer.echo(f"\nTo get the same advice again: {_command_for(situation)}")


def _command_for(situation: "Situation") -> str:
    """The command line that gives the advice for a situation without questions."""
    words = [
        "tacit", "advise", "--holder", situation.holder.value,
        *(["--entities", str(situation.entities)] if situation.entities else []),
        "--must-see-choice" if situation.server_sees_choice else "--need-not-see",
        "--domains", "2" if situation.two_domains else "1", "--wants", situation.wants.value,
        "--releases", str(situation.releases), "--items", str(situation.items), "--users", str(situation.users),
        "--epsilon", f"{situation.epsilon!r}",
        *([] if situation.delta == _DELTA else ["--delta", f"{situation.delta!r}"]),
    ]  # fmt: skip
    return shlex.join(words)


_NEEDED = {"holder": "--holder", "users": "--users", "items": "--items", "epsilon": "--epsilon"}
_DEFAULTS: dict[str, Any] = {"must_see": False, "domains": 1, "wants": WantsOption.item, "releases": 1}
_RELEASES = {
    HolderOption.device: "How many answers or impressions in the period that the epsilon is for (a month, a day)?",
    HolderOption.entity: "How many runs (models, or slates of each organisation) in the period that the epsilon is for?",
    HolderOption.curator: "How many slates or models in the period that the epsilon is for?",
}


def _complete(answers: dict[str, Any]) -> bool:
    """Fills in missing answers, with defaults if all needed options were given. Returns whether it had to ask.

    Raises BadParameter with the missing options if there is no terminal to ask on.
    """
    missing = [option for name, option in _NEEDED.items() if answers[name] is None]
    if answers["holder"] is HolderOption.entity and answers["entities"] is None:
        missing.append("--entities")
    if not missing:
        answers.update({name: default for name, default in _DEFAULTS.items() if answers[name] is None})
        return False
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"there is no terminal to ask on: give {', '.join(missing)}.")
    _ask(answers)
    return True


def _ask(answers: dict[str, Any]) -> None:
    """Asks on standard error; standard output is for the advice."""

    def ask(name: str, text: str, default: str, read: Callable[[str], Any]) -> None:
        if answers[name] is None:
            answers[name] = typer.prompt(text, default=default, value_proc=read, err=True)

    from tacit.evaluation.advice.situation import MOST
    from tacit.messages.federated_prototypes.manifest import MOST_ENTITIES

    typer.echo("Orders of magnitude are enough; press Enter for the value in brackets.\n", err=True)
    holder = "Who holds the raw data: each user's own device, several organisations (entity), or one trusted curator?"
    ask("holder", holder, HolderOption.device.value, _one_of(HolderOption))
    if answers["holder"] is HolderOption.entity:
        most = min(MOST_ENTITIES, answers["users"] or MOST_ENTITIES)
        ask("entities", "How many organisations?", str(min(10, most)), _whole(1, most))
    ask("must_see", "Must a server see, count or bill what was shown? yes or no", "no", _yes)
    domains = "Domains: 2 if tastes are known in one (films) and wanted in another (books), else 1"
    ask("domains", domains, "1", _whole(1, 2))
    wants = "What do users need: one item, or a slate that is shown as it is?"
    ask("wants", wants, WantsOption.item.value, _one_of(WantsOption))
    fewest = answers["entities"] or 1  # every organisation has a user
    ask("users", "How many users in all?", str(max(5000, fewest)), _whole(fewest, MOST))
    ask("items", "How many items?", "4000", _whole(1, MOST))
    ask("releases", _RELEASES[answers["holder"]], "1", _whole(1, MOST))
    loss = "How much privacy loss do you allow for one user in that period, in nats (1 is cautious, 10 is much)?"
    ask("epsilon", loss, "1", _above_zero)


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """Reads one of these words. Like the readers below it raises BadParameter, and typer then asks again."""

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
    except ValueError:  # also for 0,5: a comma may separate thousands or a fraction
        pass
    raise typer.BadParameter("answer with a number above 0, such as 1 or 0.5.")


def _yes(text: str) -> bool:
    if (word := text.strip().lower()) in ("y", "yes", "n", "no"):
        return word.startswith("y")
    raise typer.BadParameter("answer with yes or no.")


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
        _print_expectation(to, advice.expected, origin)
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


def _print_expectation(to: "Console", expected: "Expectation", origin: str) -> None:
    curve = expected.curve
    table = Table(box=None, pad_edge=False)
    for name in ("", "method", "value", "stderr"):
        table.add_column(name, justify="left" if name in ("", "method") else "right")
    rows = [
        ("learns nothing", curve.nothing.method, curve.nothing.value, curve.nothing.stderr),
        (
            f"private, {curve.measured_in} = {expected.private.epsilon:.3g}",
            expected.method,
            expected.private.value,
            expected.private.stderr,
        ),
        ("not private", curve.plain.method, curve.plain.value, curve.plain.stderr),
    ]
    for row, method, value, error in rows:
        table.add_row(row, method, f"{value:.4g}", "" if error is None else f"{error:.2g}")
    _lines(to, "Expected", [f"{curve.metric}: {curve.unit}, {curve.better} is better"])
    to.print(Padding(table, (0, 0, 0, 2), expand=False), highlight=False)
    share = "" if expected.share is None else f"{expected.share:.0%} of the way from nothing to everything. "
    _lines(to, "", [f"{share}From {curve.world}; {origin}.", *expected.notes])


def _lines(to: "Console", title: str, lines: Iterable[str]) -> None:
    """Prints sentences, wrapped, under a title. Without sentences it prints nothing."""
    sentences = list(lines)
    if sentences and title:
        to.print(f"\n[bold]{title}[/bold]", highlight=False)
    for sentence in sentences:
        to.print(Padding(Text(sentence), (0, 0, 0, 2), expand=False))


def _verbatim(to: "Console", title: str, lines: Iterable[str]) -> None:
    """Prints lines to copy, never wrapped, under a title. Without lines it prints nothing."""
    commands = list(lines)
    if commands:
        to.print(f"\n[bold]{escape(title)}[/bold]", highlight=False)
    for command in commands:
        to.print(Text(f"  {command}"), soft_wrap=True, highlight=False)
