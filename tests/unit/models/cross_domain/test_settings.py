"""Public constants of a transfer: what is refused, what follows from a budget, and that neither part of it ever gets less."""

import math
from dataclasses import FrozenInstanceError, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.guarantees import mu_for
from tacit.models.cross_domain.transfer import MOST_HEAD, TransferSettings

MUS = [mu_for(epsilon, 1e-6) for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 5.0, "high": 5.0},
        {"low": math.nan},
        {"high": math.inf},
        {"centre": 5.5},
        {"centre": "4"},
        {"clip": 0.0},
        {"offset_norm": -1.0},
        {"mask": 0.0},
        {"pair_norm": math.inf},
        {"users": 0},
        {"users": 1e4},
        {"head": -1},
        {"head": MOST_HEAD + 1},
        {"offset_share": 0.0},
        {"offset_share": 1.0},
        {"offset_variance": 0.0},
        {"rating_variance": math.nan},
        {"level_share": -0.1},
        {"level_ratings": -1.0},
        {"taste": 0.0},
        {"taste": 1.0},
        {"most_directions": 0},
        {"most_directions": 65},
        {"edge": 0.99},
        {"reach": 0.0},
    ],
)
def test_a_setting_out_of_range_is_refused_by_its_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        TransferSettings(**wrong)
    assert next(iter(wrong)) in str(refused.value)


def test_settings_are_frozen_plain_numbers() -> None:
    settings = TransferSettings(clip=np.float32(2.0), users=np.int64(500))  # type: ignore[arg-type]
    assert (type(settings.clip), type(settings.users)) == (float, int)
    with pytest.raises(FrozenInstanceError):
        settings.clip = 3.0  # type: ignore[misc]


def test_a_larger_budget_or_more_users_never_take_from_either_part() -> None:
    for users in (100, 1_000, 6_000, 20_000, 200_000, 10**8):
        settings = TransferSettings(users=users)
        parts = [(share * mu**2, (1.0 - share) * mu**2) for mu in MUS for share in [settings.share_of_offsets(mu)]]
        for (first, second), (more_first, more_second) in pairwise(parts):
            assert more_first > first
            assert more_second > second
        heads = [settings.head_size(10**6, mu) for mu in MUS]
        assert heads == sorted(heads)
        assert all(0.2 <= settings.share_of_offsets(mu) <= 0.85 for mu in MUS)


def test_the_head_is_a_tenth_of_users_times_mu_within_bounds() -> None:
    settings = TransferSettings(users=6_000)
    assert settings.head_size(10_000, 0.45) == 270
    assert settings.head_size(100, 0.45) == 100
    assert settings.head_size(10_000, 1e9) == MOST_HEAD
    assert settings.head_size(10_000, 1e-9) == 0  # one item has no pair
    assert settings.head_size(1, 0.45) == 0
    assert TransferSettings(head=40).head_size(10_000, 1.0) == 40
    assert TransferSettings(head=40).head_size(30, 1.0) == 30
    assert settings.share_of_offsets(0.5) == pytest.approx(0.5)
    assert TransferSettings(offset_share=0.33).share_of_offsets(5.0) == 0.33
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidParameter):
            settings.head_size(10, wrong)
        with pytest.raises(InvalidParameter):
            settings.share_of_offsets(wrong)


def test_another_scale_stretches_every_length() -> None:
    """Ratings times 25, from 25 to 125: lengths grow by 25, variances by 625, everything else stays."""
    stars, hundred = TransferSettings(), TransferSettings.for_scale(25.0, 125.0)
    lengths = {"low", "high", "centre", "clip", "offset_norm", "mask", "pair_norm", "reach"}
    for field in fields(TransferSettings):
        factor = 25.0 if field.name in lengths else 625.0 if field.name.endswith("_variance") else 1.0
        before, after = getattr(stars, field.name), getattr(hundred, field.name)
        assert (after is None and before is None) or after == pytest.approx(before * factor), field.name
    assert TransferSettings.for_scale(1.0, 5.0) == stars
    assert TransferSettings.for_scale(0.5, 5.0, users=7).users == 7
    with pytest.raises(InvalidParameter):
        TransferSettings.for_scale(5.0, 1.0)


def test_directions_explain_at_most_half() -> None:
    settings = TransferSettings(taste=0.04)
    assert settings.explained(2.5) == pytest.approx(0.1)
    assert settings.explained(64.0) == 0.5
