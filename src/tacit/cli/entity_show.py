"""``tacit entity show``: what the manifests in an inbox ask for, before anything is answered."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.output import check_json_target, counted, write_json

if TYPE_CHECKING:
    from tacit.entity.outlook import Outlook


def show(
    settings: Annotated[
        Path, typer.Argument(metavar="SETTINGS", exists=True, dir_okay=False, help="The entity's settings (TOML).")
    ],
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="FILE", help="Write JSON to FILE and print nothing; - is standard output."),
    ] = None,
) -> None:
    """Show what the manifests in the mailbox's inbox ask for: the guarantee, with whom, at what cost. Charges nothing.

    Which entities are known follows from `peers` in the policy. A refusal makes the exit status 1.
    """
    from tacit.engines.files import messages_in, read_message
    from tacit.engines.folders import Mailbox
    from tacit.engines.settings import entity_settings, open_entity
    from tacit.errors import InvalidMessage
    from tacit.messages.federated_prototypes_frame import open_frame

    check_json_target(json_file)
    found = entity_settings(settings)
    looked: list[Outlook] = []
    wrong: dict[str, str] = {}
    with open_entity(found) as entity:
        for file in sorted(messages_in(Mailbox(found.place("mailbox")).inbox)):
            try:
                message = read_message(file)
                if open_frame(message).header.get("kind") == "manifest":
                    looked.append(entity.outlook(message))
            except InvalidMessage as problem:
                wrong[file.name] = str(problem)
    if json_file is not None:
        write_json(json_file, {"manifests": [one.to_json() for one in looked], "unreadable": wrong})
    else:
        for name, reason in wrong.items():
            typer.echo(f"tacit: {name}: {reason}", err=True)
        typer.echo("\n\n".join("\n".join(_lines(one)) for one in looked) or "There is no manifest in the inbox.")
    if wrong or any(one.refusal for one in looked):
        raise typer.Exit(1)


def _lines(one: "Outlook") -> list[str]:
    from tacit.ledger.accounting import MEASURES
    from tacit.ledger.amounts import shown

    manifest, statement = one.manifest, one.statement
    measure, digits = MEASURES[statement.terms.accounting]
    known = sum(member.name in one.known for member in manifest.contributors)
    lines = [f"run {manifest.run}" + (f" ({manifest.title!r})" if manifest.title else "")]
    lines += [f"  {manifest.mechanism}" + (f", aggregation {manifest.aggregation}" if manifest.aggregation else "")]
    lines += [f"  guarantee: {manifest.guarantee}"]
    lines += [f"  roster: {counted(len(manifest.contributors), 'contributor')}, {known} of them known to you"]
    lines += [
        f"    {'known  ' if member.name in one.known else 'UNKNOWN'} {member.name} ({member.role}) {member.key}"
        for member in manifest.roster
    ]
    lines += [f"  warning: {warning}" for warning in manifest.warnings()]
    lines += [f"  costs {shown(one.cost.amount, digits):f} {measure} in all"]
    lines += [
        f"    {window.budget}: {shown(window.left.amount, digits):f} {measure} is left" for window in statement.windows
    ]
    if one.joined:
        return [*lines, "  you have joined this run: its charges so far are among those made"]
    return [*lines, "  would be answered" if one.refusal is None else f"  would be refused: {one.refusal}"]
