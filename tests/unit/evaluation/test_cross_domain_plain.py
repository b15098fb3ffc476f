"""Methods across domains on small data: predictions by hand, how many similar items there are, and B1 at any noise."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.linked import linked
from tacit.evaluation.cross_domain.moments import moments
from tacit.evaluation.cross_domain.outcome import DIRECTIONS, LINKING
from tacit.evaluation.cross_domain.plain import METHODS, plain
from tacit.evaluation.cross_domain.splits import Held
from tacit.evaluation.federated_prototypes.chance import noise_of
from tacit.models.cross_domain.alter_egos import levels, mean_of
from tests.unit.curator.cross_domain_world import TABLE

SIMILAR = 0.198137  # items 3 and 5, on target ratings alone


def known_of(table: Any, n_source: int, asked: list[int], **options: Any) -> Known:
    """A world in which the asked users hid nothing: all of their target items are predicted."""
    ratings = sparse.csr_array(np.asarray(table, dtype=np.float64))
    hidden = sparse.csr_array((len(asked), ratings.shape[1] - n_source))
    return Known(Held("w", ratings, n_source, None, 1.0, 5.0, np.array(asked), hidden, 0), **options)


@pytest.fixture(scope="module")
def by_hand() -> Known:
    """The eight users of the worked example; the first two, who have source ratings alone, are asked."""
    return known_of(TABLE, 3, [0, 1], shrink=0)


def test_a_user_is_measured_against_everybody_in_a_domain_and_not_against_who_is_asked(by_hand: Known) -> None:
    """Their means are 10/3 and 8/3, together 3; the source's is 30/9, the target's 47/15."""
    assert by_hand.level_in_source == pytest.approx([0.0, -2 / 3])
    assert by_hand.level == pytest.approx([10 / 3 - 47 / 15, 8 / 3 - 47 / 15])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (names.GLOBAL_MEAN, 47 / 15),
        (names.ITEM_AVERAGE, 3.0),
        (names.USER_MEAN, 3.2),
        (names.USER_MEAN_SOURCE, 3.0),
        (names.NX_PUBLISHED, 3.0 + 5 / 3),
        (names.NX, 3.2 + 5 / 3 - 0.2),
        (names.NX_SHRUNK, 3.2 + (5 / 3 - 0.2) * SIMILAR / (SIMILAR + 0.2)),
        (names.NX_SOURCE, 3.0 + 5 / 3 * SIMILAR / (SIMILAR + 0.2)),
    ],
)
def test_item_5_for_the_first_user_by_hand(by_hand: Known, method: str, expected: float) -> None:
    """Her alter ego is 4.5 of item 3, whose mean is 17/6: 5/3 above it. Item 5 has the mean 3; her level is .2, or 0."""
    assert by_hand.egos.values.toarray()[0].tolist() == [4.5, 0.0, 0.0]
    ((name, scores),) = plain(by_hand, rng=np.random.default_rng(1), methods=(method,))
    assert name == method
    assert scores[0, 2] == pytest.approx(expected, abs=1e-5)


def test_fifty_similar_items_of_a_profile_count_in_a_linked_prediction() -> None:
    rng = np.random.default_rng(6)
    table = rng.integers(1, 6, (40, 124))  # every user rated all; about half of the 120 source items are similar to one
    table[:3, 120:] = 0
    known = known_of(table, 120, [0, 1, 2], shrink=0)
    ready, users, items = (
        linked(known.all_source, known.target, 0),
        np.repeat(np.arange(3), 4),
        np.tile(np.arange(4), 3),
    )
    level = levels(known.held.ratings, mean_of(known.target))
    for method, options in ((names.KNN, {}), (names.KNN_SHRUNK, {"shrink": 0.2, "level": level})):
        found = METHODS[method](known, rng)
        for k in (1, 49, 50, 51):
            of_k = ready.predict(users, items, (1.0, 5.0), k=k, **options).reshape(3, 4)  # type: ignore[arg-type]
            assert np.allclose(found, of_k, rtol=0.0, atol=1e-12) == (k == 50)


def test_b1_maps_items_at_any_noise_and_only_the_careful_one_falls_back() -> None:
    """40 users at epsilon 1: nothing stands above the noise, so the careful one predicts offsets. B1 is moved by noise alone."""
    rng = np.random.default_rng(3)
    table = np.where(rng.random((40, 20)) < 0.6, rng.integers(1, 6, (40, 20)), 0)
    table[:4, 10:] = 0
    known = known_of(table, 10, [0, 1, 2, 3])
    tried = {one.method: one for one in moments(known, 1.0, lambda name: noise_of(1, name))}
    offsets = tried[names.OFFSETS].scores
    assert tried[names.B1_CAREFUL].told == {DIRECTIONS: 0, LINKING: 0}
    assert np.array_equal(tried[names.B1_CAREFUL].scores, offsets)
    assert (tried[names.B1].scores != offsets).mean() > 0.5
