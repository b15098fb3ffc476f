"""Private selection: every impression is a release, and the device's ledger adds them up plainly."""

from tacit.device.private_selection import LEAST_EPSILON
from tacit.errors import InvalidParameter
from tacit.evaluation.advice.recipe import FIT, IMPORT, Recipe, digits
from tacit.evaluation.advice.situation import Situation
from tacit.guarantees import ALL_CONDITIONS, Guarantee, across_batches, amplify, repeat
from tacit.ledger import Accounting
from tacit.ledger.budgets import MEASURES, shown, units_down
from tacit.mechanisms import TopResponse
from tacit.messages.private_selection import MOST_CANDIDATES, MOST_EPSILON

BASELINE = "The policy `public` shows everybody the publicly best item (epsilon 0); the server counts and bills it all the same."
PAGE = "private-selection"
_LEAST_REPORTS = 1000  # below it `amplify` claims nothing
_MOST_BATCHES = 1000
_MOST_REPORTS = 10**6  # more would cost less still, and take long to work out
_PYTHON = """\
import tacit
from tacit.device import Limits

ratings = tacit.data.load("movielens-small")
store = tacit.fit(ratings, model="factors")                       # a model, and people who serve as the public prior
films = ["Pulp Fiction (1994)", "Forrest Gump (1994)", "Fargo (1996)", "Toy Story (1995)", "Heat (1995)", "Alien (1979)"]
listings, people = tacit.server.listings_of(store, films)         # or Listings(items, bids, click rates), with prices
shop = tacit.server.PrivateSelection(listings, "shop.db", spread=people, epsilon={each})
limits = Limits(budget=tacit.Budget(epsilon={epsilon}, per="day"), most_epsilon={each})
device = tacit.Device("me.db", store, scorer=store.scorer, limits=limits)
device.rate({{"Twelve Monkeys (a.k.a. 12 Monkeys) (1995)": 5, "Casino (1995)": 2}})
device.consent()
choice = device.choose(shop.offer(device.offer_request()))
print(choice.item, shop.bill(device.shown(choice)))               # one impression, exactly
print(device.statement("server"))
"""


def recipe(at: Situation) -> Recipe:
    """The epsilon that each impression may cost where charges add up, as a device's ledger counts."""
    digits_of_ledger = MEASURES[Accounting.BASIC][1]
    share = float(shown(units_down(at.epsilon, digits_of_ledger) // at.releases, digits_of_ledger))
    if share < LEAST_EPSILON:
        raise InvalidParameter(
            f"each of {at.releases:,} impressions could cost {share:.3g}, and a device answers publicly what costs less than "
            f"{LEAST_EPSILON:g}. Ask for fewer, or raise epsilon."
        )
    each = min(share, MOST_EPSILON)
    guarantee = TopResponse(2, 1, each).guarantee
    total = repeat(guarantee, at.releases)
    chances = ", ".join(f"{_chance(m, each):.0%} of {m}" for m in (2, 5, 15) if m <= at.items)
    warnings = [
        "What the user does afterwards is not covered: a click is reported with noise of its own, and charged.",
        "A budget for a day bounds a day and not a life: set `Limits(lifetime=...)` if that matters.",
    ]
    if share > MOST_EPSILON:
        warnings.append(
            f"No more than {MOST_EPSILON:g} is spent on one choice: beyond that nothing worth its name is promised."
        )
    if at.items > MOST_CANDIDATES:
        warnings.append(
            f"At most {MOST_CANDIDATES:,} listings take part in one auction: name a public part of them with `among=`."
        )
    return Recipe(
        mode=f"auto, epsilon={digits(each)} for each impression",
        each=guarantee,
        total=total,
        read_at=each,
        users=at.users,
        commands=(
            IMPORT,
            FIT,
            f"TACIT_SERVE_EPSILON={digits(each)} tacit serve",
        ),
        python=_PYTHON.format(epsilon=digits(at.epsilon), each=digits(each)),
        reasons=(
            "Charges of a device add up plainly, so each impression has its share. `auto` offers the m publicly best for a private "
            f"choice, m chosen by the server on public data; the device's own best is then shown with a chance of {chances}.",
            *_shuffled(guarantee, at),
        ),
        warnings=tuple(warnings),
    )


def _chance(m: int, epsilon: float) -> float:
    """Of the privately best of m to be shown."""
    return float(TopResponse(m, 1, epsilon).pmf([1.0] + [0.0] * (m - 1))[0])


def _shuffled(each: Guarantee, at: Situation) -> tuple[str, ...]:
    """What shuffling could claim, beside what holds without it."""
    if at.users < _LEAST_REPORTS or at.delta == 0.0:
        return ()
    reports = min(at.users, _MOST_REPORTS)
    batch = amplify(each, n=reports, delta=at.delta / at.releases, conditions=ALL_CONDITIONS)
    if batch.epsilon >= each.epsilon:
        return ()
    many = ""
    if 1 < at.releases <= _MOST_BATCHES:
        many = f", and all {at.releases:,} of hers {across_batches([batch] * at.releases).epsilon:.3g},"
    return (
        f"Not counted on here: through a shuffler that does not collude, one report of each of {reports:,} users would cost "
        f"{batch.epsilon:.3g}{many} against whoever reads the batches (delta {digits(at.delta)}), instead of {each.epsilon:.3g}. "
        "Five conditions have to hold for that: docs/proofs/shuffle-amplification.md.",
    )
