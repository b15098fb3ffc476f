"""Bulk and single draws of exact noise against OpenDP, which is as exact."""

from fractions import Fraction

import numpy as np
import opendp.prelude as dp

from benchmarks.timing import Row, compare
from tacit.mechanisms import SYSTEM_NOISE, VectorLaplace
from tacit.mechanisms.samplers import integers as discrete_gaussian
from tacit.mechanisms.samplers import integers as discrete_laplace

_SCALE = 104_857  # 0.1 on a grid of 2^-20, the default of a noisy feature vector
_BULK, _PEER_BULK = 1_000_000, 50_000


def run() -> list[Row]:
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    laplace = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=float(_SCALE))
    gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T="i64"), scale=float(_SCALE))
    zeros = [0] * _PEER_BULK
    features = np.full(38, 0.25)
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False), size=38), dp.l1_distance(T="f64")
    on_grid = dp.m.make_laplace(*space, scale=0.1, k=-20)
    mechanism = VectorLaplace(38, 0.1)
    exact = "both exact"
    return [
        compare(
            "discrete-laplace-bulk", "OpenDP make_laplace",
            lambda: discrete_laplace.sample_discrete_laplace(Fraction(_SCALE), _BULK, SYSTEM_NOISE), lambda: laplace(zeros),
            per=(_BULK, _PEER_BULK), target=10, note=f"seconds per draw, {exact}", rounds=5,
        ),
        compare(
            "discrete-gaussian-bulk", "OpenDP make_gaussian",
            lambda: discrete_gaussian.sample_discrete_gaussian(Fraction(_SCALE) ** 2, _BULK, SYSTEM_NOISE), lambda: gaussian(zeros),
            per=(_BULK, _PEER_BULK), target=10, note=f"seconds per draw, {exact}", rounds=5,
        ),
        compare(
            "vector-laplace-38", "OpenDP make_laplace, k=-20",
            lambda: mechanism.release(features), lambda: on_grid(features),
            target=1, note=f"seconds per release of 38 features on the grid 2^-20, {exact}",
        ),
        compare(
            "discrete-laplace-one", "OpenDP make_laplace",
            lambda: discrete_laplace.sample_discrete_laplace(Fraction(_SCALE), 1, SYSTEM_NOISE), lambda: laplace([0]),
            target=1, note=f"seconds per single draw, {exact}",
        ),
    ]  # fmt: skip
