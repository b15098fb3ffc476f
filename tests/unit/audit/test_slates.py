"""The audit of slates: the search reaches the theorems and never exceeds them, and every step of it can fail."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tacit.audit import check, distribution, domains, exact, minors, slate_forms, slate_search
from tacit.audit.cases import slate_draws, slate_searches
from tacit.audit.cases.kernels import kernel_exactly
from tacit.audit.slate_pairs import Pair, Setting, lost, subsets
from tacit.audit.twins import kernels, tempered
from tacit.audit.twins import slates as twins
from tacit.audit.twins.mislabelled import with_less_noise
from tacit.guarantees import Relation
from tacit.mechanisms import GaussianKernel, NaturalSlate, NaturalSubset, ReplayedNoise, TemperedSlate
from tacit.mechanisms.slates import (
    natural_epsilon,
    published_epsilon,
    subset_epsilon,
)
from tests.unit.mechanisms.slate_bounds import frobenius_epsilon, spectral_epsilon, trace_epsilon

BOTH = (Relation.ADD_REMOVE, Relation.REPLACE)
PAIRS = 400


def random_kernels(rng: np.random.Generator, items: int, count: int) -> np.ndarray:
    """Kernels of at least the identity, from flat to steep."""
    rows = rng.normal(size=(count, items, items)) * np.exp(rng.normal(size=(count, items, 1)) * 1.5)
    return rows @ rows.transpose(0, 2, 1) + np.eye(items)


def log_laws(kernels: np.ndarray, k: int | None) -> np.ndarray:
    logs = minors.log_minors(kernels)
    if k is not None:
        logs = logs[..., minors.sizes(kernels.shape[-1]) == k]
    return logs - np.logaddexp.reduce(logs, axis=-1, keepdims=True)


# All minors at once


def test_log_minors_are_the_logarithms_of_all_determinants(rng: np.random.Generator) -> None:
    kernels = random_kernels(rng, 5, 20)
    found = minors.log_minors(kernels)
    for subset in range(32):
        items = [item for item in range(5) if subset >> item & 1]
        expected = np.linalg.slogdet(kernels[:, items][:, :, items])[1] if items else np.zeros(20)
        assert found[:, subset] == pytest.approx(expected, abs=1e-10)


def test_the_gradient_of_log_minors_is_the_sum_of_inverses(rng: np.random.Generator) -> None:
    kernels, weights = random_kernels(rng, 4, 5), rng.normal(size=(5, 16))
    expected = np.zeros(kernels.shape)
    for subset in range(1, 16):
        items = np.array([item for item in range(4) if subset >> item & 1])
        inverse = np.linalg.inv(kernels[:, items[:, None], items])
        expected[:, items[:, None], items] += weights[:, subset, None, None] * inverse
    assert minors.pulled_back(kernels, weights) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_minors_in_fractions_are_exact_also_where_a_kernel_is_singular() -> None:
    kernel = [[Fraction(x) for x in row] for row in ((2, 1, 0), (1, 2, 0), (0, 0, 1))]
    assert minors.whole_minors(kernel) == [1, 2, 2, 3, 1, 2, 2, 3]
    singular = [[Fraction(x) for x in row] for row in ((0, 0, 0), (0, 1, 1), (0, 1, 1))]
    assert minors.whole_minors(singular) == [1, 0, 1, 0, 1, 0, 0, 0]


# What one pair loses, in fractions


def test_known_pairs_lose_what_is_known() -> None:
    rows = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 0, 0]])
    added = Pair(Setting(4, 2, 1.0, Relation.ADD_REMOVE, 0.5), rows, np.zeros(4), np.eye(4)[3])
    assert lost(added).epsilon == pytest.approx(0.652325, abs=5e-7)  # .18 / .09375
    replaced = Pair(Setting(4, 2, 1.0, Relation.REPLACE, 0.5), np.zeros((4, 4)), np.eye(4)[1], np.eye(4)[0])
    assert lost(replaced).ratio == 3
    assert lost(replaced).spread == 9
    assert lost(replaced, [0b0011, 0b1100]).ratio == 1  # both have one of the two, or none


def test_a_user_is_cut_to_her_bound_in_fractions() -> None:
    user = np.array([math.sqrt(0.5) * 1.001, math.sqrt(0.5), 0.0])
    setting = Setting(3, 1, 1.0, Relation.ADD_REMOVE)
    _, kernel = Pair(setting, np.zeros((3, 3)), np.zeros(3), user).kernels()
    assert 0.999999 < sum(kernel[i][i] - 1 for i in range(3)) <= 1


# The search


def test_the_search_reaches_the_bound_of_slates_in_every_setting_and_never_exceeds_it() -> None:
    found = slate_searches.slates_searched()
    assert len({(one.items, one.k, one.bound, one.relation) for one, _ in found}) == 15 * 3 * 2
    for setting, loss in found:
        assert loss.ratio <= 1 + Fraction(setting.bound)  # in fractions: no tolerance
        assert loss.epsilon >= 0.9999 * math.log1p(setting.bound)
        if setting.relation is Relation.ADD_REMOVE:
            assert loss.spread <= 1 + Fraction(setting.bound)
        else:
            assert loss.spread <= (1 + Fraction(setting.bound)) ** 2


def test_the_search_reaches_the_bound_of_subsets_and_never_exceeds_it() -> None:
    for setting, loss in slate_searches.subsets_searched():
        bound = subset_epsilon(setting.bound, setting.sigma, setting.relation)
        assert 0.9999 * bound <= loss.epsilon <= bound + 1e-13
        if setting.relation is Relation.ADD_REMOVE:
            assert loss.spread <= 1 + Fraction(setting.bound) / Fraction(setting.sigma)


@pytest.mark.parametrize("relation", BOTH)
def test_the_search_finds_a_bound_that_is_one_percent_too_low(relation: Relation) -> None:
    settings = [Setting(4, k, 1.0, relation) for k in (1, 2, 3)]
    for pair in slate_search.climb(settings, rng=np.random.default_rng(5)):
        assert lost(pair).epsilon > 0.99 * natural_epsilon(1.0, 1.0)
        assert lost(replace(pair, setting=replace(pair.setting, bound=0.98))).ratio <= 1 + Fraction(0.98)


def test_a_public_rule_costs_nothing_where_users_are_added_and_twice_where_they_are_replaced() -> None:
    allowed = np.zeros(16, dtype=np.bool_)
    allowed[[0b0011, 0b1100]] = True
    settings = [Setting(4, 2, 1.0, relation) for relation in BOTH]
    added, replaced = slate_search.climb(settings, rng=np.random.default_rng(2), allowed=allowed)
    eta = math.log(2.0)
    assert 0.9999 * eta <= lost(added, [0b0011, 0b1100]).epsilon <= eta
    assert 0.9999 * 2 * eta <= lost(replaced, [0b0011, 0b1100]).epsilon <= 2 * eta


def test_theory_has_the_worst_case_where_the_audit_puts_it() -> None:
    for setting, _ in (*slate_searches.slates_searched(), *slate_searches.subsets_searched()):
        x = setting.bound / setting.sigma
        bound = math.log1p(x) if setting.k else subset_epsilon(setting.bound, setting.sigma, setting.relation)
        assert lost(slate_searches.extremal(setting)).epsilon == pytest.approx(bound, abs=2e-9)


# Bounds for any change, and for many slates


@pytest.mark.parametrize("k", [1, 2, 3, None])
def test_no_random_change_exceeds_the_general_bounds(k: int | None, rng: np.random.Generator) -> None:
    items = 5
    first, second = random_kernels(rng, items, PAIRS), random_kernels(rng, items, PAIRS)
    losses = np.abs(log_laws(first, k) - log_laws(second, k)).max(axis=1)
    values = np.linalg.eigvalsh(second - first)
    counted = items if k is None else k
    for loss, change in zip(losses, values, strict=True):
        up, down = np.sort(np.maximum(change, 0.0))[::-1], np.sort(np.maximum(-change, 0.0))[::-1]
        assert loss <= np.log1p(up[:counted]).sum() + np.log1p(down[:counted]).sum() + 1e-9
        frobenius, spectral = float(np.sqrt((change**2).sum())), float(np.abs(change).max())
        assert loss <= frobenius_epsilon(frobenius, 1.0, k, items) + 1e-9
        assert loss <= spectral_epsilon(spectral, 1.0, k, items) + 1e-9
        if k is None:  # half of what was published for the eigenvalues bounds the whole subset
            assert loss <= published_epsilon(frobenius, 1.0, items) / 2.0 + 1e-9


@pytest.mark.parametrize(("k", "rank"), [(1, 1), (2, 2), (3, 1), (2, 3)])
def test_contributions_of_a_given_trace_and_rank_stay_below_their_bound_and_attain_it(
    k: int, rank: int, rng: np.random.Generator
) -> None:
    items, trace = 6, 2.5
    base = random_kernels(rng, items, PAIRS)
    user = rng.normal(size=(PAIRS, items, rank)) * np.exp(2.0 * rng.normal(size=(PAIRS, 1, rank)))
    user *= np.sqrt(trace / (user**2).sum(axis=(1, 2)))[:, None, None]
    moved = log_laws(base + user @ user.transpose(0, 2, 1), k) - log_laws(base, k)
    bound = trace_epsilon(trace, 1.0, k, rank)
    assert np.abs(moved).max() <= bound + 1e-9
    assert (moved.max(axis=1) - moved.min(axis=1)).max() <= bound + 1e-9  # it is a range
    few = min(k, rank)
    worst = np.diag([1.0] * few + [1e9] * (items - few))
    added = worst + np.diag([trace / few] * few + [0.0] * (items - few))
    assert np.abs(log_laws(added, k) - log_laws(worst, k)).max() == pytest.approx(bound, rel=1e-6)


def test_renyi_divergences_of_added_users_stay_within_an_eighth_of_the_range_squared(rng: np.random.Generator) -> None:
    worst = 0.0
    for bound in (0.1, 1.0, 10.0):
        base = random_kernels(rng, 4, PAIRS)
        base[: PAIRS // 2] = np.eye(4) * np.exp(rng.normal(size=(PAIRS // 2, 1, 4)) ** 2)  # at least the identity
        user = rng.normal(size=(PAIRS, 4))
        user[: PAIRS // 4, 1:] = 0.0
        user *= (math.sqrt(bound) / np.sqrt((user**2).sum(axis=1)))[:, None]
        for k in (1, 2, 3):
            laws = np.exp([log_laws(base, k), log_laws(base + user[:, :, None] * user[:, None, :], k)])
            for order in (1.0, 1.5, 2.0, 8.0, 64.0):
                for one, other in (laws, laws[::-1]):
                    allowed = order * math.log1p(bound) ** 2 / 8.0
                    worst = max(worst, float((exact.renyi(one, other, order) / allowed).max()))
    assert 0.99 < worst <= 1.0 + 1e-9


def test_the_epsilon_of_a_subset_is_no_range() -> None:
    laws = [NaturalSubset(1, subset_epsilon(1.0, 1.0)).pmf(rows) for rows in (np.zeros((0, 1)), np.ones((1, 1)))]
    claimed = subset_epsilon(1.0, 1.0)
    assert exact.worst_loss(laws) == pytest.approx(claimed, abs=1e-8)
    divergence = max(float(exact.renyi(one, other, 2.0)) for one, other in (laws, laws[::-1]))
    assert divergence == pytest.approx(0.1178, abs=5e-5)
    assert 2.0 * claimed**2 / 8.0 == pytest.approx(0.0411, abs=5e-5)
    assert divergence <= 2.0 * math.log(2.0) ** 2 / 8.0


# Closed forms


def test_the_loss_of_small_tables_grows_to_the_claim_as_others_come() -> None:
    found = [slate_forms.natural_added(4, 1, others, 1.0) for others in (0, 1, 5, 40)]
    assert found == sorted(found)
    assert 0.95 * math.log(2.0) < found[-1] < math.log(2.0)


def test_two_points_attain_an_eighth_of_their_spread_squared_as_it_falls_to_nothing() -> None:
    for spread in (0.001, 0.1, 1.0, 3.0):
        assert slate_forms.two_point_rho([0.1, 0.5, 0.9], spread) <= spread**2 / 8.0 + 1e-12
    assert slate_forms.two_point_rho([0.5], 0.001) == pytest.approx(0.001**2 / 8.0, rel=1e-3)


def test_the_form_of_tempered_slates_is_that_of_every_slate_and_its_votes() -> None:
    before, after, theta = (2.0, 0.0, 1.0, 0.0), (2.0, 1.0, 1.0, 1.0), 0.7

    def law(votes: tuple[float, ...]) -> np.ndarray:
        weight = np.array([math.exp(theta * sum(votes[i] for i in slate)) for slate in combinations(range(4), 2)])
        return weight / weight.sum()

    loss = float(np.abs(np.log(law(before) / law(after))).max())
    assert slate_forms.tempered(4, 2, [(before, after)], theta) == pytest.approx(loss, abs=1e-12)


# Drawn slates


class Uniform:
    """Poses as a natural slate, and draws every slate alike."""

    def __init__(self, real: NaturalSlate, drawn: np.ndarray) -> None:
        self.real, self.value = real, drawn

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def prepare(self, rows: object) -> "Uniform":
        return self

    def release_many(self, count: int, noise: object) -> "Uniform":
        return self


def test_slates_from_another_law_or_that_cannot_be_fail(rng: np.random.Generator) -> None:
    real, rows, noise = NaturalSlate(4, 2, 2.0), np.array([[1.0, 0, 0, 0], [0, 0.3, 0, 0]]), ReplayedNoise(3)
    right = np.array(real.outcomes())[rng.choice(6, 20_000, p=real.pmf(rows))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "off_by", lambda mechanism: NaturalSlate(4, 2, 0.1))

        def found(drawn: np.ndarray) -> check.Finding:
            return slate_draws.fits(Uniform(real, drawn), rows, noise, 20_000, case="")

        assert found(right).holds
        assert found(np.array(real.outcomes())[rng.integers(0, 6, 20_000)]).p_value < distribution.THRESHOLD
        one = np.array([[2, 2]])  # an item twice, once in twenty thousand slates
        assert found(np.vstack([right[1:], one])).p_value == 0.0
    assert slate_draws.places(Uniform(real, one), rows, 1, noise).tolist() == [-1]
    assert slate_draws.fits(real, rows, noise, 20_000, case="").p_value > distribution.THRESHOLD


def test_places_are_places_among_the_outcomes() -> None:
    real = NaturalSlate(4, 2, 2.0)
    drawn = np.array(real.outcomes())[[5, 0, 3, 3]]
    assert slate_draws.places(Uniform(real, drawn), np.eye(4), 4, ReplayedNoise(3)).tolist() == [5, 0, 3, 3]
    subset = NaturalSubset(3, 1.0)
    ragged = [np.array(one, dtype=np.int64) for one in subset.outcomes()]
    assert slate_draws.places(Uniform(subset, ragged), np.eye(3), 8, ReplayedNoise(3)).tolist() == list(range(8))


# Understated claims


@pytest.mark.parametrize(
    ("real", "weaker", "inputs"),
    [
        (
            NaturalSlate(3, 1, 1.0, relation=Relation.REPLACE),
            NaturalSlate(3, 1, 1.01, relation=Relation.REPLACE),
            "likes",
        ),
        (NaturalSubset(3, 1.0), NaturalSubset(3, 1.01), "likes"),
        (
            TemperedSlate(np.eye(3), 1, 1.0, high=3.0, relation=Relation.REPLACE),
            TemperedSlate(np.eye(3), 1, 1.5, high=3.0, relation=Relation.REPLACE),
            "likes",
        ),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_noise_for_a_larger_epsilon_than_claimed_is_found(real, weaker, inputs) -> None:  # type: ignore[no-untyped-def]
    tables = domains.vote_tables(2, 3)
    added = real.relation is Relation.ADD_REMOVE
    pairs = domains.added_or_removed(tables) if added else domains.replaced(tables)

    class Wrong:
        name, guarantee, pmf = "understated", real.guarantee, weaker.pmf

    assert check.exactly(real, tables, pairs).holds
    assert not check.exactly(Wrong(), tables, pairs).holds


def test_subsets_are_numbered_by_their_bits() -> None:
    assert subsets(Setting(3, 2, 1.0, Relation.REPLACE)) == [0b011, 0b101, 0b110]
    assert len(subsets(Setting(3, None, 1.0, Relation.REPLACE))) == 8
    assert minors.sizes(3).tolist() == [0, 1, 1, 2, 1, 2, 2, 3]


# Broken twins are broken in one place


def test_twins_of_natural_slates_are_sound_where_their_fault_does_not_show() -> None:
    real = NaturalSlate(4, 2, 1.0)
    short = np.array([[0.6, 0.8, 0.0, 0.0], [0.0, 0.1, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0]])
    law = real.pmf(short)
    assert twins.NotCut(real).pmf(short) == pytest.approx(law, abs=1e-4)  # the real one rounds to its grid
    assert twins.JitterFromRecords(real).pmf(short) == pytest.approx(law, abs=1e-4)
    assert twins._OfRecords(real).pmf(10.0 * short[2:]) == pytest.approx(real.pmf(short[2:]), abs=1e-9)
    apart = np.array([[1.0, 0.0, 0.0, 0.0]])
    assert twins.CutToRankOne(real).pmf(apart) == pytest.approx(real.pmf(apart), abs=1e-9)
    assert twins.NormalisedCounts(real).pmf(apart) == pytest.approx(real.pmf(apart), abs=1e-9)
    for items_too, shown in ((False, 3), (True, 4)):  # none, one or both from the records; or which of them
        told = twins.SignalReleased(real, items_too=items_too).pmf(short).reshape(6, shown)
        assert told.sum(axis=1) == pytest.approx(law, abs=1e-4)


def test_a_rule_that_likes_every_slate_changes_nothing() -> None:
    real = NaturalSlate(4, 2, 1.0, redrawn=True)
    redrawn = twins.Redrawn(real, tuple(real.outcomes()))
    assert redrawn.pmf(np.eye(4)[:1]) == pytest.approx(real.pmf(np.eye(4)[:1]), abs=1e-15)
    assert (redrawn.name, redrawn.guarantee) == (real.name, real.guarantee)
    assert twins.Redrawn(NaturalSlate(4, 2, 1.0), ((0, 1),)).name != real.name


def test_twins_of_tempered_slates_are_sound_where_their_fault_does_not_show() -> None:
    real = TemperedSlate(np.eye(3), 2, 1.0, high=2.0)
    votes = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for twin in (tempered.RangeFromVotes(real), tempered.VotesEachFromVotes(real), tempered.VotesNotCut(real)):
        assert twin.pmf(votes) == pytest.approx(real.pmf(votes), abs=1e-12)
        assert twin.guarantee == real.guarantee


@pytest.mark.parametrize(
    "kind",
    [kernels.HalfTheNoiseOffTheDiagonal, kernels.NoiseForEachTriangle, kernels.RowsNotCut, kernels.SumReplacedAsAdded],
)
def test_noisy_kernels_that_are_broken_promise_nothing(kind: type) -> None:
    real = GaussianKernel(3, 1.0, 1e-6, relation=Relation.REPLACE)
    twin, rows = kind(real), np.array([[0.5, 0.5, 0.0]])
    assert twin.guarantee == real.guarantee
    assert twin.release(rows).guarantee.promises_nothing
    assert np.array_equal(twin.totals(rows), real.totals(rows))


def test_a_quarter_of_the_noise_on_a_kernel_is_a_quarter_of_its_deviation() -> None:
    real = GaussianKernel(3, 2.0, 0.01)
    less = with_less_noise(real, 4.0)
    assert less.guarantee == real.guarantee
    for here, there in zip(*([law.width for law in one.noise_laws] for one in (less.runs, real)), strict=True):
        assert float(here) == pytest.approx(float(there) / 16.0, rel=1e-9)


def test_cells_with_noise_of_their_own_are_counted_once_or_twice() -> None:
    real, pairs = GaussianKernel(2, 1.0, 1e-6), np.array([[0, 1]])
    rows = [np.zeros((0, 2)), np.array([[math.sqrt(0.5), math.sqrt(0.5)]])]
    once = kernel_exactly(real, rows, pairs, case="").loss
    twice = kernel_exactly(kernels.NoiseForEachTriangle(real), rows, pairs, case="").loss
    assert once == pytest.approx(real.rho, rel=1e-4)
    assert twice == pytest.approx(1.5 * real.rho, rel=1e-4)  # half of the squares are off the diagonal
