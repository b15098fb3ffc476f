"""A release: one output of a mechanism, with the guarantee it was drawn under. Only mechanisms make one."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.guarantees.guarantee import Guarantee

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """What may cross a boundary. Messages are built from releases and from nothing else.

    ``guarantee`` covers the whole value: where ``value`` holds many outputs about the same data it has been composed,
    where each output is about another user's data it is the guarantee of each of them.
    """

    value: T_co
    guarantee: Guarantee

    def __str__(self) -> str:
        return f"release ({self.guarantee})"
