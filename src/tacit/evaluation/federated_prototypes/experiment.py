"""The evaluation of federated prototypes: every world, every method, beside reference figures and the paper's claims."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import reference, worlds
from tacit.evaluation.federated_prototypes.parts import Outcome, Part, parts
from tacit.evaluation.federated_prototypes.verdicts import published
from tacit.evaluation.federated_prototypes.verdicts_beyond import beyond
from tacit.evaluation.part import Progress, untold
from tacit.evaluation.result import Claim, Result, versions_of

SYSTEM = "federated-prototypes"


def evaluate(
    data: str | Path | None = None,
    effort: Effort | str = Effort.DEFAULT,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Made-up worlds, and of real ones those that ``data`` names: by default all that ``TACIT_DATA`` has.

    Equal seeds, equal figures, by however many ``workers``: parts are independent processes if there are several.
    """
    effort, found, all_ = Effort(effort), worlds.sources(data), Outcome()
    chosen = parts(found, effort, seed)
    done: dict[str, Outcome] = {}
    for name, outcome in _run(chosen, workers, progress or untold):
        done[name] = outcome
    for name in chosen:
        all_.join(done[name])
    known = all(source.known for source in found)
    beside, near = reference.compared(all_.rows) if known else ([], [])
    claims: list[Claim] = [*published(all_.rows, all_.influences), *beyond(all_.rows, all_.ranked, all_.groups), *near]
    name = " and ".join(["made-up worlds", *(source.folder.name for source in found)])
    return Result(
        SYSTEM, name, (*all_.rows, *beside), tuple(claims), all_.guarantees, seed, _notes(found, effort, known),
        versions_of("scipy", "numba"),
    )  # fmt: skip


def _run(chosen: dict[str, Part], workers: int, told: Progress) -> Iterator[tuple[str, Outcome]]:
    """Every part by its name, as it ends."""
    if workers < 2:
        for place, (name, part) in enumerate(chosen.items()):
            told(name, place, len(chosen))
            yield name, part()
        return
    told("reading", 0, len(chosen))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(part): name for name, part in chosen.items()}
        for count, ended in enumerate(as_completed(running), start=1):
            told(running[ended], count, len(chosen))
            yield running[ended], ended.result()


def _notes(found: list[worlds.Source], effort: Effort, known: bool) -> tuple[str, ...]:
    notes = [
        "Noise is replayed from the seed: guarantees are those of the mechanisms, not of this run.",
        "Noise once: the sum of H shares is drawn as one release over all rows, whose law it has where every entity's noise is "
        "unknown to the adversary (H_min - t = H). In use t is at least 1, and the noise sqrt(H / (H_min - t)) times larger.",
        "Noise per entity: the sum of H shares that each protect by themselves is drawn as one release at rho / H.",
        "Ridges, alphas, gammas, parts of the budget and shares are published constants and were not tuned here. They were tuned "
        "elsewhere on the same public data; in use they come from other data. An alpha between two published ones is their "
        "geometric mean; noise per entity takes the alpha of the epsilon that is as noisy when noise is added once.",
        "Heads follow the published rule. The reference chose its alphas for each split, heads on films by hand, and did not "
        "apply the rule that stops a run to noise per entity: 'not stopped' is that line, of the same noise, and compared with it.",
        "An entity's gate asks users who are not reported; their held-out cells are those that decide.",
        "Where zeros are not observed (ratings), a released 0 is unknown: noise cut off at 0, since no rating is 0.",
        "The ridge of the central regression is not published: 10 was taken after 2, 4, 10, 20 and 50 were seen.",
        "The catalogue is what somebody rated or was given: in use it is a public list.",
        "Which entities take the release, and who was harmed, are functions of private rows: told of public data only.",
        "Planted groups are rebuilt from a description that leaves their laws open; these were chosen so that models without "
        "privacy have about the reference's errors. Bounds of norms are quantiles of one entity's data, treated as public.",
        "Training errors are of the users who are tested.",
    ]
    if not found:
        notes.append(
            "No data set was found: set TACIT_DATA to a folder that holds ml-1m and eicu-demo, or name one by --data."
        )
    if found and not known:
        notes.append("Reference figures are of MovieLens 1M and the eICU demo; here there are none to compare with.")
    if effort is Effort.QUICK:
        notes.append("A quick run: one noise draw, small made-up worlds, few settings.")
    return tuple(notes)
