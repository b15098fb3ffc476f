"""What a server may see of one slot: the check that a device's retries pass and its broken twins do not."""

from collections.abc import Callable

from tacit.device import Device


def different_signals(open_device: Callable[[], Device], *, eta: float = 0.1) -> int:
    """How many different signals leave a device in one slot: asked twice, after other ratings, after a restart, empty again."""
    seen: set[bytes] = set()
    for ratings in ({2: 5.0}, {21: 4.0, 5: 1.0}, {}):
        device = open_device()
        device.rate(ratings)
        seen |= {device.ask(eta).to_bytes(), device.ask(eta).to_bytes()}
        device.rate({50: 3.0})
        seen |= {device.ask(eta).to_bytes(), device.request(3, eta=eta).signal.to_bytes()}
        device.close()
    return len(seen)
