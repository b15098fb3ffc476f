"""Mechanisms: the randomised steps whose output may cross a boundary. One file each, with its law and its guarantee."""

from tacit.mechanisms.bounded_counts import BoundedCounts
from tacit.mechanisms.boxes import ClippedScores, ScaledScores
from tacit.mechanisms.envelope import Envelope
from tacit.mechanisms.exponential import ExponentialMechanism
from tacit.mechanisms.feature_box import FeatureBox
from tacit.mechanisms.feature_slate import FeatureSlate
from tacit.mechanisms.gaussian import GaussianSum
from tacit.mechanisms.gaussian_kernel import GaussianKernel, GridMatrix
from tacit.mechanisms.grid import GridVector
from tacit.mechanisms.grid_prototypes import GridPrototypes
from tacit.mechanisms.grid_shares import GridShares
from tacit.mechanisms.laplace import LaplaceSum, VectorLaplace
from tacit.mechanisms.local_swaps import LocalSwaps
from tacit.mechanisms.moment_shares import GramShare, PopularityShare, moment_rhos
from tacit.mechanisms.natural_slate import NaturalSlate
from tacit.mechanisms.natural_subset import NaturalSubset
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, ReplayedNoise, SystemNoise
from tacit.mechanisms.noisy_max import LaplaceNoisyMax
from tacit.mechanisms.offset_sums import NoisyOffsets, OffsetSums
from tacit.mechanisms.pair_moments import NoisyPairs, PairMoments
from tacit.mechanisms.partition import PrivatePartition
from tacit.mechanisms.peeling import Peeling
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.private_replacement import PrivateReplacement
from tacit.mechanisms.profile_bounds import ProfileBounds
from tacit.mechanisms.prototypes import Prototypes
from tacit.mechanisms.randomised_response import RandomisedResponse
from tacit.mechanisms.rating_bounds import RatingBounds
from tacit.mechanisms.rating_moments import NoisyMoments, RatingMoments
from tacit.mechanisms.sampled_gaussian import RowsOnDemand, SampledGaussian
from tacit.mechanisms.scores import ProfileScores, ScoreSource, VoteTotals
from tacit.mechanisms.smooth_similarity import SmoothSimilarity
from tacit.mechanisms.sparse_recovery import SparseRecovery
from tacit.mechanisms.sparse_vector import SparseVector
from tacit.mechanisms.tempered_slate import TemperedSlate
from tacit.mechanisms.tested_similarity import SimilarityAfterTest
from tacit.mechanisms.top_k import GumbelTopK
from tacit.mechanisms.top_response import TopResponse
from tacit.mechanisms.totals import TotalsOnDemand
from tacit.mechanisms.transfer_moments import NoisyTransfer, TransferMoments
from tacit.mechanisms.tree_prototypes import TreePrototypes

__all__ = [
    "SYSTEM_NOISE",
    "BoundedCounts",
    "ClippedScores",
    "Envelope",
    "ExponentialMechanism",
    "FeatureBox",
    "FeatureSlate",
    "GaussianKernel",
    "GaussianSum",
    "GramShare",
    "GridMatrix",
    "GridPrototypes",
    "GridShares",
    "GridVector",
    "GumbelTopK",
    "LaplaceNoisyMax",
    "LaplaceSum",
    "LocalSwaps",
    "NaturalSlate",
    "NaturalSubset",
    "Noise",
    "NoisyMoments",
    "NoisyOffsets",
    "NoisyPairs",
    "NoisyTransfer",
    "OffsetSums",
    "PairMoments",
    "Peeling",
    "PermuteAndFlip",
    "PopularityShare",
    "PrivatePartition",
    "PrivateReplacement",
    "ProfileBounds",
    "ProfileScores",
    "Prototypes",
    "RandomisedResponse",
    "RatingBounds",
    "RatingMoments",
    "ReplayedNoise",
    "RowsOnDemand",
    "SampledGaussian",
    "ScaledScores",
    "ScoreSource",
    "SimilarityAfterTest",
    "SmoothSimilarity",
    "SparseRecovery",
    "SparseVector",
    "SystemNoise",
    "TemperedSlate",
    "TopResponse",
    "TotalsOnDemand",
    "TransferMoments",
    "TreePrototypes",
    "VectorLaplace",
    "VoteTotals",
    "moment_rhos",
]
