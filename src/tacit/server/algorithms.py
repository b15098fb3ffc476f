"""The published algorithms of multi-selection by name, and `exact` and `dpp`, which are ours: how each guesses and maximises."""

from dataclasses import dataclass, replace
from enum import StrEnum

from tacit.checks import keep, member, positive, probability, whole
from tacit.errors import InvalidParameter


class Algorithm(StrEnum):
    """How a server makes a slate from a signal: what it takes the user to be, and what it then chooses."""

    NOPOST = "nopost"  # the best items at the raw signal
    NOPOST_REALUSER = "nopost-realuser"  # the best items of the nearest look-alike
    IG_SIG = "ig-sig"  # ignores the signal: learns nothing about the user. What every other one has to beat
    AVG = "avg"
    AVG_REALUSER = "avg-realuser"
    SAT = "sat"
    SAT_REALUSER = "sat-realuser"
    EXACT = "exact"  # exact posterior weights instead of draws, and no cut at the r best items
    DPP = "dpp"  # the same weights; items that are good on average and unlike each other: a determinant, not the best pick


class Posterior(StrEnum):
    """Whose the signal may be."""

    NONE = "none"
    UNIFORM = "uniform"  # any look-alike, whatever the signal says
    REALUSER = "realuser"  # look-alikes, by the likelihood of the signal
    CAP = "cap"  # the signal itself with fresh noise, cut and scaled into the domain


class LocalModel(StrEnum):
    """What is sent along so that the device can pick."""

    RIDGE = "ridge"  # a linear map by tempered ridge regression: our default
    PCA = "pca"  # principal components, as published
    PCA_MAP = "pca-map"  # the same estimates as a smaller linear map
    NETWORK = "network"  # nothing: the device holds the whole model
    NONE = "none"  # nothing: the device takes the first


POSTERIOR = {
    Algorithm.NOPOST: Posterior.NONE,
    Algorithm.NOPOST_REALUSER: Posterior.NONE,
    Algorithm.IG_SIG: Posterior.UNIFORM,
    Algorithm.AVG: Posterior.CAP,
    Algorithm.SAT: Posterior.CAP,
    Algorithm.AVG_REALUSER: Posterior.REALUSER,
    Algorithm.SAT_REALUSER: Posterior.REALUSER,
    Algorithm.EXACT: Posterior.REALUSER,
    Algorithm.DPP: Posterior.REALUSER,
}
AVERAGING = frozenset({Algorithm.AVG, Algorithm.AVG_REALUSER})  # utility of all items of the slate, not of the t best
BY_WEIGHTS = frozenset({Algorithm.EXACT, Algorithm.DPP})  # the posterior's own weights instead of draws
WITHOUT_LOOK_ALIKES = frozenset({Algorithm.NOPOST, Algorithm.AVG, Algorithm.SAT})


@dataclass(frozen=True, slots=True)
class Settings:
    """The public parameters of an answer."""

    algorithm: Algorithm = Algorithm.EXACT
    local_model: LocalModel = LocalModel.RIDGE
    draws: int = 25  # of the posterior, for the slate (q1)
    model_draws: int = 1000  # of the posterior, for the principal components (q2)
    r: int = 100  # best items of each draw that count
    components: int = 20  # of the principal components (p)
    coverage: float = 0.99  # share of the posterior's weight that `exact` and `dpp` look at
    most_rows: int = (
        4096  # look-alikes that they and ridge weigh at most; beyond, an even sample of the weight stands for all
    )
    strength: float = 0.01  # of the ridge penalty
    alpha: float = 3.0  # of `dpp`: what a unit of expected utility counts against unlikeness, in nats
    sampled: bool = False  # `dpp` draws its slate instead of choosing the likeliest: another one each time
    ignores_signal: bool = False  # any look-alike may have sent it: for signals that tell nothing

    def __post_init__(self) -> None:
        keep(
            self,
            algorithm=member("algorithm", Algorithm, self.algorithm),
            local_model=member("local_model", LocalModel, self.local_model),
            draws=whole("draws", self.draws, least=1),
            model_draws=whole("model_draws", self.model_draws, least=1),
            r=whole("r", self.r, least=1),
            components=whole("components", self.components, least=1, most=0xFFFF),
            coverage=probability("coverage", self.coverage),
            most_rows=whole("most_rows", self.most_rows, least=1),
            strength=positive("strength", self.strength),
            alpha=positive("alpha", self.alpha),
        )
        if self.local_model in (LocalModel.PCA, LocalModel.PCA_MAP) and self.posterior is Posterior.NONE:
            raise InvalidParameter(
                f"{self.algorithm} has no posterior to find principal components in: choose ridge, network or none."
            )

    @property
    def posterior(self) -> Posterior:
        """How look-alikes are weighed for this algorithm."""
        return Posterior.UNIFORM if self.ignores_signal else POSTERIOR[self.algorithm]

    def without_signal(self) -> "Settings":
        """For a signal that tells nothing: ours weigh all look-alikes alike, the published algorithms become `ig-sig`."""
        if self.algorithm in BY_WEIGHTS:
            return replace(self, ignores_signal=True)
        return replace(self, algorithm=Algorithm.IG_SIG)

    @property
    def needs_look_alikes(self) -> bool:
        """Whether it works only with a store that has look-alikes."""
        return self.algorithm not in WITHOUT_LOOK_ALIKES or self.local_model is LocalModel.RIDGE
