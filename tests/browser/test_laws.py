"""What the delegate draws in a real browser follows the laws that the guarantees are proved for; and these tests would see if not.

Thresholds and teeth as everywhere in this house: a test is failed at p <= 1e-9, with fresh noise each time and no second try.
"""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest

from tacit.audit.distribution import THRESHOLD, lattice_p_value, p_value
from tacit.mechanisms.samplers.integers import discrete_laplace_cdf as cdf
from tacit.messages.multi_selection import Reply
from tacit.messages.store import Store
from tests.browser.conftest import Visiting
from tests.browser.private_things import Private
from tests.browser.screen import Screen

RATINGS = {"Alien (1979)": 5, "Toy Story (1995)": 4, "Heat (1995)": 1}
ETAS = (Fraction(1, 10), Fraction(3, 10))  # of one the numerator is 1, of the other it counts
DAYS = 160  # a signal each, for each eta: 6,080 draws
CELLS = 20

# A delegate of its own beside the page's, with a clock that goes a day ahead after each signal.
TO_ASK = """
async ({ ratings, days, eta }) => {
    const { Delegate } = await import("/web/delegate.js");
    let now = Date.now();
    const budget = { epsilon: 1000, per: "month" };
    const delegate = await Delegate.open({ place: `law ${eta}`, budget, refresh: "day", clock: () => now });
    ratings.forEach(([item, value]) => delegate.rate(item, value));
    const drawn = [];
    for (let day = 0; day < days; day += 1, now += 86_400_000) {
        const { signal, from } = await delegate.ask(eta);
        if (from !== "fresh") throw new Error(from);
        drawn.push(Array.from(signal.steps));
    }
    delegate.close();
    return drawn;
}
"""

EPSILON, M, CHOICES = 1.0, 4, 600
TO_CHOOSE = """
async ({ ratings, items, epsilon, choices }) => {
    const { Delegate, offerFromJSON } = await import("/web/delegate.js");
    const budget = { epsilon: 20, per: "month" };
    const limits = { epsilon, budget: { epsilon: 1000, per: "day" } };
    const delegate = await Delegate.open({ place: "choices", budget, limits });
    ratings.forEach(([item, value]) => delegate.rate(item, value));
    await delegate.consent();
    await delegate.offer(); // with the first one the scorer comes
    const policy = { version: 1, id: "rr", epsilon, m: items.length, d: 1, slots: 1, bounding: "none", width: null, floors: null };
    const candidates = items.map((item) => ({ item, bid: 1_000_000, public_score: 1 }));
    const expires = Math.floor(Date.now() / 1000) + 600;
    const choose = async (_, place) => {
        const token = place.toString(16).padStart(32, "0");
        const choice = await delegate.choose(offerFromJSON({ version: 1, token, expires, policy, candidates, batch: null }));
        return choice.items[0];
    };
    const shown = await Promise.all(Array.from({ length: choices }, choose)); // one by one, each waits a tenth of a second
    const { spent } = await delegate.selectionStatement();
    delegate.close();
    return { shown, spent };
}
"""

TO_SELECT = """
async ({ scores, epsilon, draws }) => {
    const { select, systemNoise } = await import("/web/delegate.js");
    const m = scores.length;
    const policy = { rule: "rr", m, epsilon, d: 1, slots: 1, bounding: "none", width: null, floors: null };
    const counts = scores.map(() => 0);
    for (let draw = 0; draw < draws; draw += 1) counts[select(policy, scores, scores.map(() => 0), systemNoise)[0]] += 1;
    return counts;
}
"""


@pytest.fixture(scope="module")
def screen(visiting_once: Visiting) -> Screen:
    return visiting_once().open()


@pytest.fixture(scope="module")
def person(store: Store) -> Private:
    return Private(RATINGS, store)


@pytest.fixture(scope="module")
def ratings(person: Private) -> list[tuple[int, int]]:
    return list(zip(person.ids, person.ratings.values(), strict=True))


@pytest.fixture(scope="module", params=ETAS, ids=str)
def eta(request: pytest.FixtureRequest) -> Fraction:
    found: Fraction = request.param
    return found


@pytest.fixture(scope="module")
def scale(eta: Fraction) -> Fraction:
    """In steps of the grid."""
    return eta * (1 << 20)


@pytest.fixture(scope="module")
def noise(screen: Screen, person: Private, ratings: list[tuple[int, int]], eta: Fraction) -> NDArray[np.int64]:
    """What was added to the true features."""
    drawn = screen.page.evaluate(TO_ASK, {"ratings": ratings, "days": DAYS, "eta": str(eta)})
    return np.array(drawn, dtype=np.int64) - np.array(person.steps)


def test_the_noise_of_signals_is_discrete_laplace_about_the_true_features(
    noise: NDArray[np.int64], scale: Fraction
) -> None:
    assert noise.shape == (DAYS, 38)
    assert lattice_p_value(noise.ravel(), lambda n: cdf(n, scale), cells=CELLS) > THRESHOLD


@pytest.mark.parametrize("factor", [Fraction(6, 5), Fraction(5, 6)])
def test_noise_of_a_scale_that_is_a_fifth_off_would_be_seen(
    noise: NDArray[np.int64], scale: Fraction, factor: Fraction
) -> None:
    assert lattice_p_value(noise.ravel(), lambda n: cdf(n, scale * factor), cells=CELLS) < THRESHOLD


def test_coordinates_and_days_have_noise_of_their_own(noise: NDArray[np.int64]) -> None:
    """No coordinate and no day repeats another: ranks are uncorrelated, to six standard deviations."""
    signs = np.sign(noise).astype(np.float64)
    across = signs[:, :-1] * signs[:, 1:]
    along = signs[:-1] * signs[1:]
    for products in (across, along):
        assert abs(products.sum()) < 6.0 * math.sqrt(products.size)
    assert len(np.unique(noise)) > 0.95 * noise.size


def test_a_delegate_shows_the_best_as_often_as_stated(
    screen: Screen, api: httpx.Client, person: Private, ratings: list[tuple[int, int]]
) -> None:
    answer = api.get("/v1/private-selection/scorer", headers={"Accept": "application/vnd.tacit"}).raise_for_status()
    scorer = Reply.from_bytes(answer.content)
    quality = dict(zip(map(str, scorer.items), scorer.model.estimate(person.features), strict=True))  # type: ignore[union-attr]
    unlike = {round(value, 6): item for item, value in quality.items()}  # films of the same genres are worth the same
    items = [unlike[value] for value in sorted(unlike)[:M]]  # the best of them is offered last
    given = {"ratings": ratings, "items": items, "epsilon": EPSILON, "choices": CHOICES}
    found: dict[str, Any] = screen.page.evaluate(TO_CHOOSE, given)
    assert found["spent"] == str(CHOICES)  # each is charged
    shown = Counter(found["shown"])
    best = shown[items[-1]]
    assert binomtest(best, CHOICES, chance_of_best(EPSILON, M)).pvalue > THRESHOLD
    others = [shown[item] for item in items[:-1]]
    assert p_value(np.array(others), np.full(M - 1, 1.0 / (M - 1))) > THRESHOLD
    for wrong in (0.0, 2.0):
        assert binomtest(best, CHOICES, chance_of_best(wrong, M)).pvalue < THRESHOLD


def test_the_exported_selection_has_its_law_and_epsilon_off_by_a_fifth_would_be_seen(screen: Screen) -> None:
    scores = [0.1, 0.9, 0.3, 0.2, 0.5, 0.8, 0.4, 0.6]
    counts = np.array(screen.page.evaluate(TO_SELECT, {"scores": scores, "epsilon": EPSILON, "draws": 30_000}))
    assert p_value(counts, law_of(EPSILON, scores)) > THRESHOLD
    for factor in (1.2, 1 / 1.2):
        assert p_value(counts, law_of(EPSILON * factor, scores)) < THRESHOLD


def chance_of_best(epsilon: float, m: int) -> float:
    return math.exp(epsilon) / (math.exp(epsilon) + m - 1)


def law_of(epsilon: float, scores: list[float]) -> NDArray[np.float64]:
    weights = np.where(np.array(scores) == max(scores), math.exp(epsilon), 1.0)
    return np.asarray(weights / weights.sum())
