"""Integrals of polynomials over [0, 1], as sums: exact but for rounding."""

from functools import lru_cache

import numpy as np

from tacit.models.arrays import Floats


@lru_cache(maxsize=64)
def unit_gauss_legendre(nodes: int) -> tuple[Floats, Floats]:
    """Nodes and weights of the Gauss-Legendre rule on [0, 1]: exact for polynomials of degree below 2 ``nodes``."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return (points + 1.0) / 2.0, weights / 2.0
