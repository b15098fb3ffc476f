"""From a situation to advice: which system, how, what it promises, what may be expected of it, and the words that run it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType, ModuleType
from typing import Any

from tacit.errors import InvalidParameter
from tacit.evaluation.advice import (
    cross_domain,
    federated_prototypes,
    multi_selection,
    private_selection,
    private_slates,
)
from tacit.evaluation.advice.decision import System, decide, rejected
from tacit.evaluation.advice.expectation import Expectation, Worth, expect
from tacit.evaluation.advice.recipe import Recipe, needed_by
from tacit.evaluation.advice.situation import Holder, Situation
from tacit.evaluation.curve import Curve
from tacit.guarantees import ONE_PROFILE, ONE_USER, Guarantee, pure

_SYSTEMS: Mapping[System, ModuleType] = {
    System.MULTI_SELECTION: multi_selection,
    System.PRIVATE_SELECTION: private_selection,
    System.FEDERATED_PROTOTYPES: federated_prototypes,
    System.CROSS_DOMAIN: cross_domain,
    System.PRIVATE_SLATES: private_slates,
}
_HARDLY = 10.0


class Verdict(StrEnum):
    USE = "use it"
    BASELINE = (
        "do without"  # at this epsilon and for so many users, nothing is learned that beats what costs nobody anything
    )
    NONE = "no system fits"


@dataclass(frozen=True, slots=True)
class Advice:
    """``guarantee`` is for everything in the period together, ``each`` for one release. Both have epsilon 0 where nothing can be
    released, and are None where no system fits."""

    situation: Situation
    verdict: Verdict
    system: System | None
    mode: str
    why: str
    rejected: Mapping[System, str]
    each: Guarantee | None = None
    guarantee: Guarantee | None = None
    expected: Expectation | None = None
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    baseline: str = ""
    evaluate: str = ""
    commands: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    needs: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    python: str = ""
    page: str = "docs/choosing.md"

    @property
    def headline(self) -> str:
        """The system and its mode in one line, or that none fits."""
        if self.system is None:
            return "No system fits."
        if not self.mode:
            return f"Do without. {self.system.value} would fit, but nothing can be released."
        named = f"{self.system.value} ({self.mode})"
        return (
            named
            if self.verdict is Verdict.USE
            else f"Do without. {named} fits, but is not known to beat what costs nothing."
        )

    def to_json(self) -> dict[str, Any]:
        """What `tacit advise --json` writes."""
        promised = {"each": self.each, "guarantee": self.guarantee}
        return {
            "situation": self.situation.to_json(), "verdict": self.verdict.value, "system": self.system, "mode": self.mode,
            "headline": self.headline, "why": self.why, "reasons": list(self.reasons), "warnings": list(self.warnings),
            **{name: None if one is None else one.to_json() for name, one in promised.items()},
            "expected": None if self.expected is None else self.expected.to_json(),
            "baseline": self.baseline, "rejected": {name.value: line for name, line in self.rejected.items()},
            "evaluate": self.evaluate, "commands": list(self.commands), "files": dict(self.files),
            "needs": dict(self.needs), "python": self.python, "page": self.page,
        }  # fmt: skip


def advise(at: Situation, curves: Iterable[Curve]) -> Advice:
    """What to use in a situation, by the decision table and the closest of the evaluations' curves."""
    system, why = decide(at)
    if system is None:
        return Advice(at, Verdict.NONE, None, "", why, rejected(at, None))
    room = _SYSTEMS[system]
    known = {
        "baseline": room.BASELINE, "evaluate": f"tacit evaluate {system.value}", "page": f"docs/{room.PAGE}.md",
    }  # fmt: skip
    try:
        found: Recipe = room.recipe(at)
    except (
        InvalidParameter
    ) as problem:  # nothing can be charged or drawn at this epsilon: what is wrong is told as the library does
        free = pure(0.0, ONE_PROFILE if at.holder is Holder.DEVICE else ONE_USER)
        told = str(problem).removeprefix(f"{problem.code}: ")
        return Advice(
            at, Verdict.BASELINE, system, "", why, rejected(at, system), free, free,
            warnings=(f"Nothing can be released in this situation: {told}",), **known,
        )  # fmt: skip
    expected = expect(system, at, found, curves)
    verdict = _verdict(found, expected)
    warnings = (*_doubts(found, expected, verdict), *_hardly(found), *found.warnings)
    return Advice(
        at, verdict, system, found.mode, why, rejected(at, system), found.each, found.total, expected, found.reasons,
        warnings, commands=found.commands, files=found.files, needs=needed_by(found), python=found.python, **known,
    )  # fmt: skip


def _verdict(found: Recipe, expected: Expectation | None) -> Verdict:
    if found.is_hopeless or (expected is not None and expected.worth is Worth.NOTHING):
        return Verdict.BASELINE
    return Verdict.USE


def _doubts(found: Recipe, expected: Expectation | None, verdict: Verdict) -> tuple[str, ...]:
    if expected is None:
        return ("No evaluation of this mode is known here: try it on data like yours before a budget is spent.",)
    if verdict is Verdict.BASELINE and not found.is_hopeless:
        return (
            "At this epsilon and with so many users the closest evaluation shows nothing that beats the baseline. Use that, which "
            "costs nobody anything; or raise epsilon, or find more users.",
        )
    return ()


def _hardly(found: Recipe) -> tuple[str, ...]:
    """A word on an epsilon that promises next to nothing."""
    if found.total.per_distance or found.total.epsilon <= _HARDLY:
        return ()
    epsilon = f"{found.total.epsilon:.3g}"
    return (
        f"An epsilon of {epsilon} in all is hardly a promise: what is released may be e^{epsilon} times as likely with one "
        "person's data as with another's.",
    )
