"""Guarantees of a result as a reader wants them: those that differ by epsilon alone stand in one line."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tacit.evaluation.report.words import promise
from tacit.guarantees import Guarantee


class Promise(NamedTuple):
    """``holds_for``: the methods that make it. ``proof``: a page in docs/proofs, without its ending."""

    holds_for: tuple[str, ...]
    epsilons: tuple[str, ...]
    protects: str
    assumes: tuple[str, ...]
    proof: str


def promises(guarantees: Mapping[str, Guarantee]) -> list[Promise]:
    """What is promised comes first, by the order of the result; then what promises nothing, with its reasons."""
    groups: dict[tuple[str, tuple[str, ...], str, bool], list[tuple[str, Guarantee]]] = {}
    for name, guarantee in guarantees.items():
        assumes = tuple(sorted(guarantee.assumes))
        key = (str(guarantee.protects), assumes, guarantee.proof, guarantee.promises_nothing)
        groups.setdefault(key, []).append((_method(name), guarantee))
    found = [
        (nothing, Promise(tuple(dict.fromkeys(name for name, _ in held)), _epsilons(held), protects, assumes, proof))
        for (protects, assumes, proof, nothing), held in groups.items()
    ]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _epsilons(held: list[tuple[str, Guarantee]]) -> tuple[str, ...]:
    ordered = sorted((guarantee for _, guarantee in held), key=lambda one: (one.epsilon, one.delta))
    return tuple(dict.fromkeys(promise(guarantee) for guarantee in ordered))


def _method(name: str) -> str:
    """Without its settings, which the epsilons tell."""
    return re.sub(r",? *[\w +]+=[^,]*", "", name) or name
