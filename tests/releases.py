"""Releases, and messages of them, for tests of what receives them: tacit makes the former in mechanisms, the latter in messages."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tacit.guarantees import Guarantee, Release
from tacit.guarantees.guarantee import MECHANISM
from tacit.messages.codec import make

P = ParamSpec("P")
T = TypeVar("T")


def release_of(value: T, guarantee: Guarantee) -> Release[T]:
    """A release as a mechanism with this guarantee would make it."""
    return Release(value, guarantee, MECHANISM)


def message_of(kind: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """A message that tacit makes only from a release, bytes or JSON, with all its checks: ``message_of(Slate, items, ...)``."""
    return make(kind, *arguments, **named)
