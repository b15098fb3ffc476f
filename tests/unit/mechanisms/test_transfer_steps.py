"""Two steps of moments in one, their limits, and what is refused."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InvalidInput, InvalidParameter
from tacit.mechanisms import (
    NoisyOffsets,
    OffsetSums,
    PairMoments,
    RatingMoments,
    ReplayedNoise,
)
from tacit.mechanisms.rating_rows import CLIP
from tacit.mechanisms.samplers.integers import GridNoise
from tests.contracts.mechanism import SECRET
from tests.unit.mechanisms.test_rating_bounds import as_csr, odd_cells
from tests.unit.mechanisms.transfer_tables import (
    DELTA,
    FIXED,
    ITEMS,
    MOMENTS,
    MU,
    OFFSETS,
    OWN,
    PAIRS,
    PARTS,
    TRANSFER,
    costs,
    hostile,
    slow_moments,
    slow_offsets,
    slow_pairs,
)

# --- two steps in one


def test_the_losses_of_both_steps_add_up_to_mu() -> None:
    for share in (0.2, 0.7, 1e-9, 0.999):
        mechanism = replace(TRANSFER, mu=1.2345, offset_share=share)
        first, second = mechanism.mus
        assert Fraction(first) ** 2 + Fraction(second) ** 2 <= Fraction(1.2345) ** 2
        assert math.hypot(first, second) == pytest.approx(1.2345, rel=1e-12)
        assert first**2 == pytest.approx(share * 1.2345**2, rel=1e-12)
        assert (mechanism.offsets.mu, mechanism.pairs(range(3)).mu) == (first, second)


def test_settings_reach_the_step_they_are_meant_for() -> None:
    mechanism = replace(TRANSFER, offset_norm=8.0, mask=0.25, pair_norm=3.0, bounds=FIXED)
    assert (mechanism.offsets.norm, mechanism.offsets.mask, mechanism.pairs(range(2)).norm) == (8.0, 0.25, 3.0)
    assert mechanism.offsets.bounds is mechanism.pairs(range(2)).bounds is FIXED


def noisy(counts: list[int]) -> NoisyOffsets:
    return NoisyOffsets(np.array([10**9 - i for i in range(6)] + counts), OFFSETS.noise_law.step, Fraction(1, 2), 1.0)


@pytest.mark.parametrize(
    ("counts", "head"),
    [
        ([5, 9, 1, 7, 3, 2], [0, 1, 3]),
        ([-5, -9, -1, -7, -3, -2], [2, 4, 5]),
        ([4, 4, 4, 4, 4, 4], [0, 1, 2]),
        ([0, 4, 9, 4, 4, 1], [1, 2, 3]),
    ],
)
def test_the_head_has_the_largest_noisy_counts(counts: list[int], head: list[int]) -> None:
    assert TRANSFER.head_of(noisy(counts)).tolist() == head


def test_the_head_is_chosen_from_what_was_released(rng: np.random.Generator) -> None:
    """With so much noise true counts would choose another head in nearly all releases."""
    rows = np.where(np.arange(ITEMS) < 3, 4.0, math.nan)[None, :].repeat(30, axis=0)
    loud = replace(TRANSFER, mu=0.01)
    heads = set()
    for seed in range(12):
        value = loud.release(rows, ReplayedNoise(seed)).value
        assert value.head.tolist() == loud.head_of(value.offsets).tolist()
        heads.add(tuple(value.head.tolist()))
    assert len(heads) > 4


def test_without_a_head_the_offsets_have_it_all() -> None:
    mechanism = replace(TRANSFER, head_size=0)
    assert mechanism.offsets.mu == MU
    value = mechanism.release(np.full((2, ITEMS), 3.0)).value
    assert (value.pairs, value.head.size, value.matrix().shape, value.pair_sd) == (None, 0, (0, 0), 0.0)
    assert mechanism.guarantee == TRANSFER.guarantee


def test_a_head_larger_than_the_catalogue_is_the_catalogue() -> None:
    value = replace(TRANSFER, head_size=4096).release(np.full((2, ITEMS), 3.0)).value
    assert value.head.tolist() == list(range(ITEMS))


def test_both_steps_draw_noise_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Fraction, int]] = []

    def noted(law: GridNoise, count: int, noise: Any) -> NDArray[np.int64]:
        asked.append((law.width, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(GridNoise, "sample", noted)
    value = TRANSFER.release(np.full((2, ITEMS), 3.0)).value
    assert asked == [
        (TRANSFER.offsets.noise_law.width, 2 * ITEMS),
        (TRANSFER.pairs(range(3)).noise_law.width, 3),
    ]
    assert value.pair_sd == TRANSFER.pairs(range(3)).noise_law.sd
    assert value.offsets.sd == TRANSFER.offsets.noise_law.sd


def test_the_steps_cost_at_most_mu_together_for_every_head(rng: np.random.Generator) -> None:
    for row in hostile(rng)[::9]:
        first = costs(TRANSFER.offsets, TRANSFER.offsets.totals(row[None, :])) * Fraction(TRANSFER.mus[0]) ** 2
        for head in combinations(range(ITEMS), 3):
            pairs = TRANSFER.pairs(np.array(head))
            second = costs(pairs, pairs.totals(row[None, :])) * Fraction(TRANSFER.mus[1]) ** 2
            assert first + second <= Fraction(MU) ** 2


# --- at the limits


def test_the_largest_lengths_and_marks_are_exact(rng: np.random.Generator) -> None:
    """1,024 clips are the longest norm and, for up to 64 items, the heaviest mark."""
    users = [[(item, value) for item in range(64)] for value in (1.0, 3.0, 5.0)] + odd_cells(rng, 9, 64)
    users.append([(item, 1.0 + 4.0 * (item % 2)) for item in range(64)])
    for bounds in (OWN, FIXED):
        long = {"norm": 1024 * bounds.clip, "bounds": bounds}
        offsets = OffsetSums(64, mu=MU, delta=DELTA, mask=1024 * bounds.clip, **long)  # type: ignore[arg-type]
        assert offsets.totals(as_csr(users, 64)).tolist() == slow_offsets(users, offsets)
        for user in users:
            assert costs(offsets, offsets.totals(as_csr([user], 64))) <= 1
        pairs = PairMoments(64, tuple(range(64)), mu=MU, delta=DELTA, **long)  # type: ignore[arg-type]
        assert pairs.totals(as_csr(users, 64)).tolist() == slow_pairs(users, pairs)
        moments = RatingMoments(64, 9, mu=MU, delta=DELTA, most_items=64, **long)  # type: ignore[arg-type]
        assert moments.totals(as_csr(users, 64)).tolist() == slow_moments(users, moments)


@pytest.mark.parametrize(("items", "clips"), [(64, 1024), (1 << 20, 8), (1 << 22, 4)])
def test_a_mark_whose_squares_would_not_fit_is_refused(items: int, clips: int) -> None:
    assert OffsetSums(items, OWN, MU, DELTA, mask=OWN.clip * clips).mask_in_steps == clips * CLIP
    for more_items, heavier in ((items + 1, 0), (items, 1)):
        if more_items <= 1 << 22 and clips + heavier <= 1024:
            with pytest.raises(InvalidParameter, match=f"at most .* for {more_items} items"):
                OffsetSums(more_items, OWN, MU, DELTA, mask=OWN.clip * (clips + heavier))
    with pytest.raises(InvalidParameter, match="mask"):
        replace(TRANSFER, items=65, mask=1024 * OWN.clip)


# --- what is refused


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("no items", lambda: replace(OFFSETS, items=0)),
    ("bounds from the data", lambda: replace(OFFSETS, bounds=None)),
    ("mu 0", lambda: replace(OFFSETS, mu=0.0)),
    ("delta 0", lambda: replace(PAIRS, delta=0.0)),
    ("delta 1", lambda: replace(MOMENTS, delta=1.0)),
    ("norm nan", lambda: replace(PAIRS, norm=math.nan)),
    ("norm too short", lambda: replace(PAIRS, norm=1e-4)),
    ("norm too long", lambda: replace(OFFSETS, norm=1e9)),
    ("mask 0", lambda: replace(OFFSETS, mask=0.0)),
    ("too much noise", lambda: replace(PAIRS, mu=1e-4)),
    ("too much noise of moments", lambda: replace(MOMENTS, mu=1e-4)),
    ("too much noise of a step", lambda: replace(TRANSFER, mu=0.02, offset_share=1.0 - 1e-9)),
    ("head of one", lambda: replace(PAIRS, head=(1,))),
    ("head twice", lambda: replace(PAIRS, head=(1, 1))),
    ("head beyond", lambda: replace(PAIRS, head=(1, 6))),
    ("head below", lambda: replace(PAIRS, head=(1, -1))),
    ("head size 1", lambda: replace(TRANSFER, head_size=1)),
    ("head size 5000", lambda: replace(TRANSFER, head_size=5000)),
    ("share 1", lambda: replace(TRANSFER, offset_share=1.0)),
    ("no target", lambda: replace(TRANSFER, n_source=6)),
    ("no source", lambda: replace(MOMENTS, n_source=0)),
    ("most items 0", lambda: replace(MOMENTS, most_items=0)),
    ("too many items", lambda: replace(MOMENTS, items=4097)),
    ("three shares", lambda: replace(MOMENTS, shares=(0.5, 0.3, 0.2))),  # type: ignore[arg-type]
    ("a share of 0", lambda: replace(MOMENTS, shares=(0.5, 0.3, 0.2, 0.0))),
    ("no shares", lambda: replace(MOMENTS, shares=None)),  # type: ignore[arg-type]
    ("bounds of nothing", lambda: replace(TRANSFER, bounds="1 to 5")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("make", [make for _, make in REFUSED], ids=[what for what, _ in REFUSED])
def test_parameters_are_refused_when_a_mechanism_is_built(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
@pytest.mark.parametrize("rows", [[[SECRET] * ITEMS], np.full((1, 5), SECRET), np.full(6, SECRET), None], ids=str)
def test_other_tables_are_refused_and_never_shown(mechanism: Any, rows: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        mechanism.release(rows)
    assert "4242" not in str(refused.value)


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_too_many_users_are_refused_before_a_row_is_read(mechanism: Any) -> None:
    with pytest.raises(InvalidInput, match="fewer than"):
        mechanism.release(np.broadcast_to(np.float64(3.0), (1 << 30, ITEMS)))


@pytest.mark.parametrize("mechanism", [*PARTS[:3], TRANSFER], ids=lambda m: m.name)
def test_a_table_of_blocks_is_refused(mechanism: Any) -> None:
    table = np.zeros((4, ITEMS))
    table[0] = SECRET  # fills all blocks
    with pytest.raises(InvalidInput, match="csr_array") as refused:
        mechanism.release(sparse.bsr_array(table, blocksize=(4, 2)))
    assert "4242" not in str(refused.value)


def test_nothing_is_drawn_before_the_table_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GridNoise, "sample", lambda *_: pytest.fail("noise was drawn"))
    with pytest.raises(InvalidInput):
        TRANSFER.release(np.full((1, 5), 1.0))


def test_the_law_of_a_number_is_stated() -> None:
    total = 12_345
    for mechanism in (OFFSETS, PAIRS):
        sd = math.sqrt(mechanism.noise_law.width)
        assert float(mechanism.noise_law.pmf(total, total)) == pytest.approx(
            1.0 / sd / math.sqrt(2 * math.pi), rel=1e-9
        )
        assert float(mechanism.noise_law.pmf(total + round(sd), total)) == pytest.approx(
            math.exp(-0.5) / sd / math.sqrt(2 * math.pi), rel=1e-3
        )
    sd = math.sqrt(MOMENTS.noise_laws[3].width)
    assert float(MOMENTS.noise_laws[3].pmf(5, 5)) == pytest.approx(math.erf(0.5 / sd / math.sqrt(2.0)), rel=1e-9)
