"""Reference figures: an independent computation on MovieLens 1M, with a division of the users of its own and other random numbers.

150 slates of 10 films for each figure, 20 to 30 where a slate needs a new release, one noise draw for the Gaussian kernel.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tacit.evaluation.private_slates import names
from tacit.evaluation.private_slates.measures import COVERAGE, GENRES, POPULARITY
from tacit.evaluation.result import REFERENCE, Row

NAME = "reference figures"
PREFIX = REFERENCE
DATA = "movielens-1m"
METRICS = (POPULARITY, COVERAGE, GENRES)

INF = "inf"  # no privacy
Epsilon = float | str


class Given(NamedTuple):
    """Popularity, coverage and genre diversity, and how near ours should be."""

    figures: tuple[float, float, float]
    tolerance: float = 0.03
    one_draw: bool = False  # a single noise draw: the figures of another one scatter


TABLE: Mapping[tuple[str, Epsilon], Given] = {
    (names.UNIFORM, 0.0): Given((0.065, 0.194, 0.766)),
    (names.TOP, INF): Given((1.000, 0.903, 0.670)),
    (names.GREEDY, INF): Given((0.954, 0.920, 0.711)),
    (names.K_DPP, INF): Given((0.302, 0.593, 0.765)),
    (names.NATURAL, 0.1): Given((0.093, 0.263, 0.773)),
    (names.NATURAL, 1.0): Given((0.237, 0.518, 0.778)),
    (names.NATURAL, 3.0): Given((0.288, 0.576, 0.774)),
    (names.PUBLISHED, 0.1): Given((0.066, 0.197, 0.767)),
    (names.PUBLISHED, 1.0): Given((0.067, 0.196, 0.776)),
    (names.PUBLISHED, 3.0): Given((0.073, 0.210, 0.780)),
    (names.TEMPERED, 0.03): Given((0.447, 0.734, 0.860)),
    (names.TEMPERED, 0.1): Given((0.969, 0.910, 0.718)),
    (names.TEMPERED, 0.145): Given((0.983, 0.908, 0.689)),
    (names.GUMBEL, 0.03): Given((0.470, 0.754, 0.757)),
    (names.GUMBEL, 0.1): Given((0.981, 0.903, 0.670)),
    (names.GUMBEL, 0.3): Given((0.998, 0.902, 0.667)),
    (names.TWO_STAGE, 0.1): Given((0.209, 0.483, 0.758), 0.05),
    (names.TWO_STAGE, 1.0): Given((0.685, 0.835, 0.741), 0.05),
    (names.SPARSE, 0.1): Given((0.128, 0.330, 0.891)),
    (names.SPARSE, 1.0): Given((0.431, 0.679, 0.822)),
    (names.LAPLACE, 0.1): Given((0.153, 0.396, 0.896), 0.05),
    (names.LAPLACE, 0.3): Given((0.732, 0.877, 0.829), 0.05),
    (names.LAPLACE, 1.0): Given((0.959, 0.916, 0.765), 0.05),
    (names.KERNEL_GREEDY, 0.1): Given((0.021, 0.064, 0.785), one_draw=True),
    (names.KERNEL_GREEDY, 1.0): Given((0.937, 0.909, 0.694), one_draw=True),
    (names.KERNEL_K_DPP, 1.0): Given((0.066, 0.196, 0.783), one_draw=True),
}  # fmt: skip

SIGNAL = {names.NATURAL: 6.66, names.PUBLISHED: 0.10}  # signal slots of 10 at epsilon 1
REPLICATED = {10: (0.206, 5.5), 100: (0.278, 9.2)}  # copies of every user: popularity and signal slots at epsilon .1


def rows() -> Iterator[Row]:
    for (method, epsilon), given in TABLE.items():
        for metric, value in zip(METRICS, given.figures, strict=True):
            yield Row(PREFIX + method, {"epsilon": epsilon}, metric, value)
    for method, slots in SIGNAL.items():
        yield Row(PREFIX + method, {"epsilon": 1.0}, "signal slots", slots)
    for copies, (popularity, slots) in REPLICATED.items():
        setting: dict[str, int | float] = {"epsilon": 0.1, "copies": copies}
        yield Row(PREFIX + names.NATURAL, setting, POPULARITY, popularity)
        yield Row(PREFIX + names.NATURAL, setting, "signal slots", slots)
