"""What signals cost a device."""

from tacit.device import Device


def spent(device: Device) -> int:
    """Nano-epsilon in all."""
    return device.statement().spent.amount
