"""The evaluation of private slates: privacy against popularity, coverage and diversity on films, and the theorems in figures."""

from pathlib import Path

import numpy as np

from tacit.data import Ratings
from tacit.errors import MissingExtra
from tacit.evaluation.effort import Effort
from tacit.evaluation.part import Part, Progress, untold
from tacit.evaluation.private_slates import diversified
from tacit.evaluation.private_slates.drawn import capped, high
from tacit.evaluation.private_slates.films import Films, default_data, films
from tacit.evaluation.private_slates.growth import growth
from tacit.evaluation.private_slates.preselected import THRESHOLD
from tacit.evaluation.private_slates.signal import signal
from tacit.evaluation.private_slates.stability import stability
from tacit.evaluation.private_slates.support import support
from tacit.evaluation.private_slates.table import table
from tacit.evaluation.private_slates.tries import MANY
from tacit.evaluation.private_slates.verdicts import verdicts
from tacit.evaluation.result import Result, sizes, versions_of

SYSTEM = "private-slates"


def evaluate(
    data: str | Path | Ratings | None = None,
    effort: Effort | str = Effort.DEFAULT,
    *,
    seed: int = 1,
    progress: Progress | None = None,
) -> Result:
    """Every method on one data set: MovieLens 1M if it is there, otherwise `movielens-small`. Equal seeds, equal figures."""
    effort, told = Effort(effort), progress or untold
    people = films(default_data() if data is None else data, rng=np.random.default_rng([seed, 61]))
    tried = table(people, effort, seed=seed, progress=told)
    large = tuple(sizes({"users": people.users, "items": people.items}))
    found = Part(large, notes=_notes(people, effort)).and_(tried.part)
    found = found.and_(Part(claims=tuple(verdicts(people, tried.found, capped(people)))))
    told("signal and stability", 0, 4)
    found = found.and_(signal(people, MANY[effort], seed))
    told("signal and stability", 1, 4)
    found = found.and_(stability(people)).and_(growth(people.items)).and_(support())
    found = found.and_(_multi_selection(effort, seed, told))
    versions = versions_of("scipy", "jax")
    return Result(SYSTEM, people.name, found.rows, found.claims, tried.guarantees, seed, found.notes, versions)


def _multi_selection(effort: Effort, seed: int, told: Progress) -> Part:
    """On data of its own: determinants where the server chooses from a signal, and no record is near."""
    try:
        return diversified.run(effort, seed=seed, progress=told)
    except MissingExtra as missing:
        return Part(notes=(f"Diversified multi-selection was left out: {missing}",))


def _notes(people: Films, effort: Effort) -> tuple[str, ...]:
    notes = [
        f"Data: {people.name}, {people.users:,} users to make slates from, {people.held_out.shape[0]:,} held out, {people.items:,} "
        "films. A like is a rating of at least 4.",
        "Noise is replayed from the seed: guarantees are those of the mechanisms, not of this run.",
        "Popularity, novelty and intra-list distance are by the likes that slates are made from; coverage asks held-out users.",
        f"Public constants: likes of a film count up to {high(people):,.0f}, the sparse vector's threshold is "
        f"{round(THRESHOLD * people.users):,} likes: shares of the number of users here; in use they are set beforehand.",
        "The published bound covers its eigenvalue step only; its slates are compared at the epsilon that it claims.",
        "Without privacy, the k-DPP of co-likes is a natural slate at epsilon 20: a jitter of 2e-9.",
    ]
    if not people.listed:
        notes.append("This data set lists rated films only, so its catalogue is not public, as it would have to be.")
    if effort is Effort.QUICK:
        notes.append("A quick run: fewer slates, so that small differences may not be shown.")
    return tuple(notes)
