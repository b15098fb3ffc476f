"""Choices of a device, and what they cost it."""

from typing import Any

from tacit.device import Choice, Device
from tacit.messages.private_selection import Policy
from tests.unit.device.offering import RR, offered

NANO = 10**9


def chosen(device: Device, *given: Any, **options: Any) -> Choice:
    choice = device.choose(offered(*given, **options))
    assert choice is not None
    return choice


def spent(device: Device, server: str = "server") -> int:
    return device.statement(server).spent.amount


def rules(device: Device, numbers: range, policy: Policy = RR, server: str = "server") -> str:
    """The first letters of the rules that were applied, one after the other."""
    found = [device.choose(offered(number, policy), server) for number in numbers]
    return "".join(one.policy.rule.value[0] for one in found if one is not None)


class Dies(Exception):
    """The device's battery is empty."""
