"""What a run of one system showed: what was said, what left, what is promised, and what it is worth beside both extremes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, isinf
from typing import Any, NamedTuple

from tacit.errors import InvalidParameter
from tacit.evaluation.curve import Better, share_of_way
from tacit.evaluation.statistics import SHOWN, Estimate
from tacit.guarantees import Guarantee

GAIN = (
    "gain"  # a metric: how much better than the way that learns nothing, trial by trial, whichever direction is better
)
Status = Callable[[str], None]  # is told what is being done now, in a few words
_EXACT = 1e-12  # a mean of figures is no nearer to its true value


def unheard(what: str) -> None:
    """A status that nobody reads."""


class Figure(NamedTuple):
    """A mean and its standard error; None where none is known."""

    value: float
    stderr: float | None = None

    @classmethod
    def of(cls, found: Estimate) -> "Figure":
        return cls(found.value, found.stderr if isfinite(found.stderr) else None)

    @property
    def is_shown(self) -> bool:
        """Whether it is above 0 by more than chance: by two standard errors, where there are any."""
        return self.value > max(_EXACT, SHOWN * (self.stderr or 0.0))

    def __str__(self) -> str:
        return f"{self.value:.3f}" if self.stderr is None else f"{self.value:.3f} ± {self.stderr:.3f}"


class Kind(StrEnum):
    """Whether a method is private, promises nothing, or learns nothing from anybody's data."""

    PRIVATE = "private"
    PLAIN = "not private"
    NOTHING = "learns nothing"


@dataclass(frozen=True, slots=True)
class Way:
    """One method among those compared. ``epsilon`` is in nats: inf where nothing is promised, 0 where nothing is told."""

    method: str
    kind: Kind
    epsilon: float
    figures: Mapping[str, Figure]  # by metric
    remark: str = ""

    @property
    def gain(self) -> Figure:
        """Over the way that learns nothing; nothing for that way itself."""
        return self.figures.get(GAIN, Figure(0.0))

    def to_json(self) -> dict[str, Any]:
        """The value as JSON; `from_json` reads it."""
        epsilon = "inf" if isinf(self.epsilon) else self.epsilon
        figures = {metric: list(figure) for metric, figure in self.figures.items()}
        return {
            "method": self.method,
            "kind": str(self.kind),
            "epsilon": epsilon,
            "figures": figures,
            "remark": self.remark,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Way":
        """What `to_json` wrote."""
        figures = {metric: Figure(*figure) for metric, figure in value["figures"].items()}
        return cls(value["method"], Kind(value["kind"]), float(value["epsilon"]), figures, value["remark"])


@dataclass(frozen=True, slots=True)
class Skipped:
    """A system that these ratings cannot show, and why."""

    system: str
    reason: str

    def to_json(self) -> dict[str, str]:
        return {"system": self.system, "reason": self.reason}


@dataclass(frozen=True)
class Demonstration:
    """One system, from end to end. ``private``, ``plain`` and ``nothing`` are the ways that a closing table sets side by side:
    each is one of ``ways``, of its kind, and all of them have a figure of ``metric``.

    ``said``: the conversation in its order, as (what, text). ``statement``: what the ledger beside the raw data says afterwards.
    Figures compare methods on public data; a party would not print them, because they follow from profiles without noise.
    """

    system: str
    sentence: str  # what it is for, in one line
    said: tuple[tuple[str, str], ...]
    guarantee: Guarantee  # of the release that was shown
    left: str  # what left the one who holds the raw data, with its size
    stayed: str
    statement: str
    metric: str
    unit: str
    better: Better
    ways: tuple[Way, ...]
    private: Way
    plain: Way
    nothing: Way
    verdict: str  # what the figures say, in words, whatever they say
    released: Mapping[str, Any]  # the messages that crossed the boundary, as JSON; long ones by their size
    each: str = ""  # what the guarantee is for one of, such as "impression"; empty where it covers all that left

    def __post_init__(self) -> None:
        chosen = ((self.private, Kind.PRIVATE), (self.plain, Kind.PLAIN), (self.nothing, Kind.NOTHING))
        for way, kind in chosen:
            if way not in self.ways or way.kind is not kind:
                raise InvalidParameter(
                    f"the way {way.method!r} must be one of the ways compared, and of kind {kind!s}."
                )
        if any(self.metric not in way.figures for way in self.ways):
            raise InvalidParameter(f"every way of {self.system} needs a figure of its metric, {self.metric}.")

    @property
    def promised(self) -> str:
        """The guarantee in words, and for one of what it is given, if there may be many."""
        return f"{self.guarantee}; for each {self.each} anew" if self.each else str(self.guarantee)

    def figure(self, way: Way) -> Figure:
        """What is set side by side of a way."""
        return way.figures[self.metric]

    @property
    def share(self) -> float | None:
        """How far ``private`` is on the way from ``nothing`` (0) to ``plain`` (1); None where ``plain`` is no better."""
        private, nothing, plain = (way.figures[self.metric].value for way in (self.private, self.nothing, self.plain))
        return share_of_way(private, nothing, plain, self.better)

    def to_json(self) -> dict[str, Any]:
        """The value as JSON; `from_json` reads it."""
        return {
            "system": self.system, "sentence": self.sentence, "said": [list(one) for one in self.said],
            "guarantee": self.guarantee.to_json(), "left": self.left, "stayed": self.stayed, "statement": self.statement,
            "metric": self.metric, "unit": self.unit, "better": str(self.better), "ways": [way.to_json() for way in self.ways],
            "private": self.ways.index(self.private), "plain": self.ways.index(self.plain),
            "nothing": self.ways.index(self.nothing), "verdict": self.verdict, "released": dict(self.released),
            "each": self.each,
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Demonstration":
        """What `to_json` wrote."""
        ways = tuple(Way.from_json(one) for one in value["ways"])
        return cls(
            value["system"], value["sentence"], tuple((what, text) for what, text in value["said"]),
            Guarantee.from_json(value["guarantee"]), value["left"], value["stayed"], value["statement"], value["metric"],
            value["unit"], Better(value["better"]), ways, ways[value["private"]], ways[value["plain"]], ways[value["nothing"]],
            value["verdict"], value["released"], value.get("each", ""),
        )  # fmt: skip
