"""Multi-selection, shown: one device asks and picks at home, then many do, by four methods, with real noise and real messages."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.device import Device
from tacit.device.multi_selection import Readings
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Figure, Kind, Status, Way, unheard
from tacit.evaluation.demonstration.fitted import Fitted
from tacit.evaluation.statistics import difference, mean
from tacit.guarantees import Guarantee
from tacit.ledger import Budget, Period
from tacit.models.scorers import class_scores
from tacit.server import MultiSelection
from tacit.systems.multi_selection import simulate

SYSTEM = "multi-selection"
ETA, K = 0.1, 5
KEPT = "utility kept"
EXACT, IGNORES, KNOWN = "exact", "ig-sig", "all told"
METHODS = (  # algorithm, local model, k, remark
    (EXACT, "ridge", K, "tacit's default"),
    ("sat-realuser", "pca", K, "as published"),
    ("nopost", "none", 1, "one item for the noisy features"),
    (IGNORES, "ridge", K, "ignores the signal"),
)


class _Talk(NamedTuple):
    said: tuple[tuple[str, str], ...]
    guarantee: Guarantee
    left: str
    stayed: str
    statement: str
    released: dict[str, Any]


def demonstrate(fitted: Fitted, *, status: Status = unheard) -> Demonstration:
    """One of the held-out users asks, and the methods are compared over the others. The pick is told, never sent."""
    server = MultiSelection(fitted.store, rng=fitted.rng)
    status("a device asks, and picks at home")
    talk = _talk(fitted, server)
    status(f"{len(fitted.asking)} other users ask, by {len(METHODS)} methods")
    ways = tuple(_ways(fitted, server, talk.guarantee.epsilon))
    by_name = {way.method: way for way in ways}
    return Demonstration(
        SYSTEM, "A device asks without telling, and picks at home.", talk.said, talk.guarantee, talk.left, talk.stayed,
        talk.statement, KEPT, "share of the best item's", Better.HIGHER, ways, by_name[EXACT], by_name[KNOWN],
        by_name[IGNORES], verdict(ways), talk.released,
    )  # fmt: skip


def verdict(ways: Iterable[Way]) -> str:
    """What the table says of the signal, in words, whatever it says: two standard errors are asked for."""
    by_name = {way.method: way for way in ways}
    private = by_name[EXACT]
    gain = private.gain
    kept = f"Of the best item's utility {private.figures[KEPT].value:.1%} is kept"
    if gain.is_shown:
        return f"{kept}, {gain.value:.1%} more than by ig-sig, which ignores the signal: here the signal is worth its epsilon."
    if Figure(-gain.value, gain.stderr).is_shown:
        return f"{kept}, less than by ig-sig, which ignores the signal: here asking is not worth its epsilon."
    return (
        f"{kept}; ig-sig, which ignores the signal, keeps as much, up to chance: nearly all of the benefit is "
        f"the choice among {K} at home, and here the signal is not worth its epsilon."
    )


def _talk(fitted: Fitted, server: MultiSelection) -> _Talk:
    known, store = fitted.rated(fitted.shown), fitted.store
    budget = Budget(epsilon=10, per=Period.MONTH)
    with (
        TemporaryDirectory() as folder,
        Device(Path(folder) / "device.db", store, budget=budget) as device,
    ):
        device.rate(known)
        signal = device.ask(eta=ETA)
        reply = server.answer(signal, K)
        slate = device.titles(tuple(device.items.id(device.items.code_of_number(number)) for number in reply.items))
        picked, best = device.titles(device.pick(reply)), sorted(known, key=lambda item: -known[item])[:3]
        liked = device.titles(tuple(best))
        sent = len(device.request(K, eta=ETA).to_bytes())
        statement = str(device.statement()).split("\n")[1].strip()
        readings = device.readings(ETA, store.look_alikes)
    said = (
        ("on the server", f"{store!r}; {store.scorer.kind}"),
        ("on the device", f"{len(known)} ratings, among them {', '.join(liked)}"),
        ("the answer", f"{len(reply.to_bytes()):,} bytes: {', '.join(slate)}; and a local model"),
        ("picked at home", ", ".join(picked)),
        ("in plain numbers", "; ".join(_plainly(readings))),
        ("who trained it", _trained(store.guarantee)),
    )
    left = f"one noisy vector of {store.space.dimension} numbers, {sent} bytes"
    released = {"signal": signal.to_json(), "slate": list(slate), "store": store.guarantee.to_json()}
    stayed = f"{len(known)} ratings, and which of the {K} items was picked"
    return _Talk(said, signal.guarantee, left, stayed, statement, released)


def _plainly(readings: Readings) -> Iterator[str]:
    """Three of the readings: one rating, the middle one of neighbourhoods, anybody."""
    for line in str(readings).split("\n")[1:]:
        if "rating added" in line or "50%" in line or "anybody" in line:
            yield line.strip()


def _trained(guarantee: Guarantee) -> str:
    if guarantee.promises_nothing:
        return f"no guarantee: {'; '.join(sorted(guarantee.assumes))}"
    return str(guarantee)


def _ways(fitted: Fitted, server: MultiSelection, epsilon: float) -> Iterator[Way]:
    """Every method answers every user once. What a server could do that knew the features is worked out from them."""
    users, store = fitted.features(), fitted.store
    kept = {
        algorithm: np.array([_kept(fitted, server, row, algorithm, local_model, k) for row in users])
        for algorithm, local_model, k, _ in METHODS
    }
    scores = class_scores(store.scorer, users).astype(np.float64)
    best, shown = scores.max(axis=1), scores[np.arange(len(users)), scores.argmax(axis=1)]
    for algorithm, _, k, remark in METHODS:
        kind = Kind.NOTHING if algorithm == IGNORES else Kind.PRIVATE
        told = 0.0 if algorithm == IGNORES else epsilon
        yield _way(algorithm, kind, told, kept[algorithm], kept[IGNORES], f"k = {k}; {remark}")
    yield _way(KNOWN, Kind.PLAIN, float("inf"), shown / best, kept[IGNORES], "the server is told the features exactly")


def _kept(
    fitted: Fitted, server: MultiSelection, features: NDArray[np.float64], algorithm: str, local_model: str, k: int
) -> float:
    found = simulate(
        fitted.store, features, ETA, k, 1, algorithm, local_model, rng=fitted.rng, tables=server.tables
    )  # fmt: skip
    return found.taken / found.best


def _way(
    method: str, kind: Kind, epsilon: float, kept: NDArray[np.float64], ignored: NDArray[np.float64], remark: str
) -> Way:
    figures = {KEPT: Figure.of(mean(kept))}
    if kind is not Kind.NOTHING:
        figures[GAIN] = Figure.of(difference(kept, ignored))
    return Way(method, kind, epsilon, figures, remark)
