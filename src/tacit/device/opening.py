"""What a client is opened with: the same for the one that waits and the one that awaits."""

from types import ModuleType
from typing import Any, NamedTuple, Unpack

from tacit.device.connection import checked_address, connection_settings, imported_httpx, name_of
from tacit.device.conversation import Conversation, DeviceOptions
from tacit.device.exchange import Patience
from tacit.ledger.stores import Target

LONGEST = 6.0  # timeouts that a whole answer may take


class ClientOptions(DeviceOptions, total=False):
    """What a client takes beside its server, its place and its transport; ``tacit.Client`` says what each of them means."""

    form: str
    name: str | None
    insecure: bool
    trust_env: bool
    timeout: float  # seconds
    tries: int


class Opening(NamedTuple):
    conversation: Conversation
    httpx: ModuleType
    settings: dict[str, Any]  # of its client
    longest: float  # seconds that a whole answer may take


def opening(
    server: str,
    place: Target,
    *,
    form: str = "binary",
    name: str | None = None,
    insecure: bool = False,
    trust_env: bool = False,
    timeout: float = 10.0,
    tries: int = 4,
    **device: Unpack[DeviceOptions],
) -> Opening:
    """All that is checked before the first call. Nothing is sent, and no file is made."""
    address, httpx = checked_address(server, insecure=insecure), imported_httpx()
    settings = connection_settings(address, timeout, trust_env)
    conversation = Conversation(place, name or name_of(address), form, Patience(tries), device)
    return Opening(conversation, httpx, settings, LONGEST * settings["timeout"])
