"""Slates at the server: from what was released once, any number, at no further cost."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, approximate, pure
from tacit.messages.private_slates import Popularity, Similarity
from tacit.models.dpp.laws import k_dpp_law
from tacit.server import PrivateSlates
from tests.releases import message_of

COUNTS = message_of(Popularity, (10, 20, 30, 40, 50), np.array([100, 99, 98, 10, -5]), Fraction(1), pure(1.0, ONE_USER))
GENRES = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
KERNEL = message_of(
    Similarity,
    ("a", "b", "c"),
    np.array([[9, 9, 0], [9, 8, 0], [0, 0, 4]]),
    Fraction(1),
    approximate(1.0, 1e-6, ONE_USER),
)


def test_the_greedy_slate_takes_what_is_liked_and_differs() -> None:
    slate = PrivateSlates(COUNTS, GENRES).slate(3)
    assert slate.items == (10, 30, 40)  # 20 is the second best, and just like the first
    assert slate.guarantee is COUNTS.guarantee
    assert slate.route == "counts"


def test_without_features_the_most_liked_are_taken() -> None:
    assert PrivateSlates(COUNTS).slate(4).items == (10, 20, 30, 40)


def test_where_features_have_no_more_to_say_quality_fills_the_slate() -> None:
    assert PrivateSlates(COUNTS, GENRES).slate(5).items == (10, 30, 40, 20, 50)


def test_alpha_weighs_quality_against_difference() -> None:
    near = np.array([[1.0, 0.0], [0.9, np.sqrt(1 - 0.81)], [0.0, 1.0]])
    counts = message_of(Popularity, (1, 2, 3), np.array([100, 100, 50]), Fraction(1), pure(1.0, ONE_USER))
    server = PrivateSlates(counts, near)
    assert server.slate(2, alpha=0.0).items == (1, 3)
    assert server.slate(2, alpha=40.0).items == (1, 2)
    for wrong in (-1.0, 41.0, np.nan):
        with pytest.raises(InvalidParameter):
            server.slate(2, alpha=wrong)


def test_drawn_slates_differ_and_follow_the_generator() -> None:
    one, same = (PrivateSlates(COUNTS, GENRES, rng=np.random.default_rng(7)) for _ in range(2))
    drawn = [one.slate(3, drawn=True).items for _ in range(30)]
    assert drawn == [same.slate(3, drawn=True).items for _ in range(30)]
    assert len(set(drawn)) > 1
    for slate in drawn:  # one of each genre: alike ones have determinant 0
        assert len({10, 20} & set(slate)) == len({40, 50} & set(slate)) == 1
    assert sum(40 in slate for slate in drawn) > 15  # e^(3/10) times as likely as 50
    with pytest.raises(InvalidParameter, match="rank"):
        one.slate(4, drawn=True)


def test_a_kernel_with_negative_eigenvalues_still_makes_slates() -> None:
    assert np.linalg.eigvalsh(KERNEL.kernel())[0] < 0
    server = PrivateSlates(KERNEL, rng=np.random.default_rng(1))
    assert server.slate(2).items == ("a", "c")
    assert server.slate(3).route == "kernel"
    assert set(server.slate(3).items) == {"a", "b", "c"}
    assert {server.slate(1, drawn=True).items for _ in range(60)} == {("a",), ("b",), ("c",)}
    assert server.slate(1).guarantee.delta == 1e-6
    signs = message_of(Similarity, (1, 2, 3), np.diag([-9, 4, 1]), Fraction(1), KERNEL.guarantee)
    assert PrivateSlates(signs).slate(3).items == (2, 3, 1)  # what is below 0 is noise, however large
    nothing = message_of(Similarity, (1, 2), np.array([[-5, 0], [0, -3]]), Fraction(1), KERNEL.guarantee)
    assert len(PrivateSlates(nothing).slate(2)) == 2


def test_a_readers_wishes_weigh_items() -> None:
    server = PrivateSlates(COUNTS, GENRES)
    assert server.slate(1, weights=[0.0, 0.0, 0.0, 1.0, 1.0]).items == (40,)
    assert server.slate(1, weights=[0.1, 1.0, 0.1, 0.1, 0.1]).items == (20,)
    assert server.slate(1, weights=[1.0, 1.0, 9.0, 1.0, 1.0]).items == (10,)  # cut to 1
    assert server.slate(1, weights=[0.5, 0.5, 0.5, 0.5, -40.0]).items == (10,)  # and to 0
    assert server.slate(1, weights=[False, False, False, True, False]).items == (40,)
    assert PrivateSlates(KERNEL).slate(1, weights=[0.1, 0.1, 1.0]).items == ("c",)


@pytest.mark.parametrize(
    "weights",
    [[1.0], [np.nan] * 5, [np.inf] * 5, "abc", list("abcde"), [None] * 5, [1j] * 5, [10**400] * 5, [[1.0], [1.0, 2.0]], {1: 1}],
    ids=lambda weights: str(weights)[:12],
)  # fmt: skip
def test_wishes_are_one_number_for_each_item(weights: Any) -> None:
    with pytest.raises(InvalidParameter, match="weights must be 5 finite numbers"):
        PrivateSlates(COUNTS, GENRES).slate(1, weights=weights)


def test_wishes_weigh_both_sides_of_a_kernel() -> None:
    kernel = np.array([[9, 6, 1], [6, 8, 2], [1, 2, 7]])
    server = PrivateSlates(
        message_of(Similarity, (1, 2, 3), kernel, Fraction(1), KERNEL.guarantee), rng=np.random.default_rng(5)
    )
    wishes = np.array([1.0, 0.6, 0.3])
    drawn = [server.slate(2, weights=wishes, drawn=True).items for _ in range(2_000)]
    pairs = [(1, 2), (1, 3), (2, 3)]
    weighed = wishes[:, None] * kernel * wishes
    top = np.linalg.eigvalsh(weighed)[-1]
    law = k_dpp_law(weighed + 1e-3 * top * np.eye(3), 2)  # with what makes every slate possible
    assert chisquare([drawn.count(pair) for pair in pairs], law * len(drawn)).pvalue > 1e-4
    for one_sided in (wishes[:, None] * kernel, kernel * wishes):
        values, vectors = np.linalg.eigh(one_sided)  # what a kernel that is not symmetric would be taken for
        mended = (vectors * np.maximum(values, 0.0)) @ vectors.T + 1e-3 * values[-1] * np.eye(3)
        assert chisquare([drawn.count(pair) for pair in pairs], k_dpp_law(mended, 2) * len(drawn)).pvalue < 1e-4


@pytest.mark.parametrize("k", [0, 6, 2.5, True])
def test_a_slate_has_one_to_all_items(k: Any) -> None:
    with pytest.raises(InvalidParameter):
        PrivateSlates(COUNTS, GENRES).slate(k)


def test_only_what_was_released_makes_a_server() -> None:
    for release, features in (
        (COUNTS.counts(), GENRES),
        (COUNTS, GENRES[:3]),
        (COUNTS, [[np.inf]] * 5),
        (KERNEL, GENRES[:3]),
    ):
        with pytest.raises(InvalidParameter):
            PrivateSlates(release, features)  # type: ignore[arg-type]
    assert "5 items" in repr(PrivateSlates(COUNTS))
    assert "99" not in repr(PrivateSlates(COUNTS))


def test_counts_that_are_all_noise_make_a_slate_too() -> None:
    nobody = message_of(Popularity, (1, 2, 3), np.array([-4, -9, -1]), Fraction(1), pure(1.0, ONE_USER))
    assert len(PrivateSlates(nobody, np.eye(3)).slate(3)) == 3
    assert len(PrivateSlates(nobody).slate(3)) == 3
    far_below = message_of(Popularity, (1, 2, 3), np.array([-90, 9, 8]), Fraction(1), pure(1.0, ONE_USER))
    assert PrivateSlates(far_below).slate(2).items == (2, 3)
