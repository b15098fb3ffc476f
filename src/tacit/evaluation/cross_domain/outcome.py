"""What the parts found: rows, guarantees, and the errors of single users for claims that compare user by user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.measures import AHEAD, Scored, over_draws, over_splits, rows
from tacit.evaluation.federated_prototypes.rows import settled
from tacit.evaluation.part import Part
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import Estimate, difference
from tacit.guarantees import Guarantee

Value = int | float | str
Key = tuple[str, tuple[tuple[str, Value], ...]]
DIRECTIONS, LINKING = "directions", "directions that link the domains"


@dataclass
class Outcome:
    rows: list[Row] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    guarantees: dict[str, Guarantee] = field(default_factory=dict)
    scored: dict[Key, Scored] = field(default_factory=dict)

    def join(self, other: "Outcome") -> None:
        self.rows += other.rows
        self.claims += other.claims
        self.notes += other.notes
        self.guarantees |= other.guarantees
        self.scored |= other.scored

    def add(self, part: Part) -> None:
        self.rows += part.rows
        self.claims += part.claims
        self.notes += part.notes

    def find(self, method: str, **setting: Value) -> Scored | None:
        return self.scored.get((method, settled(setting)))

    def ahead(self) -> list[Row]:
        """How far each method's error is from that of item averages in the same split, below 0 where it is lower."""
        found = []
        for (method, setting), one in self.scored.items():
            named = dict(setting)
            base = self.find(names.ITEM_AVERAGE, **named) or self.find(
                names.ITEM_AVERAGE, world=named["world"], epsilon=names.INF
            )
            if method != names.ITEM_AVERAGE and base is not None and base.errors.size == one.errors.size:
                found.append(
                    Row.of(method, AHEAD, difference(one.errors, base.errors, one.users), **_in_order(setting))
                )
        return found

    def lower(self, one: Scored, other: Scored) -> Estimate:
        """How far the error of ``one`` is below that of ``other``, user by user."""
        return difference(other.errors, one.errors, one.users)


class Gathering:
    """Scores of several noise draws and splits, until all are there."""

    def __init__(self) -> None:
        self._found: dict[Key, list[list[Scored]]] = {}
        self._told: dict[Key, dict[str, list[int]]] = {}
        self._guarantees: dict[Key, Guarantee] = {}
        self._split = -1

    def next_split(self) -> None:
        self._split += 1

    def add(
        self,
        method: str,
        setting: Mapping[str, Value],
        one: Scored,
        guarantee: Guarantee | None = None,
        told: Mapping[str, int] | None = None,
    ) -> None:
        """``told``: further numbers of this draw, which are averaged."""
        key = (method, settled(setting))
        splits = self._found.setdefault(key, [])
        while len(splits) <= self._split:
            splits.append([])
        splits[self._split].append(one)
        for name, number in (told or {}).items():
            self._told.setdefault(key, {}).setdefault(name, []).append(number)
        if guarantee is not None:
            self._guarantees[key] = guarantee

    def outcome(self) -> Outcome:
        found = Outcome()
        for key, splits in self._found.items():
            method, setting = key[0], _in_order(key[1])
            one = over_splits([over_draws(draws) for draws in splits if draws])
            found.scored[key] = one
            found.rows += rows(method, one, **setting)
            found.rows += [
                Row(method, setting, name, sum(numbers) / len(numbers), None, len(numbers))
                for name, numbers in self._told.get(key, {}).items()
            ]
            if key in self._guarantees:
                told = ", ".join(f"{name}={value}" for name, value in setting.items() if name != "world")
                found.guarantees[f"{method}, {setting.get('world', '')}, {told}"] = self._guarantees[key]
        return found


def _in_order(setting: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """The world first, then the rest as it is sorted."""
    named = dict(setting)
    return {**({"world": named.pop("world")} if "world" in named else {}), **named}
