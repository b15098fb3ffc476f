"""Releases, and messages of them, for tests of what receives them: tacit makes the former in mechanisms, the latter in messages."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ParamSpec, TypeVar

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


def changed(message: T, **parts: Any) -> T:
    """The message with other parts, as ``dataclasses.replace`` would make it if messages could be changed."""
    kept = {field.name: getattr(message, field.name) for field in fields(message)}  # type: ignore[arg-type]
    return make(type(message), **{**kept, **parts})
