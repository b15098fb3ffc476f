"""Twins are broken only where they say, and promise nothing."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.audit import closed_forms, domains, exact
from tacit.audit.twins import REASON, training
from tacit.audit.twins.counts import CappedAtEachPlace, CountedBeyondTheCap, NoiseForOneReport, OnlyClickedListed
from tacit.audit.twins.features import FloatNoise, RedrawnUntilInside, SeededNoise, last_bit
from tacit.audit.twins.mislabelled import Mislabelled, with_less_noise
from tacit.audit.twins.private_selection import (
    FreshOnResend,
    GreedyAlone,
    HalfWidth,
    NormalisedForOne,
    PrivateAbstention,
    PrivateFilter,
)
from tacit.audit.twins.responses import BitVectorResponse
from tacit.audit.twins.sums import ClippedAfterSum, ClippedPerCoordinate, LocalSensitivity, PricedAsAdded
from tacit.audit.twins.training import (
    BoundTakenOnTrust,
    ClippedAfterTheSum,
    FixedBatch,
    OneSampleForAllSteps,
    TwoSteps,
)
from tacit.mechanisms import (
    BoundedCounts,
    ClippedScores,
    ExponentialMechanism,
    GaussianSum,
    LaplaceSum,
    PermuteAndFlip,
    ProfileScores,
    SampledGaussian,
    TopResponse,
    VectorLaplace,
)

PROFILES = ProfileScores(0.0, 1.0, steps=2)


def test_the_bit_vector_keeps_its_claim_exactly_once_all_bits_are_flipped() -> None:
    mended, broken = BitVectorResponse(4, 1.0, flipped=4), BitVectorResponse(4, 1.0, flipped=3)
    assert exact.worst_loss([mended.pmf(value) for value in range(16)]) == pytest.approx(1.0, abs=1e-9)
    assert exact.worst_loss([broken.pmf(value) for value in range(16)]) == math.inf


@pytest.mark.parametrize(
    "twin",
    [
        SeededNoise(VectorLaplace(2, 1.0)),
        FloatNoise(VectorLaplace(2, 1.0)),
        ClippedAfterSum(LaplaceSum(2, 1.0, 1.0)),
        LocalSensitivity(LaplaceSum(1, 1.0, 1.0)),
        ClippedPerCoordinate(GaussianSum(2, 1.0, 1.0, 1e-6)),
        PricedAsAdded(GaussianSum(2, 1.0, 1.0, 1e-6)),
    ],
    ids=lambda twin: twin.name,
)
def test_what_a_twin_releases_promises_nothing(twin) -> None:  # type: ignore[no-untyped-def]
    raw = [0.1, 0.2] if hasattr(twin.real, "scale") else [[0.1, 0.2]]
    release = twin.release(raw)
    assert release.guarantee.promises_nothing
    assert release.guarantee.assumes == {REASON}
    assert not twin.guarantee.promises_nothing  # while it claims what the real one claims


@pytest.mark.parametrize("kind", [NoiseForOneReport, CountedBeyondTheCap, CappedAtEachPlace, OnlyClickedListed])
def test_twins_of_counts_promise_nothing_and_are_sound_where_one_report_each_is_made(kind: type) -> None:
    real = BoundedCounts(2, 1.0, 2)
    twin = kind(real)
    assert twin.guarantee == real.guarantee
    assert twin.release([("u", 0)]).guarantee.promises_nothing
    modest = [("u", 0), ("v", 1), ("w", 1)]
    assert twin.totals(modest).tolist() == real.totals(modest).tolist()


def test_a_mislabelled_selection_promises_nothing_either() -> None:
    real = ExponentialMechanism(PROFILES, 1.0)
    release = Mislabelled("twin", real, real.guarantee).release_many([[0.0, 1.0]])
    assert release.guarantee.promises_nothing


def test_twins_of_selection_on_a_device_claim_what_the_real_one_claims_and_are_laws() -> None:
    real = TopResponse(4, 2, 1.0)
    for kind in (NormalisedForOne, PrivateFilter, PrivateAbstention, FreshOnResend):
        twin = kind(real)
        assert twin.guarantee == real.guarantee
        assert twin.name != real.name
        for raw in domains.score_box(4, steps=2):
            assert twin.pmf(raw).sum() == pytest.approx(1.0, abs=1e-12)
    liked = [0.9, 0.2, 0.4, 0.6]  # where nothing is left out or withheld they do what the real one does
    assert (PrivateFilter(real).pmf(liked) == real.pmf(liked)).all()
    assert (PrivateAbstention(real).pmf(liked)[:4] == real.pmf(liked)).all()


def test_what_is_greedy_alone_promises_nothing_and_draws_many_as_the_real_one_does() -> None:
    real = TopResponse(4, 1, 1.0)
    twin, rows = GreedyAlone(real), np.tile([0.1, 0.9, 0.2, 0.3], (500, 1))
    for release in (twin.release(rows[0]), twin.release_many(rows)):
        assert release.guarantee.promises_nothing
    assert {twin.release(rows[0]).value for _ in range(50)} == {1}
    assert set(twin.release_many(rows).value.tolist()) == {0, 1, 2, 3}
    assert (twin.pmf(rows[0]) == real.pmf(rows[0])).all()
    assert twin.guarantee == real.guarantee


def test_half_a_width_is_double_the_rate() -> None:
    wide, half = ClippedScores((0.0, 0.5), 1.0, steps=8), HalfWidth((0.0, 0.5), 1.0, steps=8)
    assert PermuteAndFlip(half, 1.0).rate == 2 * PermuteAndFlip(wide, 1.0).rate
    assert PermuteAndFlip(half, 1.0).guarantee == PermuteAndFlip(wide, 1.0).guarantee


def test_less_noise_is_less_noise_under_the_old_claim() -> None:
    laplace, gaussian, features = LaplaceSum(2, 1.0, 2.0), GaussianSum(2, 1.0, 2.0, 0.01), VectorLaplace(1, 0.5)
    for real in (laplace, gaussian, features):
        assert with_less_noise(real, 4.0).guarantee == real.guarantee
        assert with_less_noise(real, 4.0).name != real.name
    assert with_less_noise(laplace, 4.0).runs.noise_law.width == laplace.noise_law.width / 4
    assert with_less_noise(features, 4.0).runs.noise_law.width == features.noise_law.width / 4
    variance = with_less_noise(gaussian, 4.0).runs.noise_law.width
    assert float(variance) == pytest.approx(float(gaussian.noise_law.width) / 16.0, rel=1e-9)
    assert with_less_noise(laplace, 4.0).release([[0.1, 0.2]]).guarantee.promises_nothing


@pytest.mark.parametrize("kind", [ClippedAfterTheSum, training.ClippedPerCoordinate, BoundTakenOnTrust, FixedBatch])
def test_twins_of_private_training_promise_nothing_and_claim_what_the_real_one_claims(kind: type) -> None:
    real = SampledGaussian(2, 1.0, 1e-6, Fraction(1, 2), 5)
    twin = kind(real)
    assert twin.guarantee == real.guarantee
    assert twin.name != real.name
    assert twin.release(np.array([[1, 2]])).guarantee.promises_nothing
    assert with_less_noise(real, 4.0).runs.noise_multiplier == pytest.approx(real.noise_multiplier / 4.0, rel=1e-8)


def test_two_sound_steps_are_two_steps_and_a_kept_sample_is_one_step_with_a_longer_row() -> None:
    real = SampledGaussian(1, 2.0, 1e-3, Fraction(1, 4), 2, grid_bits=1)
    line = np.arange(-60, 61)
    plane = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    nobody, her = np.zeros((0, 1), dtype=np.int64), np.array([[2]])

    def renyi(twin: TwoSteps) -> float:
        return float(exact.renyi(twin.pmf(plane, her), twin.pmf(plane, nobody), 2.0))

    assert renyi(TwoSteps(real)) == pytest.approx(2.0 * real.renyi(2), rel=1e-9)
    kept = math.log1p(math.expm1(2.0 / real.noise_multiplier**2) / 16.0)  # the shift is sqrt(2) times as long
    assert renyi(OneSampleForAllSteps(real)) == pytest.approx(kept, rel=1e-9)


def test_seeded_noise_always_releases_the_same() -> None:
    twin = SeededNoise(VectorLaplace(3, 1.0))
    first, second = (twin.release([0.1, 0.2, 0.3]).value.steps for _ in range(2))
    assert np.array_equal(first, second)


def test_redrawing_loses_twice_the_claim_at_the_edge_of_a_fine_grid() -> None:
    twin = RedrawnUntilInside(VectorLaplace(1, 0.1, grid_bits=12))
    outputs = np.arange(0, 2**12 + 1)[:, None]
    loss = exact.pair_losses(np.stack([twin.log_pmf(outputs, [0.0]), twin.log_pmf(outputs, [2.0**-12])]))
    assert float(loss.max()) / 2.0**-12 == pytest.approx(2.0 / 0.1, rel=0.01)


def test_the_last_bits_of_float_noise_tell_zero_from_one() -> None:
    twin = FloatNoise(VectorLaplace(1, 1.0))
    at_one = [last_bit(float(twin.release([1.0]).value[0])) for _ in range(500)]
    at_zero = [last_bit(float(twin.release([0.0]).value[0])) for _ in range(500)]
    assert 1 not in at_one
    assert at_zero.count(1) > 50


def test_two_scales_have_an_unbounded_ratio() -> None:
    twin = LocalSensitivity(LaplaceSum(1, 1.0, 0.4))
    alike = np.array([[1.0, 1.0], [-1.0, -1.0]] * 50 + [[1.0, 1.0]])
    (here, narrow), (there, wide) = twin.law(alike), twin.law(np.vstack([alike, [[4.0, -4.0]]]))
    assert here == pytest.approx(1.0)
    assert there == pytest.approx(0.7265, abs=1e-4)

    def loss(output: float) -> float:
        densities = (math.log(1.0 / (2.0 * s)) - abs(output - c) / s for c, s in ((here, narrow), (there, wide)))
        return abs(next(densities) - next(densities))

    assert 0.4 < loss(2.0) < loss(10.0) / 5.0
    assert loss(10.0) > 100.0


def test_permute_and_flip_costs_nearly_four_times_what_the_exponential_mechanism_does_under_zcdp() -> None:
    epsilon = 0.02
    inputs = domains.score_box(2, steps=2)
    flip = exact.zcdp([PermuteAndFlip(PROFILES, epsilon).pmf(raw) for raw in inputs])
    assert flip / (epsilon**2 / 8.0) == pytest.approx(4.0, rel=0.05)
    assert flip <= epsilon**2 / 2.0
    exponential = exact.zcdp([ExponentialMechanism(PROFILES, epsilon).pmf(raw) for raw in inputs])
    assert exponential / (epsilon**2 / 8.0) == pytest.approx(1.0, rel=1e-4)
    assert exponential == pytest.approx(closed_forms.exponential_rho(2, epsilon / 2.0), rel=1e-9)
