"""``tacit demo``: load the embedded data, recommend from it privately, release from it by every mechanism, audit the claims."""

from math import isinf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.output import STANDARD_OUTPUT, check_json_target, write_json
from tacit.cli.output import console as open_console

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.audit import AuditReport
    from tacit.cli.demo_cross_domain import Shown as Carried
    from tacit.cli.demo_federated_prototypes import Shown as Federated
    from tacit.cli.demo_multi_selection import Shown as Selection
    from tacit.cli.demo_private_selection import Shown as Billed
    from tacit.cli.demo_private_slates import Shown as Drawn
    from tacit.cli.showcase import Shown
    from tacit.data import Ratings
    from tacit.guarantees import Guarantee

DELTA = 1e-6  # at which the tight composition is stated


def demo(
    data: Annotated[
        str | None, typer.Option(help="Ratings by name or path; by default movielens-small, else synthetic.")
    ] = None,
    json_file: Annotated[
        str | None,
        typer.Option("--json", help="Also write what was shown as JSON; - is standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """The main job on embedded data: recommend from it privately, release from it, print every guarantee, audit every claim."""
    from tacit.cli.audit import audited
    from tacit.cli.demo_cross_domain import show as cross_domain
    from tacit.cli.demo_federated_prototypes import show as federated_prototypes
    from tacit.cli.demo_multi_selection import show as multi_selection
    from tacit.cli.demo_private_selection import show as private_selection
    from tacit.cli.demo_private_slates import show as private_slates
    from tacit.cli.showcase import curator_releases, device_releases
    from tacit.guarantees import compose, tight

    check_json_target(json_file)
    console = open_console(stderr=json_file == STANDARD_OUTPUT)
    ratings = _load(data, console)
    console.print(f"\n[bold]1. The data[/bold]  {ratings}")
    console.print(f"   {ratings.provenance.source}; {ratings.provenance.licence}")
    console.print("   A topic is a genre; where there are no genres, one of the first items of the catalogue.\n")

    console.print("[bold]2. Multi-selection[/bold]  A device asks without telling, and picks at home.")
    selection = multi_selection(ratings, console)
    if selection is None:
        console.print("   Not shown: it needs three users to ask and some more to learn from, with five ratings each.")
    else:
        _ways(console, selection)

    billed = None
    if selection is not None:
        console.print(
            "\n[bold]3. Private selection[/bold]  The server sees and bills what was shown, exactly, and hardly learns to whom."
        )
        billed = private_selection(ratings, selection.store, console)
        _policies(console, billed)

    console.print(
        "\n[bold]4. Private slates[/bold]  A curator shows items that many like and that differ, and hardly tells who does."
    )
    drawn = private_slates(ratings, console)
    if drawn is None:
        console.print("   Not shown: it needs two listed items.")
    else:
        _routes(console, drawn)

    console.print(
        "\n[bold]5. Federated prototypes[/bold]  Entities learn from each other's users, and nobody sees whose rows they were."
    )
    federated = federated_prototypes(ratings, console)
    if federated is None:
        console.print("   Not shown: it needs three entities of ten users, some with four ratings or more.")
    else:
        _federations(console, federated)

    console.print(
        "\n[bold]6. Cross-domain[/bold]  Who rated one kind of item is shown another, and hardly anybody learns who rated what."
    )
    carried = cross_domain(ratings, console)
    if carried is None:
        console.print(
            "   Not shown: it needs some users with five ratings in each half of the items, on a scale with two ends."
        )
    else:
        _transfers(console, carried)

    console.print("\n[bold]7. Releases[/bold]  Each answer is drawn anew with exact noise from the operating system.")
    curator, device = list(curator_releases(ratings)), list(device_releases(ratings))
    _table(console, "A trusted curator answers about everybody (protects one user's rows)", curator)
    _table(console, "Devices answer for themselves (nobody is trusted)", device)

    guarantees = [shown.guarantee for shown in curator]
    basic, best = compose(guarantees), tight(guarantees, DELTA)
    console.print("\n[bold]8. What the curator's answers add up to, for each user[/bold]")
    console.print(f"   basic composition: {basic}")
    console.print(f"   tight composition: {best}")
    console.print(f"   with a device's:   {_refusal(basic, device[1].guarantee)}\n", soft_wrap=True)

    console.print(
        "[bold]9. The audit[/bold]  Every claim against its exact or empirical loss; every broken twin must be caught."
    )
    report = audited()
    _summary(console, report)
    if json_file is not None:
        _write(json_file, ratings, selection, billed, drawn, federated, carried, [*curator, *device], best, report)
    if not report.passed:
        raise typer.Exit(1)


def _load(data: str | None, console: "Console") -> "Ratings":
    from tacit.data import load_ratings
    from tacit.errors import MissingExtra

    with console.status("Loading ratings ..."):
        try:
            return load_ratings(data or "movielens-small")
        except MissingExtra:
            if data is not None:
                raise
            return load_ratings("synthetic")  # the world that needs nothing


def _table(console: "Console", title: str, rows: list["Shown"]) -> None:
    from rich.table import Table

    table = Table("question", "by", "released", "truth (stays home)", "guarantee", title=title, title_justify="left")
    for row in rows:
        table.add_row(row.question, row.mechanism, row.released, row.truth, _short(row.guarantee))
    console.print(table)


def _summary(console: "Console", report: "AuditReport") -> None:
    """One line for each mechanism; `tacit audit` has the whole table."""
    from rich.table import Table

    table = Table("mechanism", "claims checked", "all hold", "broken twins", "all caught")
    for name in dict.fromkeys(finding.name for finding in report.mechanisms):
        checked = [finding for finding in report.mechanisms if finding.name == name]
        twins = [twin for twin in report.twins if twin.of == name]
        methods = ", ".join(f"{sum(f.by == by for f in checked)} {by}" for by in dict.fromkeys(f.by for f in checked))
        held, caught = all(f.holds for f in checked), all(twin.caught for twin in twins)
        table.add_row(name, methods, "yes" if held else "NO", str(len(twins)), "yes" if caught else "NO")
    console.print(table)
    console.print("An audit refutes, it never proves: the proofs are in docs/proofs. The whole table: tacit audit\n")


def _short(guarantee: "Guarantee") -> str:
    text = f"epsilon {guarantee.epsilon:.3g}"
    if guarantee.per_distance:
        text += f" per {guarantee.protects.distance} distance"
    if guarantee.delta:
        text += f", delta {guarantee.delta:.0e}"
    return text


def _refusal(first: "Guarantee", second: "Guarantee") -> str:
    from tacit.errors import MixedUnits

    try:
        return str(first.then(second))
    except MixedUnits as refused:
        return f"refused ({refused})"


def _ways(console: "Console", shown: "Selection") -> None:
    from rich.table import Table

    from tacit.cli.demo_multi_selection import ETA, USERS

    title = f"{USERS} held-out users at most, eta = {ETA}: share of the best item's utility"
    table = Table("algorithm", "local model", "k", "kept", "over ig-sig", "", title=title, title_justify="left")
    for way in shown.ways:
        kept, gain = f"{way.kept:.1%} ± {way.error:.1%}", f"{way.gain:+.1%} ± {way.gain_error:.1%}"
        table.add_row(way.algorithm, way.local_model, str(way.k), kept, gain if way.gain_error else "", way.remark)
    console.print(table)
    console.print(
        "   With few look-alikes and much noise a signal may not be worth its epsilon: most of the benefit is the choice among k. "
        "All of it, beside the paper's figures: tacit evaluate multi-selection",
        soft_wrap=True,
    )


def _policies(console: "Console", shown: "Billed") -> None:
    from rich.table import Table

    title = "Stars that held-out users would give what they are shown, by the model; expectations, nothing is drawn"
    table = Table("policy", "offered", "epsilon", "stars", "", title=title, title_justify="left")
    for way in shown.ways:
        table.add_row(way.policy, str(way.offered), f"{way.epsilon:g}", f"{way.utility:.3f}", way.remark)
    console.print(table)
    console.print("   Auctions, figures and claims of the paper: tacit evaluate private-selection", soft_wrap=True)


def _routes(console: "Console", shown: "Drawn") -> None:
    from rich.table import Table

    from tacit.cli.demo_private_slates import SLATES

    title = f"Means over {SLATES} slates by each route, or over the one that counts give"
    table = Table("route", "epsilon", "popularity", "genre diversity", "", title=title, title_justify="left")
    for way in shown.ways:
        apart = "" if way.diversity is None else f"{way.diversity:.3f}"
        table.add_row(way.route, f"{way.epsilon:.3g}", f"{way.popularity:.3f}", apart, way.remark)
    console.print(table)
    console.print(
        "   Few users make much noise. More data, and the paper's figures: tacit evaluate private-slates",
        soft_wrap=True,
    )


def _federations(console: "Console", shown: "Federated") -> None:
    from rich.table import Table

    users = shown.ways[0].users
    title = f"{users:,} users with held-out items: means, and the gain over the entity's own rows, user by user"
    table = Table("method", "epsilon", "recall@20", "NDCG@20", "gain", "", title=title, title_justify="left")
    for way in shown.ways:
        gain = f"{way.gain:+.4f} ± {way.gain_error:.4f}" if way.method != "individual" else ""
        table.add_row(way.method, f"{way.epsilon:g}", f"{way.recall:.4f}", f"{way.ndcg:.4f}", gain, way.remark)
    console.print(table)
    console.print(
        f"   {shown.verdict} Papers, films and hospitals: tacit evaluate federated-prototypes", soft_wrap=True
    )


def _transfers(console: "Console", shown: "Carried") -> None:
    from rich.table import Table

    title = f"What {shown.asked:,} asked users rated in the target: mean absolute error, and how far below that of their own mean"
    table = Table("method", "epsilon", "error", "gain", "", title=title, title_justify="left")
    for way in shown.ways:
        gain = f"{way.gain:+.4f} ± {way.gain_error:.4f}" if way is not shown.ways[0] else ""
        table.add_row(way.method, f"{way.epsilon:g}", f"{way.error:.4f}", gain, way.remark)
    console.print(table)
    console.print(
        f"   {shown.verdict} More data, and what the paper's noise is worth: tacit evaluate cross-domain",
        soft_wrap=True,
    )


def _carried(shown: "Carried") -> dict[str, Any]:
    """What was promised and carried over, and how the methods compare."""
    ways = [{**way._asdict(), "epsilon": "inf" if isinf(way.epsilon) else way.epsilon} for way in shown.ways]
    return {**shown._asdict(), "guarantees": [guarantee.to_json() for guarantee in shown.guarantees], "ways": ways}


def _federated(shown: "Federated") -> dict[str, Any]:
    """What was promised and sent, and how the entities' recommendations compare. Rows and what gates found stay inside."""
    ways = [{**way._asdict(), "epsilon": "inf" if isinf(way.epsilon) else way.epsilon} for way in shown.ways]
    guarantees = [guarantee.to_json() for guarantee in shown.guarantees]
    return {**shown._asdict(), "guarantees": guarantees, "stages": list(shown.stages), "ways": ways}


def _drawn(shown: "Drawn") -> dict[str, Any]:
    """The slate as it left the curator, and how the routes compare."""
    ways = [{**way._asdict(), "epsilon": "inf" if isinf(way.epsilon) else way.epsilon} for way in shown.ways]
    return {**shown._asdict(), "ways": ways}


def _billed(shown: "Billed") -> dict[str, Any]:
    """What was offered, what left the device, what the server counted; and how the policies compare."""
    ways = [{**way._asdict(), "epsilon": "inf" if isinf(way.epsilon) else way.epsilon} for way in shown.ways]
    return {**shown._asdict(), "ways": ways}


def _selection(shown: "Selection") -> dict[str, Any]:
    """What left the device, what came back, and how the methods compare. The pick stays at home."""
    return {
        "signal": shown.signal,
        "slate": list(shown.slate),
        "store": shown.store.guarantee.to_json(),
        "ways": [way._asdict() for way in shown.ways],
    }


def _write(
    target: str,
    ratings: "Ratings",
    selection: "Selection | None",
    billed: "Billed | None",
    drawn: "Drawn | None",
    federated: "Federated | None",
    carried: "Carried | None",
    rows: list["Shown"],
    total: "Guarantee",
    report: "AuditReport",
) -> None:
    shown = [
        {
            "question": row.question,
            "mechanism": row.mechanism,
            "released": row.released,
            "guarantee": row.guarantee.to_json(),
        }
        for row in rows
    ]
    content = {
        "data": ratings.describe().as_dict(),
        "multi_selection": None if selection is None else _selection(selection),
        "private_selection": None if billed is None else _billed(billed),
        "private_slates": None if drawn is None else _drawn(drawn),
        "federated_prototypes": None if federated is None else _federated(federated),
        "cross_domain": None if carried is None else _carried(carried),
        "releases": shown,
        "total": total.to_json(),
        "audit": report.to_json(),
    }
    write_json(target, content)
