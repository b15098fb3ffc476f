"""Reading noisy moments: which items make a head, what is left of a Gram matrix without its noise, two controls."""

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.models.moments import (
    STEPS,
    SharedMoments,
    constant,
    data_free,
    gram_from,
    head_of,
    noise_sds,
    pseudo_rows,
    seen_items,
    triangle,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_229)


def popularity(items: int, seen: int) -> np.ndarray[Any, Any]:
    """So many items well above three deviations of 1, the most popular last."""
    values = np.zeros(items)
    values[items - seen :] = 3.001 + np.arange(seen)
    return values


def shared(rng: np.random.Generator, items: int = 200, head: int = 50, rows: int = 4) -> SharedMoments:
    chosen = np.sort(rng.permutation(items)[:head])
    return SharedMoments(rng.random(items) * 90, chosen, rng.normal(size=(rows, head)) * 5, 3.0, 1.5, 120)


# --- the head


@pytest.mark.parametrize(
    ("items", "seen", "size"),
    [
        (1000, 13, None),  # 10 + .004 items = 14
        (1000, 14, 60),
        (1027, 120, 72),
        (1027, 187, 112),  # .6 of them, rounded down
        (1027, 265, 159),
        (3706, 24, None),  # 24.824
        (3706, 25, 60),
        (30, 29, 30),  # fewer items than the smallest head
        (5000, 2499, 1499),
        (5000, 2501, 1500),
        (5000, 4999, 1500),
    ],
)
def test_a_head_is_six_tenths_of_the_items_seen_within_its_limits_or_nothing(
    items: int, seen: int, size: int | None
) -> None:
    noisy = popularity(items, seen)
    head = head_of(noisy, 1.0, items)
    assert seen_items(noisy, 1.0) == seen
    if size is None:
        assert head is None
    else:
        assert head is not None
        assert head.size == size
        least = min(size, seen)
        assert head.tolist()[-least:] == list(range(items - least, items))  # the most popular ones, ascending
        assert head.tolist()[: size - least] == list(range(size - least))  # and the first of those that tie


def test_an_item_at_exactly_three_deviations_is_not_seen_and_ties_go_to_the_first() -> None:
    assert seen_items([3.0, 3.0001, -9.0], 1.0) == 1
    flat = np.full(200, 5.0)
    head = head_of(flat, 1.0, 200)
    assert head is not None
    assert head.tolist() == list(range(120))


def test_noise_alone_has_no_head(rng: np.random.Generator) -> None:
    for items in (500, 5000, 50_000):
        assert head_of(rng.normal(0, 7.0, items), 7.0, items) is None


@pytest.mark.parametrize("bad", [[1.0, math.nan], [1.0], [1.0, math.inf], [[1.0, 2.0]]])
def test_a_popularity_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        head_of(bad, 1.0, 2)


@pytest.mark.parametrize("sd", [0.0, -1.0, math.nan, math.inf])
def test_a_deviation_that_is_none_is_refused(sd: float) -> None:
    with pytest.raises(InvalidParameter):
        head_of(np.ones(100), sd, 100)
    with pytest.raises(InvalidParameter):
        pseudo_rows(np.eye(3), sd)


# --- the Gram matrix


def test_a_vector_and_its_matrix() -> None:
    vector = np.array([1, 2, 3, 10, 20, 30]) * STEPS
    root = math.sqrt(2)
    expected = [[root, 10, 20], [10, 2 * root, 30], [20, 30, 3 * root]]
    assert gram_from(vector, 3) == pytest.approx(np.array(expected), rel=1e-15)
    assert triangle(3) == 6
    assert gram_from(np.zeros(0, dtype=np.int64), 0).shape == (0, 0)
    with pytest.raises(InvalidParameter, match="6 numbers"):
        gram_from(vector[:5], 3)


def test_pseudo_rows_are_the_heavy_eigenvectors_without_the_edge_of_the_noise(rng: np.random.Generator) -> None:
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    sd = 1.0 / (1.8 * math.sqrt(6))  # an edge at 1
    gram = basis @ np.diag([9.0, -7.0, 5.0, 1.0001, 0.9999, 0.0]) @ basis.T
    rows = pseudo_rows(gram, sd)
    assert rows.shape == (3, 6)
    assert (rows**2).sum(axis=1) == pytest.approx([8.0, 4.0, 0.0001], rel=1e-6)  # the heaviest first
    kept = basis[:, [0, 2, 3]]
    assert rows.T @ rows == pytest.approx(kept @ np.diag([8.0, 4.0, 0.0001]) @ kept.T, abs=1e-12)
    assert pseudo_rows(np.zeros((5, 5)), 1.0).shape == (0, 5)
    assert pseudo_rows(np.zeros((0, 0)), 1.0).shape == (0, 0)


def test_pseudo_rows_find_planted_directions_under_noise_and_little_else(rng: np.random.Generator) -> None:
    size, sd = 300, 1.0
    planted = np.linalg.qr(rng.normal(size=(size, 2)))[0]
    upper = np.triu(rng.normal(0, sd, (size, size)), 1)
    noise = upper + upper.T + np.diag(rng.normal(0, math.sqrt(2) * sd, size))
    assert np.linalg.eigvalsh(noise)[-1] == pytest.approx(2 * sd * math.sqrt(size), rel=0.06)
    rows = pseudo_rows(noise + 150 * planted @ planted.T, sd)
    assert np.linalg.norm(rows[:2] @ planted) ** 2 > 0.9 * (rows[:2] ** 2).sum()
    assert (rows[2:] ** 2).sum() < 0.2 * (rows[:2] ** 2).sum()
    assert len(pseudo_rows(noise, sd)) < 0.05 * size  # the tail of the noise above .9 of its edge


@pytest.mark.parametrize("bad", [np.zeros((2, 3)), np.full((2, 2), math.nan)])
def test_a_matrix_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameter):
        pseudo_rows(bad, 1.0)


def test_the_deviations_of_a_sum_grow_with_its_shares_and_fall_with_those_that_protect() -> None:
    assert noise_sds(0.5, 0.25) == (1.0, 1.0)
    assert noise_sds(0.5, 0.25, shares=9, honest=4) == (1.5, 1.5)
    rho = 0.024356
    assert noise_sds(0.15 * rho, 0.85 * rho) == pytest.approx((11.6987, 3.4750), rel=2e-5)
    for bad in ({"shares": 0}, {"honest": 0}):
        with pytest.raises(InvalidParameter):
            noise_sds(0.5, 0.25, **bad)


# --- the controls


def test_the_data_free_control_is_noise_of_the_same_size_and_nothing_else(rng: np.random.Generator) -> None:
    true = shared(rng, items=5000, head=400)
    other = SharedMoments(-true.popularity, true.head[::-1] * 0, true.pseudo_rows * 9, 3.0, 1.5, 7)
    control, again = (data_free(one, np.random.default_rng(5)) for one in (true, other))
    assert (control.popularity == again.popularity).all()  # the release itself does not enter
    assert (control.pseudo_rows == again.pseudo_rows).all()
    assert control.popularity.std() == pytest.approx(3.0, rel=0.05)
    assert control.head.size == 400
    assert control.popularity[control.head].min() >= np.sort(control.popularity)[-400]
    assert 0 < len(control.pseudo_rows) < 20
    assert control.informative


def test_the_noise_of_the_control_is_wider_on_the_diagonal(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(
        "tacit.models.moments.pseudo_rows", lambda gram, sd: found.append((gram, sd)) or np.zeros((0, 900))
    )
    data_free(shared(rng, items=1000, head=900), rng)
    (gram, sd), *_ = found
    assert sd == 1.5
    assert (gram == gram.T).all()
    assert np.diagonal(gram).std() == pytest.approx(1.5 * math.sqrt(2), rel=0.12)
    assert gram[np.triu_indices(900, 1)].std() == pytest.approx(1.5, rel=0.01)


def test_the_constant_control_says_the_same_of_all_items_and_weighs_as_much(rng: np.random.Generator) -> None:
    true = shared(rng)
    control = constant(true)
    assert np.unique(control.popularity).size == 1
    assert np.unique(control.pseudo_rows).size == 1
    assert (control.pseudo_rows**2).sum() == pytest.approx((true.pseudo_rows**2).sum())
    assert (control.head == true.head).all()
    nothing = SharedMoments(np.zeros(9), np.arange(3), np.zeros((0, 3)), 1.0, 1.0, 0)
    assert constant(nothing).pseudo_rows.shape == (0, 3)


def test_a_release_without_a_head_holds_no_information() -> None:
    assert not SharedMoments(np.zeros(4), np.zeros(0, dtype=np.int64), np.zeros((0, 0)), 1.0, 1.0, 0).informative
