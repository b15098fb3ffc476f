"""Mechanisms: the randomised steps whose output may cross a boundary. One file each, with its law and its guarantee."""

from tacit.mechanisms.grid_prototypes import GridPrototypes, GridShares
from tacit.mechanisms.inputs import FeatureBox, ProfileBounds
from tacit.mechanisms.local_swaps import LocalSwaps
from tacit.mechanisms.moment_shares import GramShare, PopularityShare, moment_rhos
from tacit.mechanisms.natural_slate import NaturalSlate, NaturalSubset
from tacit.mechanisms.noise import SYSTEM_NOISE, Noise, ReplayedNoise, SystemNoise
from tacit.mechanisms.partition import PrivatePartition
from tacit.mechanisms.rating_moments import NoisyMoments, RatingMoments
from tacit.mechanisms.rating_rows import RatingBounds, TotalsOnDemand
from tacit.mechanisms.responses import Envelope, RandomisedResponse, TopResponse
from tacit.mechanisms.sampled_gaussian import RowsOnDemand, SampledGaussian
from tacit.mechanisms.samplers.integers import GridMatrix, GridVector
from tacit.mechanisms.scores import ClippedScores, ProfileScores, ScaledScores, ScoreSource, VoteTotals
from tacit.mechanisms.selection import ExponentialMechanism, LaplaceNoisyMax, PermuteAndFlip
from tacit.mechanisms.slates import GaussianKernel
from tacit.mechanisms.sparse_recovery import Prototypes, SparseRecovery
from tacit.mechanisms.sums import BoundedCounts, GaussianSum, LaplaceSum, VectorLaplace
from tacit.mechanisms.tempered_slate import FeatureSlate, TemperedSlate
from tacit.mechanisms.top_k import GumbelTopK, Peeling, SparseVector
from tacit.mechanisms.transfer_moments import (
    NoisyOffsets,
    NoisyPairs,
    NoisyTransfer,
    OffsetSums,
    PairMoments,
    TransferMoments,
)
from tacit.mechanisms.tree_prototypes import TreePrototypes
from tacit.mechanisms.x_map import PrivateReplacement

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
