"""The part of ``tacit demo`` that shows multi-selection: one device asks and picks, then many do, by four methods."""

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from tacit.data import Ratings
    from tacit.device import Device
    from tacit.messages.store import Store
    from tacit.server import MultiSelection

ETA, K, USERS, EPOCHS = 0.1, 5, 100, 10
_LEAST_RATINGS = 5  # of a user who asks
WAYS = (  # algorithm, local model, k, remark
    ("exact", "ridge", K, "tacit's default"),
    ("sat-realuser", "pca", K, "as published"),
    ("ig-sig", "ridge", K, "ignores the signal: the baseline to beat"),
    ("nopost", "none", 1, "one item for the noisy features"),
)


class Way(NamedTuple):
    """What one method kept of the best utility, on average over held-out users."""

    algorithm: str
    local_model: str
    k: int
    remark: str
    kept: float
    error: float
    gain: float  # over ig-sig, user by user
    gain_error: float


class Shown(NamedTuple):
    store: "Store"
    signal: dict[str, Any]
    slate: tuple[str, ...]
    picked: tuple[str, ...]
    ways: list[Way]


def show(ratings: "Ratings", console: "Console") -> Shown | None:
    """Fits a store to four users in five, lets one of the others ask, and compares methods over the others; None if too few."""
    from tacit.curator import fit
    from tacit.data.splits import hold_out_users
    from tacit.device import Device
    from tacit.ledger import Budget, Period
    from tacit.server import MultiSelection

    rng = np.random.default_rng(7)
    split = hold_out_users(ratings, 0.2, rng=rng)
    asking = np.flatnonzero(split.test.counts >= _LEAST_RATINGS)
    if len(asking) < 3:
        return None
    model = "network" if ratings.catalogue.genres is not None and find_spec("jax") is not None else "factors"
    with console.status("Fitting a model to the ratings of four users in five ..."):
        store = fit(split.train, model=model, epochs=EPOCHS, least=5, rng=rng, name=ratings.name)  # type: ignore[arg-type]
        server = MultiSelection(store, rng=rng)
    console.print(f"   {store!r}; scorer {store.scorer.kind}", soft_wrap=True)
    console.print(f"   those who trained it: {store.guarantee}", soft_wrap=True)
    user = int(asking[0])
    with (
        TemporaryDirectory() as folder,
        Device(Path(folder) / "device.db", store, budget=Budget(epsilon=10, per=Period.MONTH)) as device,
    ):
        known = {
            item: value for item, value in _rated(split.test, user).items() if item in set(store.items.ids.tolist())
        }
        device.rate(known)
        shown = _one_device(device, server, known, console)
    with console.status(f"{USERS} other users ask, each {len(WAYS)} times ..."):
        ways = _compared(store, server, split.test, asking[1 : USERS + 1], rng)
    return Shown(store, *shown, ways)


def _one_device(
    device: "Device", server: "MultiSelection", known: dict[Any, float], console: "Console"
) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    best = sorted(known, key=lambda item: -known[item])[:3]
    signal = device.ask(eta=ETA)
    reply = server.answer(signal, K)
    slate = device.titles(tuple(device.items.id(device.items.code_of_number(number)) for number in reply.items))
    picked = device.titles(device.pick(reply))
    rows = [
        ("stays on the device", f"{len(known)} ratings, among them {', '.join(device.titles(tuple(best)))}"),
        ("sent", f"{len(device.request(K, eta=ETA).to_bytes())} bytes: {signal.guarantee}"),
        ("received", f"{len(reply.to_bytes())} bytes: {', '.join(slate)}; and a local model"),
        ("stays on the device", f"the pick: {', '.join(picked)}"),
        ("the ledger", str(device.statement()).split("\n")[1].strip()),
    ]
    for what, text in rows:
        console.print(f"   [bold]{what:<20}[/bold] {text}", soft_wrap=True)
    readings = str(device.readings(ETA, server.store.look_alikes)).split("\n")[1:]
    console.print("   [bold]in plain numbers[/bold]    " + "; ".join(line.strip() for line in readings), soft_wrap=True)
    return signal.to_json(), slate, picked


def _compared(
    store: "Store", server: "MultiSelection", ratings: "Ratings", users: Any, rng: np.random.Generator
) -> list[Way]:
    """Real noise, real messages: every method answers every user once."""
    from tacit.systems.multi_selection import simulate

    places = np.searchsorted(ratings.catalogue.ids, store.items.ids)
    code = np.full(len(ratings.catalogue), -1, dtype=np.int32)
    code[places] = np.arange(len(store.items), dtype=np.int32)
    kept = np.empty((len(WAYS), len(users)))
    for place, (algorithm, local_model, k, _) in enumerate(WAYS):
        for column, user in enumerate(users.tolist()):
            rows = ratings.rows_of(user)
            listed = code[ratings.items[rows]] >= 0
            features = store.space.of(code[ratings.items[rows]][listed], ratings.values[rows][listed])
            outcome = simulate(store, features, ETA, k, 1, algorithm, local_model, rng=rng, tables=server.tables)
            kept[place, column] = outcome.taken / outcome.best
    baseline = kept[[way[0] for way in WAYS].index("ig-sig")]
    return [Way(*way, *_mean(found), *_mean(found - baseline)) for way, found in zip(WAYS, kept, strict=True)]


def _mean(values: "NDArray[np.float64]") -> tuple[float, float]:
    """With its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _rated(ratings: "Ratings", user: int) -> dict[Any, float]:
    rows = ratings.rows_of(user)
    ids = ratings.catalogue.ids[ratings.items[rows]].tolist()
    return dict(zip(ids, ratings.values[rows].tolist(), strict=True))
