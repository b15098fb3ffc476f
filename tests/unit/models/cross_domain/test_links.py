"""Links between domains: none in noise, whatever lies inside the domains; found where they stand above it, and counted."""

import math

import numpy as np
import pytest

from tacit.models.cross_domain.transfer import MARGIN, NO_LINK, NO_TRANSFER, OF_WHAT, links, remark_on, within

NONE = np.zeros((3, 0)), np.zeros((2, 0))


@pytest.mark.parametrize(("rows", "columns", "times"), [(1, 1, 4_000), (2, 3, 1_000), (8, 8, 500), (60, 30, 100)])
def test_noise_alone_links_nothing_but_once_in_a_thousand(rows: int, columns: int, times: int) -> None:
    rng = np.random.default_rng(1)
    taken, given = np.eye(rows)[:, :1], np.eye(columns)[:, :2]
    found = [links(rng.normal(0.0, 7.0, (rows, columns)), taken, given, 7.0) for _ in range(times)]
    assert np.mean(np.array(found) > 0) <= 0.004


def test_a_whole_block_counts_singular_values_above_the_noise() -> None:
    """3 x 2: sqrt 3 + sqrt 2 + the margin, in deviations."""
    edge = math.sqrt(3) + math.sqrt(2) + MARGIN
    for second, found in ((edge + 1e-9, 2), (edge - 1e-9, 1)):
        block = np.diag([2.0 * edge, second, 0.0])[:, :2]
        assert links(5.0 * block, *NONE, 5.0) == found
    assert links(np.zeros((3, 2)), *NONE, 0.0) == 0
    assert links(np.diag([1.0, 1e-12, 0.0])[:, :2], *NONE, 0.0) == 1


def test_along_known_directions_a_weaker_link_is_seen() -> None:
    """In a block of 60 x 60 the noise ends at 17; along one direction of each side at 2, and 3.5 is enough."""
    taken, given = np.full((60, 1), 60**-0.5), np.eye(60)[:, :1]
    for strength, found in ((3.5 + 1e-9, 1), (3.5 - 1e-9, 0)):
        block = strength * taken @ given.T
        assert links(block, taken, given, 1.0) == found
        assert links(block, taken, np.eye(60)[:, 1:2], 1.0) == 0
        assert links(block, taken[:, :0], given[:, :0], 1.0) == 0


def test_without_items_on_a_side_there_is_no_link() -> None:
    assert links(np.zeros((0, 4)), np.zeros((0, 0)), np.eye(4), 0.0) == 0


def test_inside_a_domain_the_strongest_direction_is_taken_even_if_it_is_weak() -> None:
    block = np.diag([5.0, 3.0, 1.0])
    assert [within(block, least, 8).shape[1] for least in (0.5, 2.0, 4.0, 9.0)] == [3, 2, 1, 1]
    assert within(block, 0.5, 2).shape[1] == 2
    assert np.abs(within(block, 9.0, 8)[:, 0]).tolist() == [1.0, 0.0, 0.0]


def test_a_remark_tells_what_was_found_and_what_crosses() -> None:
    assert remark_on(0, 0) == NO_TRANSFER
    assert remark_on(1, 0) == f"One direction stands above the noise, but {NO_LINK}"
    assert remark_on(5, 0) == f"5 directions stand above the noise, but {NO_LINK}"
    assert remark_on(5, 1) == f"5 directions stand above the noise; 1 is seen in both domains. {OF_WHAT}"
    assert remark_on(5, 3) == f"5 directions stand above the noise; 3 are seen in both domains. {OF_WHAT}"
