"""Every mechanism keeps the contract: claim, tightness, twin, errors, guarantee. By exact enumeration; nothing is drawn twice."""

import math
from typing import Any

import pytest

from tacit.errors import TacitError
from tests.contracts.mechanism import MechanismContract
from tests.unit.mechanisms import cases, device_cases, slate_cases, slate_feature_cases, sum_cases


class TestRandomisedResponse(cases.RandomisedResponseCase, MechanismContract):
    pass


class TestExponential(cases.ExponentialCase, MechanismContract):
    pass


class TestExponentialOnVotes(cases.ExponentialVotesCase, MechanismContract):
    pass


class TestExponentialOnReplacedVotes(cases.ExponentialReplacedVotesCase, MechanismContract):
    pass


class TestPermuteAndFlip(cases.PermuteAndFlipCase, MechanismContract):
    pass


class TestPermuteAndFlipOnVotes(cases.PermuteAndFlipVotesCase, MechanismContract):
    pass


class TestNoisyMax(cases.NoisyMaxCase, MechanismContract):
    pass


class TestNoisyMaxOnVotes(cases.NoisyMaxVotesCase, MechanismContract):
    pass


class TestTopK(cases.TopKCase, MechanismContract):
    pass


class TestTopResponse(device_cases.TopResponseCase, MechanismContract):
    pass


class TestEnvelope(device_cases.EnvelopeCase, MechanismContract):
    pass


class TestPeeling(device_cases.PeelingCase, MechanismContract):
    pass


class TestPeelingScaled(device_cases.PeelingScaledCase, MechanismContract):
    pass


class TestScaledExponential(device_cases.ScaledExponentialCase, MechanismContract):
    pass


class TestClippedPermuteAndFlip(device_cases.ClippedPermuteAndFlipCase, MechanismContract):
    pass


class TestScaledNoisyMax(device_cases.ScaledNoisyMaxCase, MechanismContract):
    pass


class TestSparseVector(cases.SparseVectorCase, MechanismContract):
    pass


class TestSparseVectorOnVotes(cases.SparseVectorVotesCase, MechanismContract):
    pass


class TestLaplaceSum(sum_cases.LaplaceSumCase, MechanismContract):
    pass


class TestLaplaceSumReplaced(sum_cases.LaplaceSumReplacedCase, MechanismContract):
    pass


class TestBoundedCounts(sum_cases.BoundedCountsCase, MechanismContract):
    pass


class TestGaussianSum(sum_cases.GaussianSumCase, MechanismContract):
    pass


class TestVectorLaplace(sum_cases.VectorLaplaceCase, MechanismContract):
    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, None, "1", True, 1j])
    def test_epsilon_outside_its_range_is_refused(self, epsilon: Any) -> None:
        with pytest.raises(TacitError, match=r"scale must be a finite number") as caught:
            self.make(epsilon)
        assert caught.value.code == "invalid-parameter"


class TestTemperedSlate(slate_feature_cases.TemperedSlateCase, MechanismContract):
    pass


class TestTemperedSlateReplaced(slate_feature_cases.TemperedSlateReplacedCase, MechanismContract):
    pass


class TestFeatureSlate(slate_feature_cases.FeatureSlateCase, MechanismContract):
    pass


class TestFeatureSlateReplaced(slate_feature_cases.FeatureSlateReplacedCase, MechanismContract):
    pass


class TestGaussianKernel(slate_feature_cases.GaussianKernelCase, MechanismContract):
    pass


class TestGaussianKernelReplaced(slate_feature_cases.GaussianKernelReplacedCase, MechanismContract):
    pass


class TestNaturalSlate(slate_cases.NaturalSlateCase, MechanismContract):
    pass


class TestNaturalSlateReplaced(slate_cases.NaturalSlateReplacedCase, MechanismContract):
    pass


class TestNaturalSubset(slate_cases.NaturalSubsetCase, MechanismContract):
    pass


class TestNaturalSubsetReplaced(slate_cases.NaturalSubsetReplacedCase, MechanismContract):
    pass
