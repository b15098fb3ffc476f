"""The evaluations by the names of their systems. What an evaluation needs is imported when it is asked for."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import InvalidParameter, UnknownName

if TYPE_CHECKING:
    from tacit.evaluation.curve import Curve
    from tacit.evaluation.effort import Effort
    from tacit.evaluation.pictures.picture import Picture
    from tacit.evaluation.result import Result

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Where an evaluation is found, the data it takes by default (None: it finds out), and which options it has."""

    module: str
    data: str | None = None
    options: frozenset[str] = frozenset()


_EVALUATIONS: Mapping[str, Evaluation] = {
    "multi-selection": Evaluation(
        "tacit.evaluation.multi_selection", "movielens-small", frozenset({"trials", "look_alikes", "workers"})
    ),
    "private-selection": Evaluation("tacit.evaluation.private_selection", "all"),
    "federated-prototypes": Evaluation("tacit.evaluation.federated_prototypes", options=frozenset({"workers"})),
    "cross-domain": Evaluation("tacit.evaluation.cross_domain"),
    "private-slates": Evaluation("tacit.evaluation.private_slates"),
}
SYSTEMS: tuple[str, ...] = tuple(_EVALUATIONS)


def known(system: str) -> Evaluation:
    """The evaluation of a system, or an error that says which there are."""
    if system not in _EVALUATIONS:
        raise UnknownName(f"no system {system!r} can be evaluated; known: {', '.join(SYSTEMS)}.")
    return _EVALUATIONS[system]


def having(option: str) -> list[str]:
    """The systems whose evaluation has this option."""
    return [system for system, one in _EVALUATIONS.items() if option in one.options]


def evaluate(
    system: str,
    data: str | Path | None = None,
    effort: "Effort | str" = "default",
    *,
    seed: int = 1,
    workers: int | None = None,
    progress: Progress | None = None,
    **own: int | None,
) -> "Result":
    """What the evaluation of a system found. Equal seeds, equal figures.

    ``workers`` are processes, by default one for each processor, where an evaluation can use several. ``own`` are the options
    that only some have; None leaves one out.
    """
    one = known(system)
    given = {option: value for option, value in own.items() if value is not None}
    for option in given:
        if option not in one.options:
            raise InvalidParameter(
                f"{system} has no option {option}; it belongs to {' and '.join(having(option)) or 'none'}."
            )
    if "workers" in one.options:
        given["workers"] = workers or os.cpu_count() or 1
    run: Callable[..., Result] = import_module(one.module).evaluate
    return run(data if data is not None else one.data, effort, seed=seed, progress=progress, **given)


def pictures(system: str, result: "Result") -> "list[Picture]":
    """The pictures that a system has, drawn or not: those without rows are left out where they are drawn."""
    found: list[Picture] = import_module(f"{known(system).module}.plots").pictures(result)
    return found


def curves(result: "Result") -> "list[Curve]":
    """Privacy against utility in every world of a result, the most telling world first."""
    found: Iterable[Curve] = import_module(f"{known(result.system).module}.curves").curves(result)
    return list(found)
