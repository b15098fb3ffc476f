"""A profile has no way out: no text, no pickle, no copy, no error shows what is in it."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device, Profile
from tacit.errors import InvalidParameter, UnknownName
from tacit.models.features import FoldedTaste
from tests.unit.device.small_world import BUDGET, FILMS, SHOP, Shop, opened
from tests.unit.test_house import SOURCE, calls_of

SECRET = 4.321


@pytest.fixture
def device(tmp_path: Path):
    with opened(tmp_path / "me.db") as opened_device:
        yield opened_device


def ratings(device: Device) -> dict[int, float]:
    codes, values = device._state.profile.ratings()
    return {int(device.items.id(code)): value for code, value in zip(codes.tolist(), values.tolist(), strict=True)}


def test_items_are_rated_by_title_or_id(device: Device) -> None:
    device.rate({"Jumanji (1995)": 5, 32: 3, "the matrix": 4.5})
    device.rate({2: 1})
    assert ratings(device) == {2: 1.0, 13: 4.5, 32: 3.0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"Heat (1995)": SECRET, "Alien (1979)": SECRET},
        {"Heat (1995)": SECRET, "Sabrina": SECRET},  # two films
        {"Heat (1995)": SECRET, 4: SECRET},
        {"Heat (1995)": SECRET, True: SECRET},
        {"Heat (1995)": SECRET, None: SECRET},
        {"Heat (1995)": SECRET, 2: float("nan")},
        {"Heat (1995)": SECRET, 2: float("inf")},
        {"Heat (1995)": SECRET, 2: "five"},
        {"Heat (1995)": SECRET, 2: None},
        {"Heat (1995)": SECRET, 2: True},
        {"Heat (1995)": SECRET, 2: 1.1e6},
        {"Heat (1995)": SECRET, 2: -1e300},
        {"Heat (1995)": SECRET, 2: 10**400},
        {"Heat (1995)": SECRET, 10**30: SECRET},
        {"Heat (1995)": SECRET, (1, 2): SECRET},
    ],
    ids=lambda wrong: repr(list(wrong.items())[1])[:40],
)
def test_ratings_come_all_or_none_and_the_error_shows_neither_film_nor_rating(device: Device, wrong) -> None:
    with pytest.raises((UnknownName, InvalidParameter)) as problem:
        device.rate(wrong)
    assert "rating 2" in str(problem.value)
    for shown in (str(SECRET), "Heat", "Alien", "Sabrina", "five", "nan", "inf,"):
        assert shown not in str(problem.value)
    assert problem.value.__cause__ is None
    assert problem.value.__context__ is None  # where a logger that prints all there is would find the title
    assert ratings(device) == {}


@pytest.mark.parametrize("wrong", [[("Heat (1995)", SECRET)], [2, 3], "Heat (1995)", None])
def test_ratings_that_are_no_mapping_are_refused(device: Device, wrong) -> None:
    with pytest.raises(InvalidParameter, match="by item"):
        device.rate(wrong)


def test_extreme_ratings_have_features(tmp_path: Path) -> None:
    factors = np.random.default_rng(0).normal(size=(len(FILMS), 3))
    shop = Shop(SHOP.items, FoldedTaste(factors, np.zeros(len(FILMS)), 3.0, np.ones(4)))
    with Device(tmp_path / "me.db", shop, budget=BUDGET) as device:
        device.rate({2: 1e6, 3: -1e6, 5: 1e6})
        assert np.abs(device._state.features()).max() == 1.0
        assert not device.ask().empty


def test_a_rating_can_be_forgotten(device: Device) -> None:
    device.rate({2: 5, 3: 4})
    device.forget("Heat (1995)")
    device.forget(5)  # was not there
    assert ratings(device) == {2: 5.0}
    with pytest.raises(UnknownName) as problem:
        device.forget("Alien (1979)")
    assert "Alien" not in str(problem.value)
    assert problem.value.__context__ is None


def test_texts_show_nothing_of_the_profile(device: Device) -> None:
    empty = repr(device._state.profile), str(device._state.profile), repr(device), str(device)
    assert empty[2] == "Device(8 items, 8 features)"
    device.rate({2: SECRET, 3: 4})
    assert (repr(device._state.profile), str(device._state.profile), repr(device), str(device)) == empty
    assert str(SECRET) not in repr(device.readings(0.1)) + repr(device.statement())


def test_private_counts_do_not_show_in_the_text_of_readings(device: Device) -> None:
    device.rate({2: 5, 21: 1})  # both blocks hold something: the bound is not that of an empty one
    few = device.readings(0.1)
    device.rate({3: 5, 13: 5, 5: 1, 8: 1})
    many = device.readings(0.1)
    assert few.one_rating is not None
    assert many.one_rating is not None
    assert few.one_rating.added != many.one_rating.added
    assert repr(few) == repr(many)
    assert repr(few.one_rating) == repr(many.one_rating) == "OneRating(genres=3, private)"


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_neither_profile_nor_device_is_written_or_copied(way, device: Device) -> None:
    profile = Profile()
    profile.rate({0: SECRET})
    device.rate({2: SECRET})
    readings = device.readings(0.1)
    for private in (profile, device, readings, readings.one_rating):
        with pytest.raises(InvalidParameter, match="private"):
            way(private)


def test_nothing_private_is_in_the_file(tmp_path: Path) -> None:
    """The file of a device holds charges and released signals; ratings stay in its memory."""
    with opened(tmp_path / "me.db") as device:
        device.rate({2: SECRET})
        device.ask()
    content = b"".join(path.read_bytes() for path in tmp_path.glob("me.db*"))
    for private in (str(SECRET).encode(), b"Jumanji", SECRET.hex().encode()):
        assert private not in content


# What is written beside charges, memos and displays: the policy that was applied to a choice, which is public. And the one door
# to a network, which takes messages only.
WRITTEN = {
    ("private_selection.py", "to_json"): 1,
    ("private_selection.py", "dumps"): 1,
    ("conversation.py", "to_json"): 1,
    ("conversation.py", "dumps"): 1,
}


def test_only_releases_and_memos_become_messages_on_a_device() -> None:
    """Nobody on the device puts numbers into a signal, items into an impression or a click into an engagement by hand."""
    for path in (SOURCE / "device").rglob("*.py"):
        assert calls_of("Signal", path) == 0, path
        for maker in ("to_json", "dump", "dumps", "save", "open"):
            assert calls_of(maker, path) == WRITTEN.get((path.name, maker), 0), path
        for kind in ("Impression", "ShuffledReport", "Engagement"):
            assert calls_of(kind, path) == 0, path
            assert calls_of(f"{kind}.from_json", path) == (path.name == "private_selection.py"), (
                path
            )  # of what is on the disk
    assert calls_of("Signal.from_release", SOURCE / "device" / "multi_selection.py") == 1
    assert calls_of("Impression.from_release", SOURCE / "device" / "private_selection.py") == 1
    assert calls_of("Engagement.from_release", SOURCE / "device" / "private_selection.py") == 1
