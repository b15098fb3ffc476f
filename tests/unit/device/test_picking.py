"""Picking: at the true features, on the device, by whatever local model the reply has; and replies that mean harm."""

from pathlib import Path

import numpy as np
import pytest

from tacit.device import Device
from tacit.errors import InvalidMessage, InvalidModel, InvalidParameter, MissingExtra
from tacit.messages.multi_selection import Reply
from tacit.models.items import classes_of
from tacit.models.multi_selection import LinearMap, PrincipalComponents
from tests.unit.device.small_world import BUDGET, FILMS, SHOP, CountedNoise, Shop, flags, opened

# liked: action 1/2, drama 1/2 (Heat); disliked: comedy 1 (Sabrina)
RATINGS = {3: 5, 5: 1}
FEATURES = np.array([0.5, 0, 0.5, 0, 0, 1, 0, 0])
D = 8


class GenreTaste:
    """A whole model on the device: how much of an item is liked, less what is disliked, from 0 to 5."""

    kind, dimension, classes = "taste", D, classes_of(flags())

    def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
        table = flags()[items].astype(np.float64)
        return (2.5 + features[:, :4] @ table.T - features[:, 4:] @ table.T).astype(np.float32)

    def tensors(self) -> dict[str, np.ndarray]:
        return {}


@pytest.fixture
def device(tmp_path: Path):
    with opened(tmp_path / "me.db", scorer=GenreTaste()) as opened_device:
        opened_device.rate(RATINGS)
        yield opened_device


def linear(rows: dict[int, list[float]], k: int | None = None, **options: bool) -> Reply:
    return Reply.of(list(rows), k or len(rows), LinearMap(np.array(list(rows.values()))), D, **options)


def row(constant: float, **slopes: float) -> list[float]:
    """[1, features] with the slopes of features by place: f0, f1, ..."""
    return [constant, *(slopes.get(f"f{place}", 0.0) for place in range(D))]


def test_the_best_item_by_a_linear_map_at_the_true_features(device: Device) -> None:
    # at the features: 13 -> 1 + 2 * 0.5 = 2; 21 -> 0 + 3 * 0.5 + 1 = 2.5; 2 -> 2.4
    reply = linear({13: row(1, f0=2), 21: row(0, f2=3, f5=1), 2: row(2.4)})
    assert device.pick(reply) == (21,)
    assert device.pick(reply, t=2) == (21, 2)
    assert device.pick(reply, t=3) == (21, 2, 13)
    assert device.pick(reply, t=9) == (21, 2, 13)
    assert device.titles(device.pick(reply)) == ("Ran (1985)",)


def test_equal_estimates_go_to_the_earlier_item_of_the_slate(device: Device) -> None:
    reply = linear({21: row(1), 2: row(0, f5=1), 13: row(0, f0=2), 3: row(2)})
    assert device.pick(reply, t=4) == (3, 21, 2, 13)


def test_half_precision_picks_alike(device: Device) -> None:
    reply = linear({13: row(1, f0=2), 21: row(0, f2=3, f5=1), 2: row(2.25)}, half=True)
    assert device.pick(reply, t=3) == (21, 2, 13)


def test_repeats_that_fill_up_a_slate_are_not_picked(device: Device) -> None:
    reply = Reply.from_bytes(linear({13: row(1), 21: row(2)}, k=5).to_bytes())
    assert len(reply.to_bytes()) == Reply.size(reply.kind, 5, D)
    assert device.pick(reply, t=5) == (21, 13)


def test_principal_components_pick_as_their_definition_says(device: Device) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        model = PrincipalComponents(rng.normal(size=(1 + D + 3, 5)), 3)
        above, below = model.basis[: 1 + D], model.basis[1 + D :]
        place = np.linalg.pinv(above) @ np.concatenate([[1.0], FEATURES])
        expected = np.array([13, 21, 2])[np.argsort(-(below @ place))]
        reply = Reply.from_bytes(Reply.of([13, 21, 2], 3, model, D, components=8).to_bytes())
        assert device.pick(reply, t=3) == tuple(expected.tolist())


def test_the_whole_model_on_the_device_scores_the_slate(device: Device) -> None:
    # taste: Heat 3.5, Sabrina (1954) 2, Ran 3, Everything 2.5
    reply = Reply.of([8, 21, 3, 50], 4, "network", D)
    assert device.pick(reply, t=4) == (3, 21, 50, 8)


def test_without_a_model_the_first_of_the_slate_is_taken(device: Device) -> None:
    assert device.pick(Reply.of([8, 21, 3], 3, "none", D), t=2) == (8, 21)


def test_picks_follow_the_profile_and_not_the_signal(device: Device) -> None:
    reply = linear({13: row(0, f0=1), 5: row(0, f1=1)})
    assert device.pick(reply) == (13,)
    device.rate({5: 5, 8: 5, 3: 1})
    assert device.pick(reply) == (5,)
    device.forget("Sabrina (1995)")
    device.forget(8)
    device.rate({"Heat (1995)": 4})
    assert device.pick(reply) == (13,)


def test_a_pick_draws_no_noise_and_charges_nothing(tmp_path: Path) -> None:
    noise = CountedNoise()
    with opened(tmp_path / "me.db", noise=noise) as device:
        device.pick(linear({13: row(1)}))
        assert (noise.draws, device.statement().charges) == (0, 0)


def test_items_may_have_names_instead_of_numbers(tmp_path: Path) -> None:
    from tacit.models.items import Items

    names = Items(np.array([f"item-{number}" for number in range(len(FILMS))]))
    with Device(tmp_path / "me.db", Shop(names, SHOP.space), budget=BUDGET) as device:
        device.rate({"item-0": 5})
        reply = Reply.of(names.numbers[[3, 1]], 2, "none", D)
        assert device.pick(reply) == ("item-3",)


# --- replies that mean harm


def test_items_that_the_device_does_not_know_are_refused(device: Device) -> None:
    for number in (4, 10**6, (1 << 64) - 1):
        with pytest.raises(InvalidMessage, match="not among"):
            device.pick(Reply.of([13, number], 2, "none", D))


def test_a_model_for_other_features_is_refused(device: Device) -> None:
    with pytest.raises(InvalidMessage, match="8"):
        device.pick(Reply.of([13], 1, LinearMap(np.ones((1, 10))), 9))
    with pytest.raises(InvalidMessage):
        device.pick(Reply.of([13], 1, "none", 9))


def test_a_device_without_the_model_cannot_score_by_it(tmp_path: Path) -> None:
    with opened(tmp_path / "me.db") as device, pytest.raises(InvalidMessage, match="scorer"):
        device.pick(Reply.of([13], 1, "network", D))


def test_a_model_of_other_features_is_no_scorer(tmp_path: Path) -> None:
    other = GenreTaste()
    other.dimension = 9  # type: ignore[misc]
    with pytest.raises(InvalidParameter, match="9"):
        opened(tmp_path / "me.db", scorer=other)


@pytest.mark.parametrize("t", [0, -1, 1.5, True, None])
def test_odd_numbers_of_picks_are_refused(t, device: Device) -> None:
    with pytest.raises(InvalidParameter):
        device.pick(linear({13: row(1)}), t=t)


EXTREMES = [0.0, 1.0, -1.0, 3.4e38, -3.4e38, 1e-45, 1e-38, 1e30]


def test_whether_a_pick_fails_does_not_depend_on_the_profile(tmp_path: Path) -> None:
    """Numbers as large and as small as floats are, in every model: each reply is refused by all profiles or by none."""
    rng = np.random.default_rng(8)
    profiles = [{}, {13: 5}, RATINGS, dict.fromkeys(FILMS, 4), dict.fromkeys(FILMS, 1), {32: 1, 50: 5}]
    devices = []
    for number, ratings in enumerate(profiles):
        devices.append(opened(tmp_path / f"{number}.db"))
        devices[-1].rate(ratings)
    replies = [Reply.of([13, 21], 2, PrincipalComponents(np.zeros((3 + D, 4)), 2), D)]
    for _ in range(60):
        replies.append(Reply.of([13, 21], 2, LinearMap(rng.choice(EXTREMES, size=(2, 1 + D))), D))
        replies.append(Reply.of([13, 21], 2, PrincipalComponents(rng.choice(EXTREMES, size=(3 + D, 3)), 2), D))
    for reply in replies:
        outcomes = {_outcome(device, reply) for device in devices}
        assert outcomes in ({"picked"}, {"refused"})
    for device in devices:
        device.close()


def _outcome(device: Device, reply: Reply) -> str:
    try:
        picked = device.pick(reply, t=2)
    except InvalidMessage:
        return "refused"
    assert sorted(picked) == [13, 21]
    return "picked"


class FailsForSome(GenreTaste):
    """A model that was made to fail for those who like action."""

    def __init__(self, how: object) -> None:
        self.how = how

    def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
        if features[0, 0] > 0.4:
            if isinstance(self.how, Exception):
                raise self.how
            return self.how  # type: ignore[return-value]
        return super().score(features, items)


@pytest.mark.parametrize(
    "how",
    [
        ValueError("0.5"),
        InvalidModel("below 0"),
        MemoryError(),
        None,
        "five",
        np.zeros((1, 2)),
        np.zeros((0, 3)),
        np.zeros((1, 3, 1)),
        np.array([["a", "b", "c"]]),
        np.array([[None, object(), 1]]),
        np.full((1, 3), np.nan),
        7.0,
    ],
    ids=lambda how: f"{type(how).__name__} {getattr(how, 'shape', '')}",
)
def test_a_model_that_fails_for_some_features_leaves_the_slates_order(how: object, tmp_path: Path) -> None:
    reply = Reply.of([21, 8, 3], 3, "network", D)
    with opened(tmp_path / "me.db", scorer=FailsForSome(how)) as device:
        assert device.pick(reply, t=3) == (21, 8, 3)  # all score 2.5
        device.rate({21: 5, 5: 1})
        assert device.pick(reply, t=3) == (21, 3, 8)  # the model works
        device.rate({13: 5})
        assert device.pick(reply, t=3) == (21, 8, 3)  # it fails: no error, the slate's order


def test_a_model_that_fails_for_everybody_is_refused_before_features_are_seen(tmp_path: Path) -> None:
    class Missing(GenreTaste):
        def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
            assert not features.any()
            raise MissingExtra("an extra is missing.")

    with opened(tmp_path / "me.db", scorer=Missing()) as device:
        device.rate(RATINGS)
        with pytest.raises(MissingExtra):
            device.pick(Reply.of([8, 21], 2, "network", D))


def test_features_that_cannot_be_worked_out_leave_the_slates_order(tmp_path: Path) -> None:
    """A crafted feature space may fail for some profiles: a pick does not show that."""

    class Fails(type(SHOP.space)):  # type: ignore[misc]
        def of(self, items: np.ndarray, values: np.ndarray) -> np.ndarray:
            if 5.0 in values:
                raise np.linalg.LinAlgError
            return super().of(items, values)

    shop = Shop(SHOP.items, Fails(flags()))
    with Device(tmp_path / "me.db", shop, budget=BUDGET) as device:
        reply = linear({13: row(1), 21: row(2)})
        assert device.pick(reply) == (21,)
        device.rate(RATINGS)
        assert device.pick(reply) == (13,)


def test_a_model_on_the_device_that_gives_no_number_still_ends_in_a_pick(tmp_path: Path) -> None:
    class Odd(GenreTaste):
        def score(self, features: np.ndarray, items: np.ndarray) -> np.ndarray:
            return np.array([[np.nan, 1.0, np.inf, -np.inf][: len(items)]])

    with opened(tmp_path / "me.db", scorer=Odd()) as device:
        assert device.pick(Reply.of([8, 21, 3, 50], 4, "network", D), t=4) == (3, 21, 8, 50)
