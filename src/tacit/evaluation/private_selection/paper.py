"""What the paper states in words or in its captions. Its figures are pictures without numbers: none is read off them.

A. Laro, Y. Chen, H. He, B. Aghazadeh, "Randomized algorithms for precise measurement of differentially-private, personalized
recommendations" (2024): a public display data set (Taobao) and an internal one of search.
"""

from collections.abc import Iterator

from tacit.evaluation.result import PAPER, Row

NAME = "Randomized algorithms for precise measurement of differentially-private, personalized recommendations"
OURS = "tacit"
BEST_GAMMA = 0.8  # section 4.3, "near"
MEAN_CANDIDATES = 4.0  # appendix H, display
MOST_CANDIDATES = 15.0  # appendix E.2, search
GOOD_EPSILON, BAD_EPSILON = 5.0, 1.0  # section 4.3
MORE_APART = 2.0  # appendix H: the median |private - public| of display is "more than 100% higher" than that of search


def rows() -> Iterator[Row]:
    yield Row(PAPER + "display", {}, "mean candidates", MEAN_CANDIDATES)
    yield Row(PAPER + "search", {}, "most candidates", MOST_CANDIDATES)
    yield Row(PAPER + "rr", {"world": "display", "epsilon": GOOD_EPSILON}, "best gamma", BEST_GAMMA)
