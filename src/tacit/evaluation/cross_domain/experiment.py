"""The evaluation across domains: every world, every method, beside reference figures, and what the figures decide."""

from pathlib import Path

from tacit.evaluation.cross_domain import reference
from tacit.evaluation.cross_domain.outcome import Outcome
from tacit.evaluation.cross_domain.parts import made_up, real
from tacit.evaluation.cross_domain.verdicts import verdicts
from tacit.evaluation.cross_domain.worlds import ML_1M, NAMES, SYNTHETIC, World, default_names, named, other
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Progress, untold
from tacit.evaluation.result import Result, versions_of

SYSTEM = "cross-domain"


def evaluate(
    data: str | Path | None = None,
    effort: Effort | str = Effort.DEFAULT,
    *,
    seed: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Made-up worlds, and of real ones those that ``data`` names: by default what ``TACIT_DATA`` has. Equal seeds, equal figures.

    ``data``: `synthetic`, one of `worlds.NAMES`, two files of ratings joined by a comma, or a folder.
    """
    effort, told, found = Effort(effort), progress or untold, Outcome()
    chosen = _worlds(data, effort)
    parts = made_up(effort, seed) if data is None or data == SYNTHETIC else {}
    for world in chosen:
        parts |= real(world, effort, seed)
    for place, (name, part) in enumerate(parts.items()):
        told(name, place, len(parts))
        found.join(part())
    found.rows += found.ahead()
    known = [row for row in found.rows if row.setting.get("world") in {*reference.SYNTHETIC, *_known(chosen)}]
    beside, near = reference.compared(known)
    claims = [*found.claims, *verdicts(found), *near]
    data_name = " and ".join(
        [*(["synthetic worlds"] if data in (None, SYNTHETIC) else []), *(one.name for one in chosen)]
    )
    return Result(
        SYSTEM, data_name, (*found.rows, *beside), tuple(claims), found.guarantees, seed,
        (*found.notes, *_notes(chosen, data, effort)), versions_of("scipy", "numba"),
    )  # fmt: skip


def _worlds(data: str | Path | None, effort: Effort) -> list[World]:
    if data is None:
        return [named(name) for name in default_names() if not (name == ML_1M and effort is Effort.QUICK)]
    if data == SYNTHETIC:
        return []
    return [named(str(data)) if str(data) in NAMES else other(data)]


def _known(chosen: list[World]) -> set[str]:
    return {world.name for world in chosen if world.known}


def _notes(chosen: list[World], data: str | Path | None, effort: Effort) -> tuple[str, ...]:
    notes = [
        "A fifth of those who rated at least 5 items in each domain lose all their target ratings, which are then predicted. "
        "Errors are standard errors over users, of several splits or worlds together.",
        "Lists: the ten best of all target items; hidden ratings of at least 4 of 5 stars (three quarters of the scale) are liked. "
        "What a user did not rate counts as not liked, as everywhere in such figures.",
        "Noise is replayed from the seed: guarantees are those of the mechanisms, not of this run.",
        "Epsilon 'inf': nothing is promised, be it for want of noise or, of what was published, for want of a proof.",
        "prs_valid covers the mapping alone: predictions from it use target ratings that nothing protects.",
        "Constants of the moments are the library's defaults and were not tuned here; they were tuned elsewhere, on one half of "
        "the hidden users of MovieLens 1M by genre and on made-up worlds. The number of users that they are told is one digit.",
        "Sums without noise: the same bounds on what one user adds, but none of the noise.",
    ]
    if data in (None, SYNTHETIC):
        notes.append(
            "Synthetic worlds are rebuilt from a description: spreads and popularity were chosen so that averages, least squares "
            "and layers are about the reference's. Line by line they are not comparable; directions are."
        )
    notes += [
        f"{world.name}: {world.two.source.n_items:,} + {world.two.target.n_items:,} items, {world.two.n_users:,} users, "
        f"{world.two.shared.size:,} in both, {len(world.two.source):,} + {len(world.two.target):,} ratings."
        for world in chosen
    ]
    if any("by genre" in world.name for world in chosen):
        notes.append(
            "By genre: genres in order of their number of films, taken in turn; a film goes where more of its genres are, with as "
            "many on both sides by its id: even ones are source. On MovieLens 1M that gives the reference's 582 + 476 films."
        )
    if data is None and not chosen:
        notes.append("No data set was found: set TACIT_DATA to a folder of data sets, or name one by --data.")
    if effort is Effort.QUICK:
        notes.append("A quick run: one split, one noise draw, few settings; MovieLens 1M only where it is named.")
    return tuple(notes)
