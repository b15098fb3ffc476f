"""A profile has no way out: no text, no pickle, no copy, no error shows what is in it."""

import copy
import pickle
from pathlib import Path

import pytest

from tacit.device import Device, Profile
from tacit.errors import InvalidParameter, UnknownName
from tests.unit.device.small_world import FILMS, opened
from tests.unit.test_house import SOURCE, calls_of

SECRET = 4.321


@pytest.fixture
def device(tmp_path: Path):
    with opened(tmp_path / "me.db") as opened_device:
        yield opened_device


def ratings(device: Device) -> dict[int, float]:
    codes, values = device._profile.ratings()
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
    ],
    ids=lambda wrong: repr(list(wrong.items())[1]),
)
def test_ratings_come_all_or_none_and_the_error_shows_neither_film_nor_rating(device: Device, wrong) -> None:
    with pytest.raises((UnknownName, InvalidParameter)) as problem:
        device.rate(wrong)
    assert "rating 2" in str(problem.value)
    for shown in (str(SECRET), "Heat", "Alien", "Sabrina", "five", "nan", "inf,"):
        assert shown not in str(problem.value)
    assert problem.value.__cause__ is None
    assert problem.value.__suppress_context__
    assert ratings(device) == {}


def test_a_rating_can_be_forgotten(device: Device) -> None:
    device.rate({2: 5, 3: 4})
    device.forget("Heat (1995)")
    device.forget(5)  # was not there
    assert ratings(device) == {2: 5.0}
    with pytest.raises(UnknownName) as problem:
        device.forget("Alien (1979)")
    assert "Alien" not in str(problem.value)


def test_texts_show_sizes_only(device: Device) -> None:
    device.rate({2: SECRET, 3: 4})
    assert repr(device._profile) == str(device._profile) == "Profile(2 ratings)"
    assert repr(device) == "Device(Profile(2 ratings), 8 items, 8 features)"
    assert str(SECRET) not in repr(device.readings(0.1)) + repr(device.statement())


def test_private_counts_do_not_show_in_the_text_of_readings(device: Device) -> None:
    few = repr(device.readings(0.1))
    device.rate(dict.fromkeys(FILMS, 5))
    assert repr(device.readings(0.1)) == few


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy], ids=["pickle", "copy", "deepcopy"])
def test_neither_profile_nor_device_is_written_or_copied(way, device: Device) -> None:
    profile = Profile()
    profile.rate({0: SECRET})
    for private in (profile, device):
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


def test_only_releases_and_memos_become_signals_on_a_device() -> None:
    """Nobody on the device puts numbers into a signal by hand."""
    for path in (SOURCE / "device").rglob("*.py"):
        assert calls_of("Signal", path) == 0, path
        for maker in ("to_json", "dump", "dumps", "save", "open"):
            assert calls_of(maker, path) == 0, path
    assert calls_of("Signal.from_release", SOURCE / "device" / "device.py") == 1
