"""Multi-selection: one signal in a period, sent again for every answer."""

from tacit.curator.fit import RANK
from tacit.device import eta_for
from tacit.evaluation.advice.recipe import FIT, IMPORT, Recipe, digits
from tacit.evaluation.advice.situation import Situation, Wants
from tacit.guarantees import anywhere
from tacit.ledger import Budget, Period
from tacit.mechanisms import VectorLaplace
from tacit.messages.multi_selection import GRID_BITS
from tacit.models.features import GenreProfile

BASELINE = (
    "`ig-sig` answers without any signal (epsilon 0): the server offers items that suit its look-alikes, and the device picks "
    'among them at home. `tacit.server.MultiSelection(store, "ig-sig")`.'
)
PAGE = "multi-selection"
_K = 5
_GENRES = 2 * 19  # liked and disliked shares of the genres of MovieLens; it moves no more than the rounding
_FACTORS = 2.0 * RANK  # the largest L1 distance between two rows of factors, each from -1 to 1
_PYTHON = """\
import tacit

ratings = tacit.data.load("movielens-small")        # of people who consent to train the model and to be look-alikes
store = tacit.fit(ratings, epochs=2)
server = tacit.server.MultiSelection(store{algorithm})
budget = tacit.Budget(epsilon={epsilon}, per="month")
device = tacit.Device("me.db", store, budget=budget)
device.rate({{"Toy Story (1995)": 5, "Heat (1995)": 3, "Fargo (1996)": 4.5}})
signal = device.ask(eta=tacit.device.eta_for(budget))   # the same bytes for every answer of the month
item = device.pick(server.answer(signal, k={k}))
print(device.titles(item), signal.guarantee)
"""


def recipe(at: Situation) -> Recipe:
    """One signal for all of the period's answers, at the smallest eta that the budget allows."""
    budget = Budget(at.epsilon, per=Period.MONTH)
    eta, k, is_slate = eta_for(budget), min(_K, at.items), at.wants is Wants.SLATE
    guarantee = VectorLaplace(_GENRES, eta, grid_bits=GRID_BITS).guarantee
    algorithm = "dpp" if is_slate else "exact"
    reasons = [
        f"One signal is drawn in a period and sent again: {_answers(at.releases)}. A fresh one for each would "
        "have to share the epsilon, and noise that is drawn anew averages out."
    ]
    if is_slate:
        reasons.append(
            "The whole slate is shown, so all of it should be good and differ: `dpp`. For a single pick `exact` is better."
        )
    genres, factors = (anywhere(guarantee, times) for times in (GenreProfile.diameter, _FACTORS))
    warnings = [
        f"Epsilon counts per unit of L1 distance between features here. Between any two users at all it is {factors.epsilon:.4g} "
        f"with the {RANK} factors that the command fits ({_FACTORS:g} times as much), and {genres.epsilon:.4g} where features "
        f"are made of genres ({GenreProfile.diameter:g} times; `--model network`, as in Python): if {digits(at.epsilon)} is to "
        f"hold for that, ask with {digits(at.epsilon / _FACTORS)} or {digits(at.epsilon / GenreProfile.diameter)}.",
        "What was measured are features made of genres, not factors.",
        "The people who train the model and serve as look-alikes are not protected by this: they consent, are made up, or have a "
        "release of their own (`tacit.curator.PrivateLookAlikes`).",
        "What is rated during the period shows in the next one's signal only.",
    ]
    if is_slate:
        warnings.append("A page that is the same for everybody needs no signal: it is the baseline.")
    serve = "TACIT_SERVE_ALGORITHM=dpp tacit serve" if is_slate else "tacit serve"
    return Recipe(
        mode=f"{algorithm}, k={k}, eta={float(eta):.6g}, one signal a period",
        each=guarantee,
        total=guarantee,
        read_at=guarantee.epsilon,
        users=at.users,
        commands=(IMPORT, FIT, serve),
        python=_PYTHON.format(algorithm=', "dpp"' if is_slate else "", epsilon=digits(at.epsilon), k=k),
        reasons=tuple(reasons),
        warnings=tuple(warnings),
        is_measured=not is_slate,
    )


def _answers(count: int) -> str:
    return "a second answer would cost nothing" if count == 1 else f"{count:,} answers cost what one does"
