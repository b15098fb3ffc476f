"""The figures that the paper prints, typed from it: Tables 1, 2, 4 and 5, and the numbers told with Figures 2 to 5.

S. Sarmasarkar, Z. Jiang, A. Goel, A. Korolova, K. Munagala, "Multi-Selection for Recommendation Systems": MovieLens 25M, 1,500
trials. The caption of its Table 4 says d_f; its numbers are d_i: they are those of Table 1. Its two columns of nopost (in d_i and
d_f, which are one quantity at k = 1) differ by up to 0.019: that is its own error.
"""

from collections.abc import Iterator, Mapping

from tacit.evaluation.result import PAPER, Row

NAME = "Multi-Selection for Recommendation Systems"
TRIALS = 1500
TRAINED_ON = 250_000
DRAWS = 25
BEST_UTILITY = 4.51
NEIGHBOUR_DISTANCE, NEIGHBOUR_DIFFERENCE = 0.1, 0.25
DUPLICATION = 0.27
CLUSTER_RADIUS = 0.2
CLUSTERS_WITHIN = {5: 0.75, 10: 0.45, 15: 0.24}  # share of clusters of that size whose diameter is at most 0.2
TEST_RMSE, WITHIN_HALF = 0.93, 0.61
KEPT, KEPT_ALONE = 0.97, 0.91  # share of the best utility, with multi-selection and without

# eta: nopost k = 1, nopost-realuser k = 1, sat k = 2, 3, 5, sat-realuser k = 2, 3, 5
_D_I = {
    0.01: (0.0447, 0.1147, 0.0209, 0.0129, 0.0077, 0.0656, 0.0506, 0.0416),
    0.03: (0.1748, 0.1591, 0.0881, 0.0603, 0.0377, 0.0644, 0.0441, 0.0275),
    0.05: (0.2622, 0.1945, 0.1341, 0.0976, 0.0604, 0.0811, 0.0552, 0.0354),
    0.1: (0.3749, 0.2826, 0.192, 0.1384, 0.092, 0.1225, 0.0849, 0.0476),
    0.15: (0.3806, 0.3548, 0.2292, 0.1695, 0.1066, 0.1394, 0.098, 0.0577),
    0.2: (0.4236, 0.3897, 0.2453, 0.1788, 0.1221, 0.1532, 0.113, 0.0673),
}
_D_F = {
    0.03: (0.194, 0.159, 0.124, 0.113, 0.124, 0.111, 0.121, 0.121),
    0.05: (0.268, 0.194, 0.192, 0.178, 0.176, 0.132, 0.117, 0.12),
    0.1: (0.385, 0.283, 0.279, 0.252, 0.256, 0.169, 0.15, 0.143),
    0.15: (0.383, 0.355, 0.317, 0.291, 0.294, 0.189, 0.171, 0.152),
    0.2: (0.423, 0.39, 0.331, 0.292, 0.286, 0.198, 0.173, 0.167),
}
_COLUMNS = (
    ("nopost", 1), ("nopost-realuser", 1), ("sat", 2), ("sat", 3), ("sat", 5), ("sat-realuser", 2), ("sat-realuser", 3),
    ("sat-realuser", 5),
)  # fmt: skip
_IG_SIG_D_F = {2: 0.233, 3: 0.196, 5: 0.177}  # whatever eta


def d_i(method: str, eta: float, k: int) -> float | None:
    """Dis-utility of the slate as printed, if it is."""
    return _cell(_D_I, method, eta, k)


def d_f(method: str, eta: float, k: int) -> float | None:
    """Dis-utility of the pick by principal components as printed, if it is."""
    return _IG_SIG_D_F.get(k) if method == "ig-sig" else _cell(_D_F, method, eta, k)


def rows() -> Iterator[Row]:
    """All of them in long form; a local model is named where the figure is of a pick."""
    for eta, cells in _D_I.items():
        for (method, k), value in zip(_COLUMNS, cells, strict=True):
            yield Row(PAPER + method, {"eta": eta, "k": k, "draws": DRAWS}, "d_i", value, n=TRIALS)
    for eta, cells in _D_F.items():
        for (method, k), value in zip(_COLUMNS, cells, strict=True):
            setting = {"eta": eta, "k": k, "draws": DRAWS, "local_model": "none" if k == 1 else "pca"}
            yield Row(PAPER + method, setting, "d_f", value, n=TRIALS)
    for k, value in _IG_SIG_D_F.items():
        yield Row(PAPER + "ig-sig", {"k": k, "draws": DRAWS, "local_model": "pca"}, "d_f", value, n=TRIALS)
    yield Row(PAPER + "network", {}, "best utility", BEST_UTILITY, n=TRIALS)
    yield Row(PAPER + "network", {"of": "other ratings"}, "test rmse", TEST_RMSE)
    yield Row(PAPER + "network", {"of": "other ratings"}, "within half a star", WITHIN_HALF)
    yield Row(PAPER + "users", {"distance": NEIGHBOUR_DISTANCE}, "neighbour difference", NEIGHBOUR_DIFFERENCE, n=TRIALS)
    yield Row(PAPER + "users", {"size": 5}, "duplication", DUPLICATION, n=TRIALS)
    for size, share in CLUSTERS_WITHIN.items():
        yield Row(PAPER + "users", {"size": size, "radius": CLUSTER_RADIUS}, "clusters within", share, n=TRIALS)


def _cell(table: Mapping[float, tuple[float, ...]], method: str, eta: float, k: int) -> float | None:
    if eta not in table or (method, k) not in _COLUMNS:
        return None
    return table[eta][_COLUMNS.index((method, k))]
