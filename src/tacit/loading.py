"""Rooms whose names are loaded when they are first used: importing one is quick, and needs no package of an extra."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_demand(
    room: str, homes: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a room: names by the module of the room that has them, and whole modules.

    A type checker must not see these two, or every misspelt name would be an Any to it: bind them under ``if not TYPE_CHECKING``.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def found(name: str) -> Any:
        if name in modules:
            return import_module(f"{room}.{name}")
        if name in home:
            return getattr(import_module(f"{room}.{home[name]}"), name)
        raise AttributeError(f"module {room!r} has no attribute {name!r}")

    return found, lambda: sorted([*home, *modules])
