"""Packages whose names are loaded on first use. Importing such a package is quick and needs no optional dependency."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy(package: str, modules: str = "", **homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package, for names that are loaded on first use.

        if TYPE_CHECKING:
            from tacit.engines import flower, spark
            from tacit.engines.folders import Mailbox, new_key
        else:
            __getattr__, __dir__ = lazy(__name__, "flower spark", folders="Mailbox new_key")

    ``modules`` lists whole modules of the package; ``homes`` lists names by the module that defines them. The package
    also needs a literal ``__all__``, for type checkers. They must not see ``__getattr__``: every misspelt name would be
    an Any.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}
    own_modules = modules.split()

    def load(name: str) -> Any:
        if name in own_modules:
            return import_module(f"{package}.{name}")
        if name in home:
            return getattr(import_module(f"{package}.{home[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: list(sys.modules[package].__all__)
