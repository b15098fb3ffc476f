"""Private selection, shown: a device chooses from offers, the server counts and bills exactly; and other policies beside it."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.device import Device, Limits
from tacit.device.private_selection import guarantee_of, probabilities
from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import GAIN, Demonstration, Figure, Kind, Status, Way, unheard
from tacit.evaluation.demonstration.fitted import Fitted
from tacit.evaluation.statistics import difference, mean
from tacit.guarantees import Guarantee
from tacit.guarantees.arithmetic import shown_up
from tacit.messages.private_selection import Bounding, Policy, Rule
from tacit.messages.store import Store
from tacit.server import Listings, PrivateSelection
from tacit.server.listings import listings_of
from tacit.systems.private_selection import simulate

SYSTEM = "private-selection"
EPSILONS, ITEMS, OFFERS = (1.0, 3.0), 15, 5
BID, CLICKS = 1_000_000, 0.02  # micro-units for a click; the probability of one for each star
STARS = "stars"
EACH = "impression"  # what is charged, and promised, by itself
AUTO, PUBLIC, GREEDY, RESPONSE = "auto", "public", "greedy", "rr"
_WHICH = "of different kinds (where all like the same, there is nothing to choose)"


class _Talk(NamedTuple):
    said: tuple[tuple[str, str], ...]
    guarantee: Guarantee
    left: str
    statement: str
    released: dict[str, Any]


def demonstrate(fitted: Fitted, *, status: Status = unheard) -> Demonstration:
    """A shop with the most rated item of each genre; the users are those whom the store was not fitted to.

    Clicks and bids are made up: an item is clicked once in fifty for each star, and all owners bid the same. One item of each
    genre, because with items that all like alike there is nothing to choose (the policy `auto` then shows the public first one).
    """
    items = _items(fitted)
    free, people = listings_of(fitted.store, items)
    quality = dict(zip(free.priced().items, free.priced().scores.tolist(), strict=True))
    rate = [round(1e6 * CLICKS * quality[item]) for item in free.items]
    listings, tastes = Listings(free.items, [BID] * len(items), rate), people.times(CLICKS)
    status("a device is offered items, and chooses")
    with TemporaryDirectory() as folder:
        shops = [
            PrivateSelection(
                listings, Path(folder) / f"shop-{epsilon:g}.db", spread=tastes, epsilon=epsilon, explore=0.0
            )
            for epsilon in EPSILONS
        ]
        talk = _talk(fitted, shops[-1], Path(folder) / "device.db")
        status(f"what {len(fitted.asking)} users would be shown, by each policy")
        ways = tuple(_ways(fitted, shops))
        for one in shops:
            one.ledger.close()
    private = [way for way in ways if way.method == AUTO][-1]
    by_name = {way.method: way for way in ways}
    return Demonstration(
        SYSTEM, "The server sees and bills what was shown, exactly, and hardly learns to whom.", talk.said, talk.guarantee,
        talk.left, "the profile, and what each item is worth to her", talk.statement, STARS,
        "expected of the item shown, by the model", Better.HIGHER, ways, private, by_name[GREEDY], by_name[PUBLIC],
        verdict(ways, private), talk.released, EACH,
    )  # fmt: skip


def verdict(ways: Iterable[Way], private: Way) -> str:
    """What the table says of tacit's policy, in words, whatever it says: two standard errors are asked for."""
    by_name = {way.method: way for way in ways}
    public, published = by_name[PUBLIC].figures[STARS].value, by_name[RESPONSE].figures[STARS].value
    gain, most = private.gain, by_name[GREEDY].gain.value
    if private.epsilon == 0.0:
        text = "On public data a private choice would lose more than it gains: the shop shows all the same item."
    elif gain.is_shown:
        share = f", {gain.value / most:.0%} of what a choice without privacy gains" if most > 0.0 else ""
        text = f"A private choice gains {gain.value:.3f} stars over the same item for everybody{share}."
    else:
        text = "A private choice gains nothing over the same item for everybody that could be told from chance."
    if published < public:
        text += f" As published, over all candidates, it would lose {public - published:.3f}."
    return text


def _items(fitted: Fitted) -> list[Any]:
    """The most rated item of each genre, or the most rated ones where there are no genres. Public.

    Of five such lists for movielens-small, `auto` at epsilon 3 showed everybody the same item from three (the 15 or 40 most rated,
    15 at random); from this one it gained 0.013 stars, from 40 at random 0.069. What a choice is worth depends on what is offered.
    """
    store, catalogue = fitted.store, fitted.ratings.catalogue
    ids = store.items.ids.tolist()
    order = np.argsort(-fitted.counts, kind="stable").tolist()
    if catalogue.genres is None:
        return [ids[place] for place in order[:ITEMS]]
    flags = catalogue.genres[np.searchsorted(catalogue.ids, store.items.ids)]
    chosen: dict[Any, None] = {}  # in order, and each once
    for genre in range(flags.shape[1]):
        chosen.update({ids[place]: None for place in [place for place in order if flags[place, genre]][:1]})
    return list(chosen)


def _talk(fitted: Fitted, shop: PrivateSelection, place: Path) -> _Talk:
    store = fitted.store

    def clicks(features: NDArray[np.float64], items: tuple[str, ...]) -> NDArray[np.float64]:
        return np.asarray(CLICKS * _utilities(store, features[None, :], items)[0])

    with Device(place, store, private_scorer=clicks, limits=Limits(most_epsilon=EPSILONS[-1])) as device:
        device.rate(fitted.rated(fitted.shown))
        device.consent()
        outcomes = [simulate(device, shop) for _ in range(OFFERS)]
        statement = "; ".join(line.strip() for line in str(device.statement("server")).split("\n")[:2])
    totals = list(shop.ledger.items())
    counted, micros = sum(one.impressions for one in totals), sum(one.micros for one in totals)
    first = outcomes[0]
    offer, impression = _read(first.offer), _read(first.impression)
    titles = [_title(store, one["item"]) for one in offer["candidates"]]
    policy, public = Policy.from_json(offer["policy"]), [one["public_score"] for one in offer["candidates"]]
    shown = _title(store, impression["items"][0])
    said = (
        ("the shop", f"{len(shop.listings.items)} items {_WHICH}; bids and click rates are made up"),
        ("the offer", f"{', '.join(titles)}: choose by `{policy.rule}` at epsilon {policy.epsilon:g}"),
        ("the device", f"shows {shown}, and says so; then {OFFERS - 1} more offers"),
        ("the server", f"has counted {counted} impressions and billed {micros:,} micro-units, exactly"),
        ("when it is spent", "what does not fit the budget is shown by the public ranking, at no cost"),
    )
    guarantee = guarantee_of(policy, public)
    size, cost = len(first.impression or ""), shown_up(guarantee.epsilon, 4)
    left = f"for each {EACH} a token and the item shown, {size} bytes: epsilon {cost} each"
    released = {
        "offer": offer, "impression": impression, "settled": [str(one.settlement) for one in outcomes],
        "impressions": counted, "micros": micros,
    }  # fmt: skip
    return _Talk(said, guarantee, left, statement, released)


def _ways(fitted: Fitted, shops: list[PrivateSelection]) -> Iterator[Way]:
    """Expected utilities in closed form, from the very laws that the device draws by; errors are over users."""
    everything = shops[0].listings.priced()
    quality = _utilities(fitted.store, fitted.features(), everything.items)
    public, k = everything.scores, len(everything.items)
    same = _stars(Policy(Rule.PUBLIC, k), public, quality)

    def way(name: str, kind: Kind, policy: Policy, remark: str) -> Way:
        stars = _stars(policy, public, quality)
        figures = {STARS: Figure.of(mean(stars))}
        if kind is not Kind.NOTHING:
            figures[GAIN] = Figure.of(difference(stars, same))
        offered = public[: policy.m].tolist()
        return Way(name, kind, guarantee_of(policy, offered).epsilon, figures, remark)

    for epsilon, shop in zip(EPSILONS, shops, strict=True):
        view = shop.view()
        policy = Policy(Rule.PUBLIC, 1) if view is None else view.policy
        chosen = f"at {epsilon:g}: public" if policy.rule is Rule.PUBLIC else f"{policy.rule} over the first {policy.m}"
        yield way(AUTO, Kind.PRIVATE, policy, f"tacit's default, {chosen}")
    for epsilon in EPSILONS:
        yield way(RESPONSE, Kind.PRIVATE, Policy(Rule.RR, k, epsilon), f"as published, over all {k}")
    for epsilon in EPSILONS:
        scaled = Policy(Rule.PF, k, epsilon, bounding=Bounding.SCALED)
        yield way("pf, scaled", Kind.PRIVATE, scaled, "as published, calibrated exactly")
    yield way(PUBLIC, Kind.NOTHING, Policy(Rule.PUBLIC, k), "the same for everybody")
    yield way(GREEDY, Kind.PLAIN, Policy(Rule.GREEDY, k), "the best for each")


def _stars(policy: Policy, public: NDArray[np.float64], quality: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected of each user."""
    offered, shown = public[: policy.m].tolist(), quality[:, : policy.m]
    return np.array([probabilities(policy, row, offered) @ row for row in shown])


def _utilities(store: Store, features: NDArray[np.float64], items: tuple[str, ...]) -> NDArray[np.float64]:
    """In stars, users x items."""
    codes = np.array([store.items.code(_id(store, item)) for item in items])
    return np.asarray(store.scorer.score(features, codes), dtype=np.float64)


def _title(store: Store, item: str) -> str:
    return store.items.title(store.items.code(_id(store, item)))


def _id(store: Store, item: str) -> int | str:
    """An item's id as the store has it: a number, or a text."""
    return int(item) if store.items.ids.dtype.kind in "iu" else item


def _read(message: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if message is None else json.loads(message)
    return found
