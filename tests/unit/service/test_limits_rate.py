"""So many requests a second: the arithmetic of the buckets, and whom a request counts for."""

import pytest

from tacit.service import application
from tacit.service.application import Buckets, caller_of


class Clock:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def allowed(buckets: Buckets, caller: str, tries: int) -> int:
    return sum(buckets.wait(caller) == 0.0 for _ in range(tries))


def test_a_burst_is_allowed_and_then_so_many_a_second(clock: Clock) -> None:
    buckets = Buckets(4.0, 10, clock)
    assert allowed(buckets, "a", 50) == 10
    for _ in range(20):
        clock.at += 0.5
        assert allowed(buckets, "a", 5) == 2


def test_the_wait_that_is_told_is_the_least_that_helps(clock: Clock) -> None:
    buckets = Buckets(4.0, 1, clock)
    assert buckets.wait("a") == 0.0
    assert buckets.wait("a") == pytest.approx(0.25)
    clock.at += 0.125
    assert buckets.wait("a") == pytest.approx(0.125)
    clock.at += 0.124
    assert buckets.wait("a") > 0.0
    clock.at += 0.002
    assert buckets.wait("a") == 0.0


def test_asking_in_vain_costs_nothing(clock: Clock) -> None:
    """Who asks too often is let in as soon as one who waited would be."""
    buckets = Buckets(1.0, 1, clock)
    assert allowed(buckets, "a", 1) == 1
    for _ in range(9):
        clock.at += 0.1
        assert allowed(buckets, "a", 3) == 0
    clock.at += 0.101
    assert allowed(buckets, "a", 3) == 1


def test_nobody_saves_up_more_than_a_burst(clock: Clock) -> None:
    buckets = Buckets(100.0, 3, clock)
    allowed(buckets, "a", 3)
    clock.at += 1e6
    assert allowed(buckets, "a", 10) == 3


def test_each_caller_has_a_bucket_and_rate_0_limits_nobody(clock: Clock) -> None:
    buckets = Buckets(1.0, 2, clock)
    assert allowed(buckets, "a", 5) == 2
    assert allowed(buckets, "b", 5) == 2
    assert allowed(Buckets(0.0, 1, clock), "a", 500) == 500


def test_with_very_many_callers_those_who_have_a_full_bucket_are_forgotten(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "_MOST_CALLERS", 10)
    buckets = Buckets(1.0, 2, clock)
    for number in range(9):
        buckets.wait(f"early {number}")
    clock.at += 1.0  # their buckets are full again
    allowed(buckets, "busy", 2)
    assert allowed(buckets, "new", 1) == 1
    assert set(buckets._left) == {"busy", "new"}
    assert allowed(buckets, "busy", 1) == 0  # the limit of who is busy goes on
    assert allowed(buckets, "early 3", 9) == 2


def test_memory_is_bounded_also_when_nobodys_bucket_is_full(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_MOST_CALLERS", 10)
    buckets = Buckets(1.0, 2, clock)
    for number in range(1000):
        assert buckets.wait(f"caller {number}") == 0.0
        assert len(buckets._left) <= 10


def test_who_is_known_already_does_not_make_others_be_forgotten(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_MOST_CALLERS", 3)
    buckets = Buckets(1.0, 5, clock)
    for caller in "abc":
        buckets.wait(caller)
    buckets.wait("a")
    assert set(buckets._left) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("host", "caller"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
        ("fe80::1%eth0", "fe80::"),  # a scope id is the name of an interface of this machine
        ("::1", "::"),  # and not 0.0.0.0, which is an address of the old protocol
        ("testclient", "testclient"),
        ("no:address", "no:address"),
        ("", ""),
    ],
)
def test_a_household_is_one_caller_however_many_addresses_it_has(host: str, caller: str) -> None:
    assert caller_of((host, 1234)) == caller


def test_a_caller_without_an_address_is_one_too() -> None:
    assert caller_of(None) == ""


def test_callers_by_the_old_protocol_are_told_apart_at_a_socket_for_both() -> None:
    """There ``192.0.2.7`` is written ``::ffff:192.0.2.7``: the first 64 bits of all of these are the same."""
    assert caller_of(("::ffff:192.0.2.7", 1)) != caller_of(("::ffff:198.51.100.9", 1))
    assert caller_of(("::ffff:192.0.2.7", 1)) == caller_of(("192.0.2.7", 1))
