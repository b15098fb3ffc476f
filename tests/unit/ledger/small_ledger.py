"""A small ledger with something of everything in it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tacit.guarantees import ONE_USER, approximate, nothing, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.chain import DAY
from tacit.ledger.impressions import ImpressionLedger
from tacit.mechanisms import GaussianSum

START = 20_000 * DAY  # a day of 2024
SMALL, LARGE, LEAKY = pure(0.1, ONE_USER), pure(0.25, ONE_USER), approximate(0.1, 1e-7, ONE_USER)
GAUSSIAN = GaussianSum(2, bound=1.0, epsilon=0.5, delta=1e-6).guarantee
BROKEN = nothing(ONE_USER, "published mode")
TERMS = {
    "for-life": {"budgets": Budget(3)},
    "with-delta": {"budgets": [Budget(3, 1e-5), Budget(1, 1e-6, per="day")]},
    "by-day": {"budgets": Budget(1, per="day")},
    "by-month": {"budgets": [Budget(2, per="month"), Budget(20)]},
    "sliding": {"budgets": [Budget(1, per="day", sliding=True), Budget(4, per="month", sliding=True)]},
    "by-rho": {"budgets": Budget(4, 1e-6), "accounting": "zcdp"},
    "by-count": {"budgets": Budget(4, 1e-5), "accounting": "pld", "each": GAUSSIAN},
    "unprotected": {"budgets": Budget(1), "unprotected": ["published mode"]},
    "idle": {"budgets": Budget(1)},
}
GUARANTEES = {
    "with-delta": [LEAKY, SMALL],
    "by-rho": [GAUSSIAN, SMALL],
    "by-count": [GAUSSIAN],
    "unprotected": [BROKEN, SMALL],
    "idle": [],
}


class Hand:
    """A clock that is set by hand."""

    def __init__(self, at: int = START) -> None:
        self.at = at

    def __call__(self) -> int:
        return self.at


def build(path: Path, lanes: int) -> Hand:
    """Makes the ledger, with charges over some weeks, stored releases and impressions; returns its clock."""
    return copied(_write, path, lanes)


def copied(write: Callable[[Path, int], Hand], path: Path, lanes: int) -> Hand:
    """What ``write`` writes, written once and copied for each test: every charge of it waits for the disk."""
    files, at = _written(write, lanes)
    for ending, content in files.items():
        path.with_name(path.name + ending).write_bytes(content)
    return Hand(at)


@cache
def _written(write: Callable[[Path, int], Hand], lanes: int) -> tuple[dict[str, bytes], int]:
    """The files of the ledger by the ending of their names, and the time on its clock."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        clock = write(path, lanes)
        return {one.name.removeprefix(path.name): one.read_bytes() for one in path.parent.iterdir()}, clock.at


def _write(path: Path, lanes: int) -> Hand:
    clock = Hand()
    with PrivacyLedger.create(path, lanes=lanes, clock=clock) as ledger:
        for subject, terms in TERMS.items():
            ledger.enrol(subject, protects=ONE_USER, **terms)  # type: ignore[arg-type]
        for day in range(0, 40, 10):
            clock.at = START + day * DAY
            for subject in TERMS:
                for number, guarantee in enumerate(GUARANTEES.get(subject, [SMALL, LARGE])):
                    clock.at += DAY // 100
                    ledger.charge(subject, f"release-{day}-{number}", guarantee)
        for content in (b"first", b"second"):
            ledger.release("for-life", content.decode(), SMALL, lambda content=content: content)
    with ImpressionLedger.open(path, clock=clock) as shop:
        for number in range(12):
            clock.at += DAY // 4
            shop.report(f"impression-{number}", f"item-{number % 3}", 1_000_000 + number)
    return clock
