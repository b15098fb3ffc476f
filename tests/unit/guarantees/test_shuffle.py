"""The published table, high-precision sums, and enumeration of every shuffled output on small cases."""

import itertools
import math
import time
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln

from tacit.errors import InvalidParameter
from tacit.guarantees import shuffle, shuffle_delta
from tacit.guarantees.binomial import Blanket, Decoys

TABLE = """
1e3 1 0.566  0.182  0.149  0.118  0.066
1e3 3 3      1.265  0.823  0.773  0.601
1e3 5 5      5.00   5.00   4.52   3.18
1e4 1 0.214  0.0530 0.0432 0.0343 0.0192
1e4 3 0.824  0.321  0.226  0.215  0.174
1e4 5 5      1.152  0.742  0.736  0.702
1e5 1 0.0726 0.0153 0.0124 0.0098 -
1e5 3 0.338  0.0928 0.0656 0.0625 0.0507
1e5 5 0.787  0.299  0.206  0.205  0.197
1e6 3 0.119  0.0269 0.0190 -      -
1e6 5 0.319  0.0865 0.0598 0.0594 -
1e6 8 1.003  0.444  0.304  -      -
"""  # 1e6, 8, numerical: 0.444469, confirmed below at 40 digits; a looser computation rounds to 0.445
COLUMNS = [("closed", None), ("numerical", None), ("two-point-2023", None), ("blanket", 4), ("blanket", 15)]
CELLS = [
    (float(row[1]), int(float(row[0])), method, k, text)
    for row in (line.split() for line in TABLE.strip().splitlines())
    for (method, k), text in zip(COLUMNS, row[2:], strict=True)
    if text != "-"
]


@pytest.mark.parametrize(("epsilon0", "n", "method", "k", "text"), CELLS)
def test_the_table_comes_out_to_its_printed_digits(epsilon0, n, method, k, text):
    digits = len(text.partition(".")[2])
    assert f"{shuffle(epsilon0, n, 1e-6, method, k):.{digits}f}" == text


@pytest.mark.parametrize(("n", "text"), [(10**4, "1.510"), (10**5, "0.375"), (10**6, "0.111")])
def test_the_line_at_a_smaller_delta(n, text):
    assert f"{shuffle(5.0, n, 1e-8):.3f}" == text


def test_the_published_case():
    assert shuffle(4.0, 10**5, 1e-6) == pytest.approx(0.16977, abs=5e-6)
    assert 0.16754 < shuffle(4.0, 10**5, 1e-6) < 0.17279
    assert shuffle(4.0, 10**5, 1e-6, "closed") == pytest.approx(0.5346, abs=5e-5)


def test_erlingsson_holds_in_its_regime_only():
    assert shuffle(0.4, 10**4, 1e-6, "erlingsson") == pytest.approx(12 * 0.4 * math.sqrt(math.log(1e6) / 1e4))
    assert shuffle(0.5, 10**4, 1e-6, "erlingsson") == 0.5
    assert shuffle(0.4, 999, 1e-6, "erlingsson") == 0.4
    assert shuffle(0.4, 10**6, 0.01, "erlingsson") == 0.4


def test_the_closed_form_ends_where_its_proof_does():
    edge = math.log(10**4 / (16 * math.log(2 / 1e-6)))
    assert shuffle(edge * (1 - 1e-9), 10**4, 1e-6, "closed") < edge / 2
    assert shuffle(edge * (1 + 1e-9), 10**4, 1e-6, "closed") == edge * (1 + 1e-9)


def decoy_delta(epsilon0, n, epsilon, low, high):
    """The numerical bound of 2021, term by term at 40 digits, over low <= C < high only: never above the whole sum."""
    with mpmath.workdps(40):
        e0, e = mpmath.mpf(epsilon0), mpmath.exp(mpmath.mpf(epsilon))
        pe, cover = 1 / (1 + mpmath.exp(-e0)), mpmath.exp(-e0)
        weight = mpmath.binomial(n - 1, low) * cover**low * (1 - cover) ** (n - 1 - low)
        total = mpmath.mpf(0)
        for c in range(low, high):
            coins = [0, *(math.comb(c, i) for i in range(c + 1)), 0]
            gaps = ((pe - e * (1 - pe)) * coins[i] + (1 - pe - e * pe) * coins[i + 1] for i in range(c + 2))
            total += weight * sum(gap for gap in gaps if gap > 0) / mpmath.mpf(2) ** c
            weight *= mpmath.mpf(n - 1 - c) / (c + 1) * cover / (1 - cover)
        return total


@pytest.mark.parametrize(
    ("epsilon0", "n", "epsilon", "low", "high"),
    [(8.0, 10**6, 0.444469, 230, 450), (5.0, 10**4, 1.152, 20, 130), (1.0, 50, 0.5, 0, 50), (3.0, 1000, 1.2, 10, 110)],
)
def test_the_numerical_bound_is_the_exact_sum_from_above(epsilon0, n, epsilon, low, high):
    exact = float(decoy_delta(epsilon0, n, epsilon, low, high))
    assert exact <= shuffle_delta(epsilon0, n, epsilon) <= exact * (1 + 1e-6)


def blanket_delta(epsilon0, n, epsilon, k):
    """E[(...)_+]/n over every (N0, N1, Nr)."""
    p = 1 / (math.exp(epsilon0) + k - 1)
    total = 0.0
    for n0, n1 in itertools.product(range(n + 1), repeat=2):
        for rest in range(n + 1 - n0 - n1 if k > 2 else min(1, n + 1 - n0 - n1)):
            other = n - n0 - n1 - rest
            ways = math.comb(n, n0) * math.comb(n - n0, n1) * math.comb(n - n0 - n1, rest)
            mass = ways * p ** (n0 + n1) * ((k - 2) * p) ** rest * (1 - k * p) ** other
            value = (math.exp(epsilon0) - math.exp(epsilon)) * n0 + (1 - math.exp(epsilon + epsilon0)) * n1
            total += mass * max(0.0, value + (1 - math.exp(epsilon)) * rest)
    return total / n


@pytest.mark.parametrize("k", [2, 3, 4, 15])
@pytest.mark.parametrize(("epsilon0", "n", "epsilon"), [(1.0, 7, 0.7), (0.3, 30, 0.02), (3.0, 40, 1.0), (2.0, 25, 0.0)])
def test_the_blanket_bound_is_its_expectation_from_above(k, epsilon0, n, epsilon):
    exact = blanket_delta(epsilon0, n, epsilon, k)
    assert exact * (1 - 1e-12) <= shuffle_delta(epsilon0, n, epsilon, "blanket", k) <= exact * (1 + 1e-6) + 1e-15


def precise_blanket(epsilon0, n, epsilon, k):
    """E[(...)_+]/n over every (N0, N1, Nr), at 40 digits."""
    with mpmath.workdps(40):
        e0, e = mpmath.exp(mpmath.mpf(epsilon0)), mpmath.exp(mpmath.mpf(epsilon))
        p, total = 1 / (e0 + k - 1), mpmath.mpf(0)
        for n0, n1 in itertools.product(range(n + 1), repeat=2):
            for rest in range(n + 1 - n0 - n1 if k > 2 else min(1, n + 1 - n0 - n1)):
                value = (e0 - e) * n0 + (1 - e * e0) * n1 + (1 - e) * rest
                ways = math.comb(n, n0) * math.comb(n - n0, n1) * math.comb(n - n0 - n1, rest)
                chance = p ** (n0 + n1) * ((k - 2) * p) ** rest * (1 - k * p) ** (n - n0 - n1 - rest)
                total += max(0, value) * ways * chance
        return total / n


class TestWhatFloatsMayLose:
    """So few reports that no count is left out: the bound then lies above the sum at 40 digits by its margins alone."""

    CASES = tuple(itertools.product((0.3, 1.0, 3.0), (2, 7, 16), (0.1, 0.5, 0.9)))

    def excess(self, exact, found):
        with mpmath.workdps(40):
            return float(mpmath.mpf(found) / exact - 1)

    @pytest.mark.parametrize(("epsilon0", "n", "share"), CASES)
    def test_is_added_to_the_numerical_bound(self, epsilon0, n, share):
        exact = decoy_delta(epsilon0, n, share * epsilon0, 0, n)
        # 1e-9 for the sum of weights, and 1e-11 for the difference of two tails in each term
        assert 1.0099e-9 < self.excess(exact, shuffle_delta(epsilon0, n, share * epsilon0)) < 1e-8

    @pytest.mark.parametrize("k", [2, 4])
    @pytest.mark.parametrize(("epsilon0", "n", "share"), CASES)
    def test_is_added_to_the_blanket_bound(self, epsilon0, n, share, k):
        exact = precise_blanket(epsilon0, n, share * epsilon0, k)
        # 1e-9 as above, and 1e-10 for the difference of a mass and a tail in each term
        assert 1.0999e-9 < self.excess(exact, shuffle_delta(epsilon0, n, share * epsilon0, "blanket", k)) < 1e-8

    def test_is_something(self, monkeypatch):
        """Without the margins the sum in floats is below the exact one, in some of these cases of either bound."""
        monkeypatch.setattr("tacit.guarantees.binomial._FLOATS", 0.0)
        below = [
            self.excess(decoy_delta(e0, n, share * e0, 0, n), shuffle_delta(e0, n, share * e0)) < 0
            for e0, n, share in self.CASES
        ]
        blanket = [
            self.excess(precise_blanket(e0, n, share * e0, 4), shuffle_delta(e0, n, share * e0, "blanket", 4)) < 0
            for e0, n, share in self.CASES
        ]
        assert any(below)
        assert any(blanket)


def test_the_mass_that_is_left_out_is_added():
    """Windows so narrow that what lies outside of them is most of delta: few decoys, and reports that stand alone."""
    exact = float(decoy_delta(3.0, 400, 2.9, 0, 60))
    narrow = Decoys(3.0, 400, math.exp(-3.0), 2.0)
    inside = narrow.delta(2.9) - narrow.left_out
    assert inside < 0.6 * exact < exact <= narrow.delta(2.9)
    assert narrow.left_out == 2 * math.exp(-2.0)  # on both sides
    few = Blanket(1.0, 40, 4, 4.0)
    outside = (math.e - math.exp(0.9)) * (few.left_out + 3 * math.exp(-4.0)) + 2 * math.expm1(0.9) * math.exp(-4.0)
    assert blanket_delta(1.0, 40, 0.9, 4) + outside * (1 - 1e-9) <= few.delta(0.9) < 1.0
    assert few.left_out > 0.0


def shuffled(rows):
    """The law of the histogram of independent reports, one row of probabilities for each."""
    k = len(rows[0])
    laws = {(0,) * k: 1.0}
    for row in rows:
        grown: Counter = Counter()
        for counts, mass in laws.items():
            for item, chance in enumerate(row):
                grown[(*counts[:item], counts[item] + 1, *counts[item + 1 :])] += mass * chance
        laws = grown
    return laws


def true_delta(randomizer, n, epsilon):
    """The largest hockey-stick divergence over both directions, all pairs of inputs and all inputs of the others."""
    inputs, worst = range(len(randomizer)), 0.0
    for others in itertools.combinations_with_replacement(inputs, n - 1):
        rows = [randomizer[x] for x in others]
        laws = [shuffled([*rows, randomizer[x]]) for x in inputs]
        for p, q in itertools.permutations(laws, 2):
            worst = max(worst, sum(max(0.0, mass - math.exp(epsilon) * q.get(out, 0.0)) for out, mass in p.items()))
    return worst


def response(k, epsilon0):
    p = 1 / (math.exp(epsilon0) + k - 1)
    return [[math.exp(epsilon0) * p if i == x else p for i in range(k)] for x in range(k)]


SMALL = [
    (k, n, epsilon0, share * epsilon0)
    for k, n in ((2, 6), (3, 5), (4, 4))
    for epsilon0 in (0.5, 1.0, 2.0)
    for share in (0, 0.25, 0.5, 0.6, 0.7, 0.9)
]


@pytest.mark.parametrize(("k", "n", "epsilon0", "epsilon"), SMALL)
def test_no_bound_is_below_the_truth(k, n, epsilon0, epsilon):
    truth = true_delta(response(k, epsilon0), n, epsilon)
    assert shuffle_delta(epsilon0, n, epsilon, "blanket", k) >= truth - 1e-15
    assert shuffle_delta(epsilon0, n, epsilon) >= truth - 1e-15
    assert shuffle_delta(epsilon0, n, epsilon, "two-point-2023") >= truth - 1e-15


def test_the_small_cases_are_fifty_four():
    assert len(SMALL) == 54


class TestTheCounterexample:
    """k=4, n=7, epsilon0=1, epsilon=0.7: two counts alone understate, because the user may fall among the other items."""

    def test_the_truth_and_the_two_bounds(self):
        rows = response(4, 1.0)
        first, second = (shuffled([*[rows[0]] * 6, rows[x]]) for x in (0, 1))  # the worst of all inputs of the others
        truth = sum(max(0.0, mass - math.exp(0.7) * second[out]) for out, mass in first.items())
        assert truth == pytest.approx(0.003606, abs=1e-6)
        assert shuffle_delta(1.0, 7, 0.7, "blanket", 4) == pytest.approx(0.004796, abs=1e-6)
        assert shuffle_delta(1.0, 7, 0.7) > 0.003606

    def test_the_form_with_two_counts_would_be_refuted(self):
        assert two_counts(4, 7, 1.0, 0.7) == pytest.approx(0.002097, abs=1e-6)
        assert two_counts(4, 7, 1.0, 0.7) < 0.003606 <= shuffle_delta(1.0, 7, 0.7, "blanket", 4)

    def test_it_is_refuted_in_many_of_the_small_cases(self):
        """The bounds that are used are refuted in none of them (above)."""
        small = [case for case in SMALL if case[0] > 2]
        below = [two_counts(*case) < true_delta(response(case[0], case[2]), case[1], case[3]) for case in small]
        assert sum(below) >= 10


def two_counts(k, n, epsilon0, epsilon):
    """The form that forgets that the user's own report may fall among the other k - 2 items."""
    p = 1 / (math.exp(epsilon0) + k - 1)
    chances = (math.exp(epsilon0) * p, p)
    laws = [Counter(), Counter()]
    for c in range(n):
        weight = math.comb(n - 1, c) * (2 * p) ** c * (1 - 2 * p) ** (n - 1 - c)
        for a in range(c + 1):
            mass = weight * math.comb(c, a) / 2**c
            for law, (own, other) in zip(laws, (chances, chances[::-1]), strict=True):
                law[(a + 1, c - a)] += mass * own
                law[(a, c - a + 1)] += mass * other
                law[(a, c - a)] += mass * (1 - own - other)
    return sum(max(0.0, mass - math.exp(epsilon) * laws[1][out]) for out, mass in laws[0].items())


def test_the_general_bound_covers_randomisers_other_than_randomised_response():
    rng = np.random.default_rng(3)
    for _ in range(12):
        base = rng.dirichlet(np.ones(3))
        rows = [base * np.exp(rng.choice([0.0, 0.5, 1.0], 3)) for _ in range(2)]
        rows = [list(row / row.sum()) for row in rows]
        epsilon0 = max(abs(math.log(p / q)) for p, q in zip(*rows, strict=True))
        if epsilon0 < 1e-3:
            continue
        for share in (0.0, 0.3, 0.6):
            truth = true_delta(rows, 5, share * epsilon0)
            assert shuffle_delta(epsilon0, 5, share * epsilon0) >= truth - 1e-15


def test_the_epsilon_returned_meets_its_delta_and_a_little_less_does_not():
    for method, k in (("numerical", None), ("blanket", 4), ("two-point-2023", None)):
        found = shuffle(2.0, 5000, 1e-6, method, k)
        assert shuffle_delta(2.0, 5000, found, method, k) <= 1e-6
        assert shuffle_delta(2.0, 5000, found * (1 - 1e-5), method, k) > 1e-6


def test_closed_forms_have_a_delta_too():
    for method, epsilon0 in (("closed", 1.0), ("erlingsson", 0.4)):
        epsilon = shuffle(epsilon0, 10**5, 1e-6, method)
        assert shuffle_delta(epsilon0, 10**5, epsilon, method) == pytest.approx(1e-6, rel=1e-6)
        assert shuffle_delta(epsilon0, 10**5, epsilon / 100, method) == 1.0


@pytest.mark.parametrize("method", ["numerical", "closed", "erlingsson", "two-point-2023", "blanket"])
@pytest.mark.parametrize("epsilon0", [1e-17, 1e-9, 0.3, 6.0, 50.0, 800.0])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_nothing_exceeds_epsilon0_and_extremes_end(method, epsilon0, n):
    k = 5 if method == "blanket" else None
    assert 0.0 <= shuffle(epsilon0, n, 1e-6, method, k) <= epsilon0
    assert shuffle_delta(epsilon0, n, epsilon0, method, k) == 0.0
    assert 0.0 <= shuffle_delta(epsilon0, n, epsilon0 / 2, method, k) <= 1.0


def test_without_cover_nothing_is_gained():
    assert shuffle(50.0, 10**6, 1e-6) == pytest.approx(50.0, abs=1e-4)
    assert shuffle(800.0, 10**6, 1e-6) == 800.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_epsilons_are_checked(bad):
    with pytest.raises(InvalidParameter, match="epsilon0 must be a finite number above 0"):
        shuffle(bad, 1000, 1e-6)
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        shuffle_delta(1.0, 1000, bad or -1.0)


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"n": 0}, "n must be a whole number from 1"),
        ({"n": 10.5}, "n must be a whole number from 1"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1"),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1"),
        ({"method": "blanket"}, "needs k"),
        ({"method": "blanket", "k": 1}, "k must be a whole number from 2"),
        ({"k": 4}, "only the blanket bound depends on k"),
        ({"method": "two-counts"}, "`method` must be one of"),
    ],
)
def test_parameters_are_checked(change, allowed):
    with pytest.raises(InvalidParameter, match=allowed):
        shuffle(**{"epsilon0": 1.0, "n": 1000, "delta": 1e-6, **change})


class TestWhatThePaperLeavesOpen:
    """Cases that decide a rule of the batch: who counts as cover, and what the informative bound is worth."""

    def test_reports_without_noise_give_no_cover(self):
        """k=4, epsilon0=1, epsilon=0.5: six reports, three of which name the publicly best item whatever happens."""
        rows, fixed = response(4, 1.0), [1.0, 0.0, 0.0, 0.0]
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(4), 2):
            laws = [shuffled([fixed] * 3 + [rows[x] for x in others] + [rows[own]]) for own in range(4)]
            for p, q in itertools.permutations(laws, 2):
                worst = max(worst, sum(max(0.0, mass - math.exp(0.5) * q.get(out, 0.0)) for out, mass in p.items()))
        assert worst == pytest.approx(0.070, abs=5e-4)
        assert shuffle_delta(1.0, 6, 0.5, "blanket", 4) == pytest.approx(0.027, abs=5e-4)  # all six counted: false
        assert shuffle_delta(1.0, 3, 0.5, "blanket", 4) == pytest.approx(0.074, abs=5e-4)
        assert shuffle_delta(1.0, 6, 0.5, "blanket", 4) < worst <= shuffle_delta(1.0, 3, 0.5, "blanket", 4)

    def test_a_report_by_another_randomiser_may_give_less_cover(self):
        """Two of four users answer at epsilon0 = 4 and not 1: the bound for four equal reports is then too low."""
        own, loud = response(3, 1.0), response(3, 4.0)
        worst = 0.0
        for others in itertools.product(range(3), repeat=3):
            laws = [shuffled([own[x], loud[others[0]], loud[others[1]], own[others[2]]]) for x in range(3)]
            for p, q in itertools.permutations(laws, 2):
                worst = max(worst, sum(max(0.0, mass - math.exp(0.6) * q.get(out, 0.0)) for out, mass in p.items()))
        assert worst > true_delta(own, 4, 0.6)
        assert worst <= shuffle_delta(1.0, 2, 0.6, "blanket", 3)

    def test_the_two_point_bound_is_the_blanket_of_two_items_and_above_the_truth(self):
        two_point = shuffle_delta(1.0, 7, 0.5, "two-point-2023")
        assert two_point == pytest.approx(0.0498, abs=5e-5)
        assert two_point == pytest.approx(shuffle_delta(1.0, 7, 0.5, "blanket", 2), rel=1e-6)
        assert true_delta(response(2, 1.0), 7, 0.5) == pytest.approx(0.0439, abs=5e-5)


def plain_delta(epsilon0, n, epsilon, cover):
    """The hockey-stick divergence of the two counts, cell by cell in logarithms: no tails, no thresholds."""
    cs = np.arange(n)
    logs = _log_binomial(n - 1, cs, cover)
    cs, weights = cs[logs > -45.0], np.exp(logs[logs > -45.0])
    pe = 1.0 / (1.0 + math.exp(-epsilon0))
    total = 0.0
    for c, weight in zip(cs, weights, strict=True):
        coins = np.exp(_log_binomial(int(c), np.arange(c + 1), 0.5))
        first, second = np.append(0.0, coins), np.append(coins, 0.0)  # D = 1 adds one to the first count
        p, q = pe * first + (1 - pe) * second, (1 - pe) * first + pe * second
        total += weight * np.maximum(0.0, p - math.exp(epsilon) * q).sum()
    return total


def _log_binomial(n, at, p):
    whole = gammaln(n + 1.0) - gammaln(at + 1.0) - gammaln(n - at + 1.0)
    return whole + at * math.log(p) + (n - at) * math.log1p(-p)


@pytest.mark.parametrize(("n", "epsilon0"), [(1000, 1.0), (1000, 3.0), (10_000, 1.0), (10_000, 3.0), (10_000, 5.0)])
def test_the_cells_of_the_table_are_within_one_percent_of_the_plain_sum_and_never_below_it(n, epsilon0):
    found = shuffle(epsilon0, n, 1e-6)
    assert plain_delta(epsilon0, n, found, math.exp(-epsilon0)) <= 1e-6
    assert plain_delta(epsilon0, n, 0.99 * found, math.exp(-epsilon0)) > 1e-6


@pytest.mark.parametrize(
    ("epsilon0", "method", "k"), [(1.0, "numerical", None), (8.0, "numerical", None), (5.0, "blanket", 4)]
)
def test_a_million_reports_take_less_than_a_second(epsilon0, method, k):
    delta = 1e-6 * (1 + 1e-9)  # not what another test has left in the cache
    start = time.process_time()
    shuffle(epsilon0, 10**6, delta, method, k)
    assert time.process_time() - start < 1.0
