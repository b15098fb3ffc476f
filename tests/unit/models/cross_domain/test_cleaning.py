"""Which ratings a cap keeps."""

import numpy as np
from scipy import sparse

from tacit.models.cross_domain.alter_egos import MISSING
from tacit.models.cross_domain.edges import capped


def test_a_rating_without_a_time_counts_as_the_earliest() -> None:
    row = sparse.csr_array(np.array([[1.0, 2.0, 3.0]]))
    times = np.array([5, MISSING, 7], dtype=np.int64)
    assert capped(row, 1, times).indices.tolist() == [2]
    assert capped(row, 2, times).indices.tolist() == [0, 2]
