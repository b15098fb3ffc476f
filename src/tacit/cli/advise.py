"""tacit advise: which system and mode fit, what they promise, what may be expected, and the commands that run them."""

import math
import re
import shlex
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import check_different, check_json_target, console, write_json

if TYPE_CHECKING:
    from tacit.evaluation.advice import Situation

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
            "--must-see-choice/--need-not-see", help="Whether a server has to see, count or bill what was shown."
        ),
    ] = None,
    domains: Annotated[
        int | None, typer.Option(min=1, max=2, help="2 if tastes are known in one domain and wanted in another.")
    ] = None,
    wants: Annotated[Wants | None, typer.Option(help="One item for a user, or a slate that is shown as it is.")] = None,
    releases: Annotated[
        int | None,
        typer.Option(metavar="N", help="Answers, impressions, slates or models in the period that epsilon is for."),
    ] = None,
    items: Annotated[int | None, typer.Option(metavar="N", help="About how many items there are.")] = None,
    users: Annotated[int | None, typer.Option(metavar="N", help="About how many users there are in all.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="What one user may lose in the period, in nats.")] = None,
    delta: Annotated[float, typer.Option(help="The delta beside it; 0 where none is allowed.")] = _DELTA,
    entities: Annotated[
        int | None, typer.Option(metavar="N", help="Of entity: how many organisations there are.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", exists=True, dir_okay=False,
            help="Take figures from your own report (`tacit report --json FILE`) instead of those that come with tacit.",
        ),
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
    ] = None,
) -> None:  # fmt: skip
    """Say which system and mode fit your situation, what they promise, what may be expected of them, and which commands run them.

    On a terminal it asks for what was not given. Reads no ratings, writes and charges nothing.
    """
    from tacit.cli.advise_tables import print_advice
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
        typer.echo(f"\nThe same again: {again(at)}")


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
    """Asks for what is missing where somebody can answer, in an order that makes sense; else says what is missing."""
    missing = [option for name, option in _NEEDED.items() if told[name] is None]
    if told["holder"] is Holder.entity and told["entities"] is None:
        missing.append("--entities")
    if not missing:
        told.update({name: usual for name, usual in _USUAL.items() if told[name] is None})
        return False
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"without a terminal to ask at, say {', '.join(missing)}.")
    _ask(told)
    return True


def _ask(told: dict[str, Any]) -> None:
    """The questions, on standard error: what is printed on standard output is the advice."""

    def ask(name: str, text: str, usual: str, read: Callable[[str], Any]) -> None:
        if told[name] is None:
            told[name] = typer.prompt(text, default=usual, value_proc=read, err=True)

    from tacit.evaluation.advice.situation import MOST
    from tacit.messages.federated_prototypes_roster import MOST_ENTITIES

    typer.echo("Orders of magnitude are enough; Enter takes what stands in brackets.\n", err=True)
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
    fewest = told["entities"] or 1  # an organisation without a user is none
    ask("users", "How many users in all?", str(max(5000, fewest)), _whole(fewest, MOST))
    ask("items", "How many items?", "4000", _whole(1, MOST))
    ask("releases", _RELEASES[told["holder"]], "1", _whole(1, MOST))
    ask("epsilon", "What may one user lose in that period, in nats (1 is cautious, 10 is much)?", "1", _above_zero)


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """An answer as one of these words; any other is told what is allowed, and asked again, as below."""

    def read(text: str) -> StrEnum:
        if text.strip() in list(kind):
            return kind(text.strip())
        raise typer.BadParameter(f"answer with {', '.join(kind)}.")

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    """A count from ``least`` to ``most``, as people write it: 1000 or 1,000."""

    def read(text: str) -> int:
        if _COUNT.fullmatch(text.strip()) and least <= (count := int(text.replace(",", ""))) <= most:
            return count
        raise typer.BadParameter(f"answer with a whole number from {least:,} to {most:,}.")

    return read


def _above_zero(text: str) -> float:
    try:
        if 0.0 < (number := float(text)) < math.inf:
            return number
    except ValueError:  # also 0,5: a comma may part thousands or begin a fraction, and is not guessed at
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
