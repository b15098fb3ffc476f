"""``tacit entity``: an organisation takes part in a federation. ``tacit federate``: the coordinator runs it.

Both work on plain files. Each call is a new process; the folders are the only memory.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import Json, check_different, check_json_target, counted, write_json

if TYPE_CHECKING:
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.folders import Mailbox, MessageOutcome
    from tacit.entity.fit import BlendedFit, LocalFit
    from tacit.entity.policy import Outlook
    from tacit.ledger import Statement

    Answers = tuple[list[MessageOutcome], Statement]

app = typer.Typer(help="Take part in a federation: keys, releases, the local fit.", no_args_is_help=True)
federate = typer.Typer(help="Coordinate a federation: open a run, advance it, show it.", no_args_is_help=True)

Settings = Annotated[
    Path, typer.Argument(metavar="SETTINGS", exists=True, dir_okay=False, help="The entity's settings (TOML).")
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", file_okay=False, help="The run's folder.")]
Key = Annotated[
    Path, typer.Option("--key", metavar="FILE", exists=True, dir_okay=False, help="The coordinator's private key.")
]


@app.command("keys", epilog="Example: tacit entity keys north.key")
def keys(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file for the private key. It must not exist yet.")],
    json_file: Json = None,
) -> None:
    """Draw a key pair: the private key goes to FILE, readable by you only, and the public key to FILE.pub. Entities and
    coordinators need one."""
    from tacit.engines.folders import new_key

    check_json_target(json_file)
    check_different({"FILE": file, "--json": json_file})
    public = new_key(file).hex()
    if json_file is not None:
        write_json(json_file, {"private": str(file), "public": public})
    else:
        typer.echo(f"Private key in {file}: keep it secret, and keep a copy.")
        typer.echo(f"Public key in {file}.pub; others check your signatures with it: {public}")


@app.command("release", epilog="Example: tacit entity release north.toml")
def release(
    settings: Settings,
    watch: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.1, help="Check the inbox this often, until a new model arrives."),
    ] = None,
    longest: Annotated[
        float | None, typer.Option("--for", metavar="SECONDS", min=0.0, help="With --watch: stop after this time.")
    ] = None,
    json_file: Json = None,
) -> None:
    """Answer every message in the mailbox's inbox: charge, draw, sign, and put the replies into the outbox.

    Carry the files in the outbox to the coordinator by any means you trust. Running the command again changes nothing
    and costs nothing.
    """
    from tacit.engines.folders import Mailbox
    from tacit.engines.settings import entity_settings, open_entity

    check_json_target(json_file)
    if longest is not None and watch is None:
        raise typer.BadParameter("--for limits how long --watch runs: give both.")
    if watch is not None and not math.isfinite(watch):
        raise typer.BadParameter("--watch needs a number of seconds.")
    own = entity_settings(settings)
    mailbox, printed = Mailbox(own.path("mailbox")), set[str]()

    def answer() -> "Answers":
        with open_entity(own) as entity:  # closed between two checks: a watcher holds neither the ledger nor rows
            handled, statement = mailbox.answer(entity), entity.statement()
        for message in handled if json_file is None else ():
            line = f"{message.outcome:9} {message.name}" + (f": {message.reason}" if message.reason else "")
            if line not in printed:
                typer.echo(line)
                printed.add(line)
        return handled, statement

    handled, statement = answer() if watch is None else _watch(mailbox, answer, watch, longest)
    if json_file is not None:
        messages = [{"file": message.name, "outcome": message.outcome, "reason": message.reason} for message in handled]
        write_json(json_file, {"messages": messages, "outbox": str(mailbox.outbox), "budget": statement.to_json()})
    else:
        typer.echo(f"{counted(len(handled), 'message')}; replies are in {mailbox.outbox}.\n{statement}")
    no_model = watch is not None and not any(message.brought_model for message in handled)
    if no_model:
        typer.echo("tacit: no model has arrived.", err=True)
    # A watch succeeds with a new model, even if the inbox also holds junk: others may put files there.
    if no_model or (watch is None and any(message.outcome == "refused" for message in handled)):
        raise typer.Exit(1)


def _watch(mailbox: "Mailbox", answer: "Callable[[], Answers]", every: float, longest: float | None) -> "Answers":
    """Answers whenever the inbox changes or a refused message may be answered later, until a new model arrives or the time
    is over."""
    end, answered_state = math.inf if longest is None else time.monotonic() + longest, None
    while True:
        state = mailbox.state()
        if state != answered_state:
            handled, statement = answer()
            answered_state = None if any(message.again for message in handled) else state
        left = end - time.monotonic()
        if left <= 0.0 or any(message.brought_model for message in handled):
            return handled, statement
        time.sleep(min(every, left))


@app.command("show", epilog="Example: tacit entity show north.toml")
def show_manifests(settings: Settings, json_file: Json = None) -> None:
    """Show each manifest in the mailbox's inbox: its guarantee, its roster and its cost. Charges nothing.

    List the entities that you know as `peers` in your policy. The exit status is 1 if a manifest would be refused.
    """
    from tacit.engines.folders import Mailbox, messages_in, read_message
    from tacit.engines.settings import entity_settings, open_entity
    from tacit.errors import InvalidMessage
    from tacit.messages.federated_prototypes.frame import open_frame

    check_json_target(json_file)
    own = entity_settings(settings)
    outlooks: list[Outlook] = []
    unreadable: dict[str, str] = {}
    with open_entity(own) as entity:
        for file in sorted(messages_in(Mailbox(own.path("mailbox")).inbox)):
            try:
                message = read_message(file)
                if open_frame(message).header.get("kind") == "manifest":
                    outlooks.append(entity.outlook(message))
            except InvalidMessage as problem:
                unreadable[file.name] = str(problem)
    if json_file is not None:
        write_json(json_file, {"manifests": [outlook.to_json() for outlook in outlooks], "unreadable": unreadable})
    else:
        for name, reason in unreadable.items():
            typer.echo(f"tacit: {name}: {reason}", err=True)
        text = "\n\n".join("\n".join(_outlook_lines(outlook)) for outlook in outlooks)
        typer.echo(text or "There is no manifest in the inbox.")
    if unreadable or any(outlook.refusal for outlook in outlooks):
        raise typer.Exit(1)


def _outlook_lines(outlook: "Outlook") -> list[str]:
    from tacit.ledger.budgets import MEASURES, shown

    manifest, statement = outlook.manifest, outlook.statement
    measure, digits = MEASURES[statement.terms.accounting]
    known = sum(member.name in outlook.known for member in manifest.contributors)
    lines = [f"run {manifest.run}" + (f" ({manifest.title!r})" if manifest.title else "")]
    lines += [f"  {manifest.mechanism}" + (f", aggregation {manifest.aggregation}" if manifest.aggregation else "")]
    lines += [f"  guarantee: {manifest.guarantee}"]
    lines += [f"  roster: {counted(len(manifest.contributors), 'contributor')}, {known} of them known to you"]
    lines += [
        f"    {'known  ' if member.name in outlook.known else 'UNKNOWN'} {member.name} ({member.role}) {member.key}"
        for member in manifest.roster
    ]
    lines += [f"  warning: {warning}" for warning in manifest.warnings()]
    lines += [f"  costs {shown(outlook.cost.amount, digits):f} {measure} in all"]
    lines += [
        f"    {window.budget}: {shown(window.left.amount, digits):f} {measure} is left" for window in statement.windows
    ]
    if outlook.joined:
        return [*lines, "  you have joined this run: the budget above already includes its charges so far"]
    return [*lines, "  would be answered" if outlook.refusal is None else f"  would be refused: {outlook.refusal}"]


@app.command("leave", epilog="Example: tacit entity leave north.toml --run 82e60e96...")
def leave(
    settings: Settings,
    run: Annotated[
        str, typer.Option(metavar="ID", help="The run's id; `tacit federate show` and the file names show it.")
    ],
) -> None:
    """Leave a run that was given up: delete its secrets and answer it no more. Charges stay charged."""
    from tacit.engines.settings import entity_settings, open_entity

    with open_entity(entity_settings(settings)) as entity:
        entity.leave(run)
    typer.echo(f"Left run {run}.")


@app.command("fit", epilog="Example: tacit entity fit north.toml --out recommendations.csv")
def fit(
    settings: Settings,
    out: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="The file for each user's items (CSV).")],
    top: Annotated[int, typer.Option(min=1, help="The number of items for each user.")] = 20,
    run: Annotated[
        str | None, typer.Option(metavar="ID", help="The run whose model is used; by default the newest.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed that draws the held-out cells of the gate.")] = 1,
    report: Annotated[bool, typer.Option("--report", help="Also print the result of the gate. It is private.")] = False,
) -> None:
    """Fit your own users. The shared model is used unless a test on held-out cells speaks against it.

    The file holds recommendations computed from your users' rows. Keep it inside your organisation: no guarantee covers it.
    """
    import numpy as np

    from tacit.engines.settings import entity_settings, open_entity, tuning_of, write_best

    check_json_target(str(out), "--out")
    own = entity_settings(settings)
    with open_entity(own) as entity:
        fitted = entity.fit(run=run, tuning=tuning_of(own), rng=np.random.default_rng(seed))
        write_best(out, entity, fitted, own.catalogue(), top)
    typer.echo(
        f"Wrote {counted(top, 'item')} for each user to {out} (private; mode 600)."
    )  # the number of users is private
    if report:
        typer.echo("\n".join(gate_lines(fitted)))


def gate_lines(fitted: "LocalFit | BlendedFit") -> Iterator[str]:
    """The choice of the gate, the scores on held-out cells, and the scores of the controls. All of it is private.

    The gate takes a blend if no score speaks against it. Only the controls show whether the release carries information.
    """
    from tacit.entity.fit import BlendReport, GateReport

    names = {
        "local": "your own rows alone",
        "blend": "the blend of your own rows with the shared model",
        "global": "the shared factors",
    }
    yield "The gate (private: computed from your users' rows without noise; do not show it to anybody)"
    report = fitted.report
    if isinstance(report, BlendReport):
        yield f"  taken: {names['blend' if report.keeps_blend else 'local']}"
        apart = f"; blend less own rows {report.difference:+.4f} ± {report.stderr:.4f}" if report.compared > 1 else ""
        measure = f"NDCG of 20 items, higher is better; {counted(report.compared, 'user')}"
        yield from _score_lines(report.means, measure, "the blend", report.informative, apart)
    elif isinstance(report, GateReport):
        yield f"  taken: {names[report.chosen]}"
        measure = f"{report.measure}, lower is better; {counted(report.cells, 'cell')}"
        yield from _score_lines(report.scores, measure, "the shared factors", report.informative)
    else:
        yield f"  taken: {names['local']}"
        yield "  held out: nothing; the shared model carries no information at this budget"


def _score_lines(
    scores: Mapping[str, float], measure: str, candidate: str, informative: bool, more: str = ""
) -> Iterator[str]:
    from tacit.entity.fit import CONSTANT, DATA_FREE

    def listed(names: Mapping[str, str]) -> str:
        return ", ".join(f"{label} {scores[name]:.4f}" for name, label in names.items() if name in scores)

    if any(math.isnan(score) for score in scores.values()):
        yield "  held out: nothing could be held out, so nothing speaks for or against the shared model"
        return
    own = listed({"local": "own rows", "blend": "blend", "global": "shared factors"})
    yield f"  held out ({measure}): {own}{more}"
    verdict = (
        f"beaten by {candidate}" if informative else f"not both beaten by {candidate}: the release shows no effect here"
    )
    yield f"  controls: {listed({DATA_FREE: 'noise without data', CONSTANT: 'constant'})}; {verdict}"


@federate.command("open", epilog="Example: tacit federate open run run.toml")
def open_run(
    folder: Folder,
    settings: Annotated[
        Path,
        typer.Argument(metavar="SETTINGS", exists=True, dir_okay=False, help="All public constants of the run (TOML)."),
    ],
    json_file: Json = None,
) -> None:
    """Fix and sign all public constants of a run, and put the manifest for every entity into FOLDER/outbox.

    Equal settings give the same run with the same id, and entities send the same replies again. To start another run, change
    `title`.
    """
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.settings import read_manifest

    check_json_target(json_file)
    manifest, key = read_manifest(settings)
    _print_run(CoordinatorFolder.open(folder, manifest, key), json_file)


@federate.command("step", epilog="Example: tacit federate step run --key coordinator.key")
def step(
    folder: Folder,
    key: Key,
    close: Annotated[
        bool, typer.Option("--close", help="Close the present stage now. Entities that have not replied drop out.")
    ] = False,
    give_up: Annotated[bool, typer.Option("--give-up", help="End a run that cannot go on.")] = False,
    json_file: Json = None,
) -> None:
    """Take the replies in FOLDER/inbox, close the stages that can be closed, and write the messages for the entities.

    A stage closes when all have replied, or when enough have replied and the deadline has passed. Run it as often as
    you like.
    """
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.folders import read_key

    check_json_target(json_file)
    if close and give_up:
        raise typer.BadParameter("--close closes a stage and --give-up ends the run: give one of them.")
    run, secret = CoordinatorFolder(folder), read_key(key)
    if give_up:
        run.give_up(secret)
        _print_run(run, json_file)
        return
    _, report = run.step(secret, close=close)
    _print_run(run, json_file, asdict(report))
    if json_file is None:
        for name, code in report.rejected.items():
            typer.echo(f"tacit: rejected {name}: {code}", err=True)


@federate.command("show", epilog="Example: tacit federate show run")
def show_run(folder: Folder, json_file: Json = None) -> None:
    """Show what a run promises, its stage, who has replied, and the hash of its model. No key is needed."""
    from tacit.engines.coordinator import CoordinatorFolder

    check_json_target(json_file)
    _print_run(CoordinatorFolder(folder), json_file)


def _print_run(run: "CoordinatorFolder", json_file: str | None, step: dict[str, Any] | None = None) -> None:
    status = run.status()
    if json_file is not None:
        write_json(json_file, {**status, **({} if step is None else {"step": step})})
        return
    typer.echo(f"run {status['run']} ({status['mechanism']}): {status['stage']}")
    typer.echo(f"guarantee: {run.manifest.guarantee}")
    for stage in status["stages"]:
        state = "closed with" if stage["closed"] else "open,"
        typer.echo(f"  {stage['stage']}: {state} {counted(len(stage['replied']), 'reply', 'replies')}")
    if status["model"] is not None:
        note = "" if status["model"]["informed"] else "; no information at this budget"
        typer.echo(f"model {status['model']['hash']}{note}")
    for warning in status["warnings"]:
        typer.echo(f"tacit: {warning}", err=True)
