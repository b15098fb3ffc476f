"""The parts of the evaluation. None needs another, so that they can run side by side; each is found by its name in any process."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tacit.evaluation.effort import Effort
from tacit.evaluation.federated_prototypes import (
    counts,
    drugs,
    item_statistics,
    names,
    planted,
    ranking,
    rated,
    worlds,
)  # fmt: skip
from tacit.evaluation.federated_prototypes.chance import rng_of
from tacit.evaluation.federated_prototypes.measures import Floats, Sampled
from tacit.evaluation.federated_prototypes.rows import Key, key_of
from tacit.evaluation.federated_prototypes.splits import every_user, paper_split
from tacit.evaluation.result import Row
from tacit.guarantees import Guarantee


@dataclass
class Outcome:
    """What one part found; ranks and errors of single users are kept for claims that compare user by user."""

    rows: list[Row] = field(default_factory=list)
    guarantees: dict[str, Guarantee] = field(default_factory=dict)
    ranked: dict[str, ranking.Ranked] = field(default_factory=dict)
    groups: planted.Found | None = None
    influences: dict[Key, Floats] = field(default_factory=dict)

    def add(self, found: Iterable[tuple[Row, Guarantee | None]]) -> "Outcome":
        for row, guarantee in found:
            self.rows.append(row)
            if guarantee is not None:
                kept = ("split", "epsilon", "k")
                told = ", ".join(f"{name}={value}" for name, value in row.setting.items() if name in kept)
                self.guarantees[f"{row.method}, {row.setting['world']}, {told}"] = guarantee
        return self

    def join(self, other: "Outcome") -> None:
        self.rows += other.rows
        self.guarantees |= other.guarantees
        self.ranked |= other.ranked
        self.groups = other.groups or self.groups
        self.influences |= other.influences


Part = Callable[[], Outcome]


def parts(found: list[worlds.Source], effort: Effort, seed: int) -> dict[str, Part]:
    """By name, the longest first."""
    chosen: dict[str, Part] = {}
    for source in found:
        if source.kind == worlds.FILMS:
            for piece in rated.PIECES:
                chosen[f"film ratings, {piece}"] = partial(_rated, source.folder, piece, effort, seed)
            for world, digits in ((names.ZIP1, 1), (names.ZIP2, 2)):
                chosen[world] = partial(_films, world, source.folder, digits, effort, seed)
                chosen[f"{world}, item means"] = partial(_priors, world, source.folder, digits, effort, seed)
            chosen["item statistics"] = partial(_items, source.folder, effort, seed)
        else:
            for world, regions in ((names.HOSPITALS, False), (names.REGIONS, True)):
                chosen[world] = partial(_drugs, world, source.folder, regions, effort, seed)
            chosen["drug counts"] = partial(_counts_of_drugs, source.folder, effort, seed)
    chosen[names.SYNTHETIC] = partial(_synthetic, effort, seed)
    chosen[names.PLANTED] = partial(_planted, effort, seed)
    return chosen


def _rated(folder: Path, piece: str, effort: Effort, seed: int) -> Outcome:
    found = rated.rated(worlds.films(folder, 1), piece, effort, seed=seed)
    return Outcome(found.rows, found.guarantees, influences=found.influences)


def _lists(one: ranking.Ranked) -> Outcome:
    return Outcome(list(ranking.rows(one)), one.guarantees, {one.world: one})


def _films(world: str, folder: Path, digits: int, effort: Effort, seed: int) -> Outcome:
    return _lists(ranking.ranked(world, worlds.films(folder, digits), effort, seed=seed))


def _priors(world: str, folder: Path, digits: int, effort: Effort, seed: int) -> Outcome:
    ratings = worlds.films(folder, digits)
    held = every_user(ratings, rng=rng_of(seed, "every user", ratings.name), marks=False)
    return Outcome().add(item_statistics.prior_rows(world, held, effort, seed))


def _items(folder: Path, effort: Effort, seed: int) -> Outcome:
    ratings = worlds.films(folder, 1)
    held = paper_split(ratings, rng=rng_of(seed, "paper split", ratings.name))
    return Outcome().add(item_statistics.rows(held, effort, seed))


def _drugs(world: str, folder: Path, regions: bool, effort: Effort, seed: int) -> Outcome:
    return _lists(ranking.ranked(world, worlds.drugs(folder, regions=regions), effort, seed=seed))


def _counts_of_drugs(folder: Path, effort: Effort, seed: int) -> Outcome:
    found = list(drugs.rows(worlds.drugs(folder, regions=True), effort, seed=seed))
    outcome = Outcome().add((row, guarantee) for row, guarantee, _ in found)
    outcome.influences |= {key_of(row): one.influence for row, _, one in found if isinstance(one, Sampled)}
    return outcome


def _synthetic(effort: Effort, seed: int) -> Outcome:
    found = counts.run(effort, seed=seed)
    return Outcome(found.rows, found.guarantees, influences=found.influences)


def _planted(effort: Effort, seed: int) -> Outcome:
    found = planted.run(effort, seed=seed)
    return Outcome(found.rows, found.guarantees, groups=found)
