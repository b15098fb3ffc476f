"""Each system, wired in one process: its parties speak through their real messages."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.systems.federated_prototypes import federate as federate

__all__ = ["federate"]


def __getattr__(name: str) -> Any:
    """Loaded when it is first used: it needs `cryptography`, which the other systems do without."""
    if name == "federate":
        from tacit.systems.federated_prototypes import federate

        return federate
    raise AttributeError(f"module 'tacit.systems' has no attribute {name!r}")
