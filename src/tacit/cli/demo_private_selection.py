"""The part of ``tacit demo`` that shows private selection: one device chooses, the server bills, exactly; and other policies."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from tacit.data import Ratings
    from tacit.messages.private_selection import Policy
    from tacit.messages.store import Store
    from tacit.server import PrivateSelection

EPSILONS, FILMS, OFFERS = (1.0, 3.0), 15, 5
BID, CLICKS = 1_000_000, 0.02  # micro-units for a click; the probability of one for each star
_LEAST_RATINGS = 5


class Way(NamedTuple):
    """What a policy shows to held-out users: the mean of their expected utility. ``epsilon`` is what one impression costs."""

    policy: str
    offered: int
    epsilon: float
    utility: float
    remark: str


class Shown(NamedTuple):
    offer: dict[str, Any]
    impression: dict[str, Any]
    settled: list[str]
    impressions: int
    micros: int
    ways: list[Way]


def show(ratings: "Ratings", store: "Store", console: "Console") -> Shown:
    """A shop with the most rated films of the store; the users are those whom multi-selection holds out.

    Clicks and bids are made up: a film is clicked once in fifty for each star, and all owners bid the same.
    """
    from tacit.data.splits import hold_out_users
    from tacit.device import Device, Limits
    from tacit.server import Listings, PrivateSelection
    from tacit.server.store_listings import listings_of
    from tacit.systems.private_selection import simulate

    split = hold_out_users(ratings, 0.2, rng=np.random.default_rng(7))
    counts = np.bincount(split.train.items, minlength=len(ratings.catalogue))
    place = {item: place for place, item in enumerate(ratings.catalogue.ids.tolist())}
    films = sorted(store.items.ids.tolist(), key=lambda item: -counts[place[item]])[:FILMS]
    free, people = listings_of(store, films)
    quality = dict(zip(free.priced().items, free.priced().scores.tolist(), strict=True))
    rate = [round(1e6 * CLICKS * quality[item]) for item in free.items]
    listings, tastes = Listings(free.items, [BID] * len(films), rate), people.times(CLICKS)

    def clicks(features: "NDArray[np.float64]", items: tuple[str, ...]) -> "NDArray[np.float64]":
        return np.asarray(CLICKS * _utilities(store, features[None, :], items)[0])

    user = int(np.flatnonzero(split.test.counts >= _LEAST_RATINGS)[0])
    with TemporaryDirectory() as folder, console.status("A device is offered films, and chooses ..."):
        shops = [
            PrivateSelection(
                listings, Path(folder) / f"shop-{epsilon:g}.db", spread=tastes, epsilon=epsilon, explore=0.0
            )
            for epsilon in EPSILONS
        ]
        shop = shops[-1]
        limits = Limits(most_epsilon=EPSILONS[-1])
        with Device(Path(folder) / "device.db", store, private_scorer=clicks, limits=limits) as device:
            device.rate(_rated(split.test, user, store))
            device.consent()
            outcomes = [simulate(device, shop) for _ in range(OFFERS)]
            statement = str(device.statement("server")).split("\n")
        totals = list(shop.ledger.items())
        counted, micros = sum(one.impressions for one in totals), sum(one.micros for one in totals)
        _talk(console, outcomes[0], store, statement, counted, micros)
        ways = _ways(store, shops, _features(split.test, store))
        for one in shops:
            one.ledger.close()
    return Shown(
        _read(outcomes[0].offer),
        _read(outcomes[0].impression),
        [str(one.settlement) for one in outcomes],
        counted,
        micros,
        ways,
    )


def _talk(console: "Console", first: Any, store: "Store", statement: list[str], counted: int, micros: int) -> None:
    offer, impression = _read(first.offer), _read(first.impression)
    titles = [_title(store, one["item"]) for one in offer["candidates"]]
    policy, film = offer["policy"], _title(store, impression["items"][0])
    for what, text in (
        ("received", f"an offer: {', '.join(titles)}; choose by {policy['id']} at epsilon {policy['epsilon']:g}"),
        ("stays on the device", "the profile, and what each of them is worth to her"),
        ("sent", f"{len(first.impression)} bytes: a token and {film}, exactly; and so for {OFFERS - 1} more offers"),
        (
            "the server",
            f"has counted {counted} impressions and billed {micros:,} micro-units for them (bids are made up)",
        ),
        ("the ledger", f"{statement[0]};{statement[1]}; what does not fit is shown by the public ranking, at no cost"),
    ):
        console.print(f"   [bold]{what:<20}[/bold] {text}", soft_wrap=True)


def _ways(store: "Store", shops: "list[PrivateSelection]", features: "NDArray[np.float64]") -> list[Way]:
    """Expected utilities in closed form, from the very laws that the device draws by."""
    from tacit.messages.private_selection import Bounding, Policy, Rule

    everything = shops[0].listings.priced()
    quality = _utilities(store, features, everything.items)
    public, k = everything.scores, len(everything.items)
    views = [(epsilon, shop.view()) for epsilon, shop in zip(EPSILONS, shops, strict=True)]
    found = [
        *(("auto", view.policy, "tacit's default: m chosen on public data") for _, view in views if view is not None),
        *(("rr", Policy(Rule.RR, k, epsilon), "as published, all candidates") for epsilon in EPSILONS),
        *(
            ("pf, scaled", Policy(Rule.PF, k, epsilon, bounding=Bounding.SCALED), "as published, calibrated exactly")
            for epsilon in EPSILONS
        ),
        ("public", Policy(Rule.PUBLIC, k), "the same for everybody: the baseline to beat"),
        ("greedy", Policy(Rule.GREEDY, k), "not private: the upper limit"),
    ]
    return [_way(name, policy, public, quality, remark) for name, policy, remark in found]


def _way(name: str, policy: "Policy", public: "NDArray[np.float64]", quality: "NDArray[np.float64]", why: str) -> Way:
    from tacit.device.private_selection import epsilon_of, probabilities

    offered, shown = public[: policy.m].tolist(), quality[:, : policy.m]
    utility = np.mean([probabilities(policy, row, offered) @ row for row in shown])
    return Way(name, policy.m, epsilon_of(policy, offered), float(utility), why)


def _utilities(store: "Store", features: "NDArray[np.float64]", items: tuple[str, ...]) -> "NDArray[np.float64]":
    """In stars, users x items."""
    codes = np.array([store.items.code(_id(store, item)) for item in items])
    return np.asarray(store.scorer.score(features, codes), dtype=np.float64)


def _title(store: "Store", item: str) -> str:
    return store.items.title(store.items.code(_id(store, item)))


def _id(store: "Store", item: str) -> int | str:
    """An item's id as the store has it: a number, or a text."""
    return int(item) if store.items.ids.dtype.kind in "iu" else item


def _features(ratings: "Ratings", store: "Store") -> "NDArray[np.float64]":
    people = np.flatnonzero(ratings.counts >= _LEAST_RATINGS)[:100].tolist()
    rows = []
    for user in people:
        rated = _rated(ratings, user, store)
        codes = np.array([store.items.code(item) for item in rated], dtype=np.int64)
        rows.append(store.space.of(codes, np.array(list(rated.values()))))
    return np.array(rows)


def _rated(ratings: "Ratings", user: int, store: "Store") -> dict[Any, float]:
    rows, listed = ratings.rows_of(user), set(store.items.ids.tolist())
    ids = ratings.catalogue.ids[ratings.items[rows]].tolist()
    return {item: value for item, value in zip(ids, ratings.values[rows].tolist(), strict=True) if item in listed}


def _read(message: str | None) -> dict[str, Any]:
    import json

    found: dict[str, Any] = {} if message is None else json.loads(message)
    return found
