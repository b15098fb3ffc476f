"""The server's part of the moments: from sums of shares to a broadcast, with the mechanisms on the other side."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidMessage, InvalidParameter
from tacit.mechanisms import GramShare, PopularityShare, ReplayedNoise, moment_rhos
from tacit.models.moments import STEPS, noise_sds, triangle
from tacit.server.secure_sums import choose_head, moments_influence, no_information, shared_moments

ITEMS, DELTA = 300, 1e-6


def entities(rng: np.random.Generator, count: int = 5, users: int = 1500) -> list[NDArray[np.float64]]:
    """Users of two groups, who have items of the first or of the second hundred; the third hundred is rare."""
    found = []
    for _ in range(count):
        group = rng.integers(0, 2, users)
        likely = np.full((users, ITEMS), 0.003)
        likely[group == 0, :100] = likely[group == 1, 100:200] = 0.2
        found.append((rng.random((users, ITEMS)) < likely).astype(np.float64))
    return found


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20_240_229)


def test_sums_of_shares_become_what_they_are_sums_of(rng: np.random.Generator) -> None:
    rhos, honest = moment_rhos(8.0, DELTA), 3
    worlds = entities(rng)
    first = PopularityShare(ITEMS, rhos[0], DELTA, honest)
    sd, gram_sd = noise_sds(*rhos, shares=len(worlds), honest=honest)
    assert sd == pytest.approx(first.noise_law.sd * math.sqrt(len(worlds)))
    choice = choose_head(
        np.sum([first.release(rows, ReplayedNoise(h)).value.steps for h, rows in enumerate(worlds)], axis=0), ITEMS, sd
    )
    true = np.concatenate(worlds)
    true = true / np.maximum(1.0, np.sqrt(true.sum(axis=1, keepdims=True)))
    assert np.abs(choice.popularity - true.sum(axis=0)).max() < 5 * sd
    assert choice.seen == (choice.popularity > 3 * sd).sum()
    assert choice.informative
    assert choice.head.size == 6 * choice.seen // 10
    second = GramShare(ITEMS, choice.head, rhos[1], DELTA, honest)
    total = np.sum([second.release(rows, ReplayedNoise(50 + h)).value.steps for h, rows in enumerate(worlds)], axis=0)
    for given in (total, total.view(np.uint64)):
        shared = shared_moments(choice, given, gram_sd)
        assert (shared.popularity == choice.popularity).all()
        assert (shared.head == choice.head).all()
        assert (shared.popularity_sd, shared.gram_sd, shared.seen) == (sd, gram_sd, choice.seen)
        assert shared.informative
        # the heaviest direction is that all are popular, the next that there are two groups
        apart = shared.pseudo_rows[1]
        groups = np.where(choice.head < 100, 1.0, -1.0)[choice.head < 200]
        assert abs(np.corrcoef(apart[choice.head < 200], groups)[0, 1]) > 0.8


def test_the_same_sums_make_the_same_broadcast(rng: np.random.Generator) -> None:
    total = rng.integers(4 * STEPS, 1000 * STEPS, ITEMS)
    gram = rng.integers(-STEPS, STEPS, triangle(180))
    one, other = (shared_moments(choose_head(total, ITEMS, 1.0), gram, 0.01) for _ in range(2))
    assert one.head.size == 180
    assert one.pseudo_rows.tobytes() == other.pseudo_rows.tobytes()


def test_noise_alone_gives_no_head_and_no_information() -> None:
    rhos = moment_rhos(1.0, DELTA)
    share = PopularityShare(5000, rhos[0], DELTA)
    choice = choose_head(share.release([], ReplayedNoise(1)).value.steps, 5000, share.noise_law.sd)
    assert not choice.informative
    assert 0 < choice.seen < 30
    for shared in (no_information(choice, 2.0), shared_moments(choice, np.zeros(0, dtype=np.int64), 2.0)):
        assert not shared.informative
        assert shared.pseudo_rows.shape == (0, 0)
        assert (shared.popularity == choice.popularity).all()
        assert (shared.seen, shared.popularity_sd) == (choice.seen, share.noise_law.sd)


def test_a_head_without_its_matrix_is_no_information_either() -> None:
    choice = choose_head(np.full(ITEMS, 100 * STEPS), ITEMS, 1.0)
    assert choice.informative
    assert not no_information(choice, 2.0).informative


@pytest.mark.parametrize(
    "total", [np.zeros(ITEMS - 1, dtype=np.int64), np.zeros(ITEMS), np.zeros((1, ITEMS), dtype=np.int64), [0] * 3, None]
)
def test_sums_of_another_length_or_kind_are_refused(total: Any) -> None:
    with pytest.raises(InvalidMessage, match="popularity sum"):
        choose_head(total, ITEMS, 1.0)
    choice = choose_head(np.full(ITEMS, 100 * STEPS), ITEMS, 1.0)
    with pytest.raises(InvalidMessage, match="Gram sum"):
        shared_moments(choice, total, 1.0)


def test_sums_below_0_are_read_as_such_from_64_bits() -> None:
    total = np.full(ITEMS, -3 * STEPS)
    assert (choose_head(total.view(np.uint64), ITEMS, 1.0).popularity == -3.0).all()


@pytest.mark.parametrize("sd", [0.0, -1.0, math.nan])
def test_a_deviation_outside_its_range_is_refused(sd: float) -> None:
    with pytest.raises(InvalidParameter):
        choose_head(np.zeros(ITEMS, dtype=np.int64), ITEMS, sd)


def shares_of(
    worlds: list[NDArray[np.float64]], rhos: tuple[float, float]
) -> tuple[dict[str, NDArray[np.int64]], dict[str, NDArray[np.int64]]]:
    first = PopularityShare(ITEMS, rhos[0], DELTA, 1)
    popularity = {f"e{h}": first.release(rows, ReplayedNoise(h)).value.steps for h, rows in enumerate(worlds)}
    total = np.sum(list(popularity.values()), axis=0)
    head = choose_head(total, ITEMS, noise_sds(*rhos, shares=len(worlds))[0]).head
    second = GramShare(ITEMS, head, rhos[1], DELTA, 1)
    return popularity, {
        f"e{h}": second.release(rows, ReplayedNoise(50 + h)).value.steps for h, rows in enumerate(worlds)
    }


def test_whoever_says_what_the_others_say_moves_nothing() -> None:
    rhos = moment_rhos(200.0, DELTA)
    popularity, gram = shares_of(entities(np.random.default_rng(1), count=1), rhos)
    same = [dict.fromkeys("abc", one["e0"]) for one in (popularity, gram)]
    for moved in moments_influence(same[0], same[1], rhos).values():
        assert moved.popularity < 1e-12
        assert moved.head == 0.0
        assert moved.rows < 0.05  # a third of the noise's threshold, of which the sums without one have less


def test_each_part_of_the_influence_sees_what_differs_in_it(rng: np.random.Generator) -> None:
    rhos = moment_rhos(50.0, DELTA)
    worlds = entities(rng, count=4)
    popularity, gram = shares_of(worlds, rhos)
    alike = moments_influence(popularity, gram, rhos)
    assert max(max(moved) for moved in alike.values()) < 0.2
    mean = np.mean(list(popularity.values()), axis=0)
    others = np.mean([popularity[name] for name in ("e0", "e1", "e2")], axis=0)
    assert alike["e3"].popularity == pytest.approx(np.linalg.norm(mean - others) / np.linalg.norm(mean))
    louder = moments_influence(popularity | {"e3": popularity["e3"] * 3}, gram, rhos)["e3"]
    assert louder.popularity > 2 * max(alike["e3"].popularity, louder.rows)
    assert louder.rows == alike["e3"].rows
    pushed = popularity["e3"].copy()
    pushed[250:290] += 5000 * STEPS  # items that nobody has
    assert moments_influence(popularity | {"e3": pushed}, gram, rhos)["e3"].head > 0.2
    odd = moments_influence(popularity, gram | {"e3": gram["e3"] * 4}, rhos)
    assert odd["e3"].rows > 3 * odd["e0"].rows
    assert odd["e3"].popularity == alike["e3"].popularity


def test_without_a_head_only_the_popularity_moves() -> None:
    rng, rhos = np.random.default_rng(3), moment_rhos(0.1, DELTA)
    popularity = {name: rng.integers(-(10**8), 10**8, ITEMS) for name in "ab"}
    for moved in moments_influence(popularity, {}, rhos).values():
        assert moved.popularity > 0.0
        assert moved[1:] == (0.0, 0.0)
    nothing = dict.fromkeys("ab", np.zeros(ITEMS, dtype=np.int64))
    assert moments_influence(nothing, {}, rhos)["a"] == (0.0, 0.0, 0.0)
    with pytest.raises(InvalidParameter, match="at least 2"):
        moments_influence({"a": popularity["a"]}, {}, rhos)
