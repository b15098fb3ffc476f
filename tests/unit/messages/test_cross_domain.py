"""The messages of cross-domain: what is written is read again and predicts the same; anything else is refused, and not shown."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidInput, InvalidMessage, InvalidParameter, UnknownName
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, epsilon_of_gaussian, epsilon_of_rho, nothing
from tacit.messages.cross_domain import Replacements, TransferModel
from tacit.models.cross_domain.transfer import TransferSettings, offsets
from tacit.models.cross_domain.transfer_models import bridge, factor_posterior, honest_x_map
from tests.releases import message_of

MU = 0.4
PROMISE = Guarantee(
    epsilon_of_gaussian(MU, 1e-6), ONE_USER, delta=1e-6, proof="transfer-moments", loss=Loss(LossKind.GAUSSIAN, MU)
)
SOURCE, TARGET = ("a", "b", "c", "d"), ("w", "x", "y", "z")
PROFILE = {"a": 5.0, "b": 2, "c": np.float32(4.0), "unheard of": 99.0}
_TASTES = np.array([[1.0, 1, -1, -1, 1, 1, -1, -1], [1.0, -1, 1, -1, 1, -1, 1, -1]])
GRAM = 40.0 * _TASTES.T @ _TASTES
D, N = np.linspace(-9.0, 9.0, 8), np.linspace(20.0, 40.0, 8)
SIGMAS = (1.0, 1.0, 1.0, 1.0)
OWN = TransferSettings(centre=None)


def transfer(model: Any = None) -> TransferModel:
    made = factor_posterior(D, N, 2.0, 2.0, np.arange(8), GRAM, 3.0, 4, TransferSettings()) if model is None else model
    return message_of(TransferModel, SOURCE, TARGET, made, PROMISE)


def every_kind() -> list[TransferModel]:
    return [
        transfer(),
        transfer(bridge(GRAM, D, N, [10.0, 10.0, 30.0], SIGMAS, 4, OWN)),
        transfer(honest_x_map(GRAM, D, N, SIGMAS, 4, OWN)),
        transfer(offsets(D, N, 2.0, 2.0, 4, TransferSettings())),
    ]


def replacements() -> Replacements:
    return message_of(Replacements, (1, 2, 3), (10, 20, 30), (1, 1, 0), (1.0, 5.0), PROMISE)


@pytest.mark.parametrize("message", every_kind(), ids=lambda message: message.kind)
def test_what_is_written_is_read_again_and_predicts_the_same(message: TransferModel, tmp_path: Path) -> None:
    read = TransferModel.from_json(json.loads(json.dumps(message.to_json())))
    assert read == message
    assert read.predict(PROFILE) == message.predict(PROFILE)
    assert (read.kind, read.directions, read.crossing, read.remark, read.scale) == (
        message.kind, message.directions, message.crossing, message.remark, message.scale,
    )  # fmt: skip
    assert read.guarantee == PROMISE
    path = message.save(tmp_path / "model.json")
    assert TransferModel.load(path) == message
    assert os.stat(path).st_mode & 0o077 == 0
    assert [one.name for one in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize("message", [*every_kind(), replacements()], ids=lambda message: type(message).__name__)
def test_a_schema_has_the_members_that_are_written(message: Any) -> None:
    assert list(message.schema()["properties"]) == message.schema()["required"] == list(message.to_json())
    assert message.schema()["properties"]["format"]["const"] == message.to_json()["format"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(message)


def test_kinds_differ_and_taste_moves_predictions() -> None:
    by_kind = {message.kind: message.predict(PROFILE) for message in every_kind()}
    assert len({tuple(one.values()) for one in by_kind.values()}) == 4
    assert [message.directions > 0 for message in every_kind()] == [True, True, True, False]
    assert [message.crossing > 0 for message in every_kind()] == [True, True, True, False]
    assert transfer() != replacements()


def test_a_prediction_is_the_models_own() -> None:
    message = transfer()
    by_code = message.model.predict([0, 1, 2], [5.0, 2.0, 4.0])
    assert message.predict(PROFILE) == dict(zip(TARGET, by_code.tolist(), strict=True))
    assert message.predict(PROFILE, ["z", "a"]) == {
        "z": by_code[3],
        "a": message.model.predict([0, 1, 2], [5.0, 2.0, 4.0], [0])[0],
    }
    assert message.predict({}) == message.predict({"unheard of": math.nan, True: 3.0})
    assert message.predict(dict(reversed(PROFILE.items()))) == message.predict(PROFILE)


def test_items_are_recommended_by_prediction_and_none_that_is_held() -> None:
    message = transfer()
    ranked = sorted(TARGET, key=lambda item: -message.predict(PROFILE)[item])
    assert message.recommend(PROFILE) == tuple(ranked)
    assert message.recommend(PROFILE, k=2) == tuple(ranked[:2])
    held = PROFILE | {ranked[0]: 1.0}
    assert ranked[0] not in message.recommend(held)
    assert len(message.recommend(held)) == 3
    level = transfer(offsets(np.zeros(8), N, 2.0, 2.0, 4, TransferSettings()))
    assert level.recommend(PROFILE) == TARGET  # equals in the order of the catalogue
    for wrong in (0, -1, 2.5):
        with pytest.raises(InvalidParameter):
            message.recommend(PROFILE, k=wrong)  # type: ignore[arg-type]


def test_an_alter_ego_keeps_real_ratings_of_the_target() -> None:
    message = transfer()
    profile = PROFILE | {"x": 1.0}
    ego = message.alter_ego(profile)
    assert ego["x"] == 1.0 != message.predict(profile)["x"]
    assert {item: ego[item] for item in "wyz"} == message.predict(profile, ["w", "y", "z"])


def test_it_says_where_directions_link_nothing() -> None:
    alone = GRAM.copy()
    alone[:4, 4:], alone[4:, :4] = 0.0, 0.0
    message = transfer(factor_posterior(D, N, 2.0, 2.0, np.arange(8), alone, 3.0, 4, TransferSettings()))
    assert message.directions > 0
    assert message.crossing == 0
    assert TransferModel.from_json(message.to_json()).remark == message.remark
    assert "only averages" in message.remark
    assert message.predict(PROFILE) == pytest.approx(transfer(message.model.offsets).predict(PROFILE), abs=1e-9)  # type: ignore[attr-defined]


def test_it_says_what_it_promises_and_whether_taste_is_carried_over() -> None:
    assert "directions: 2, crossing: 2" in repr(transfer())
    assert str(PROMISE) in repr(transfer())
    silent = factor_posterior(D, N, 2.0, 2.0, np.arange(8), GRAM, 1e6, 4, TransferSettings())
    message = transfer(silent)
    assert message.directions == 0
    assert message.remark in repr(message)
    assert "only averages" in message.remark
    assert message.predict(PROFILE) == transfer(silent.offsets).predict(PROFILE)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 5.0001, 0.999, -17.25, "4", None, True, 10**400, [4.0]])
def test_a_rating_off_the_scale_is_refused_and_not_shown(wrong: Any) -> None:
    for message in (transfer(), replacements()):
        item = message.source[0]
        for ask in ("predict", "recommend", "alter_ego"):
            if hasattr(message, ask):
                with pytest.raises(InvalidInput) as refused:
                    getattr(message, ask)({item: wrong})
                assert "from 1 to 5" in str(refused.value)
                assert repr(wrong) not in str(refused.value)
                assert str(item) + ":" not in str(refused.value)


@pytest.mark.parametrize("profile", [None, [("a", 5.0)], "a", 5])
def test_a_profile_is_a_mapping(profile: Any) -> None:
    for message in (transfer(), replacements()):
        with pytest.raises(InvalidInput):
            message.alter_ego(profile)


@pytest.mark.parametrize("texts", [False, True], ids=["numbers", "texts"])
def test_a_number_and_the_same_number_as_text_are_one_item(texts: bool) -> None:
    ids = [str(item) if texts else item for item in (-1, 2, 3, 4, 5, 6, 7, 2**53)]
    message = message_of(TransferModel, tuple(ids[:4]), tuple(ids[4:]), transfer().model, PROMISE)
    mine = dict(zip(ids[:5], (5.0, 2.0, 4.0, 1.0, 3.0), strict=True))
    other = {int(item) if texts else str(item): value for item, value in mine.items()}
    assert message.predict(other) == message.predict(mine) != message.predict({})
    assert message.predict(json.loads(json.dumps(mine))) == message.predict(mine)
    assert message.recommend(other, 4) == message.recommend(mine, 4)
    assert message.alter_ego(other) == message.alter_ego(mine)
    assert list(message.predict(mine, [5, "6"]).values()) == list(message.predict(mine, ids[4:6]).values())
    assert message.predict({f"0{item}": 5.0 for item in ids[1:]} | {"9" * 5000: 1.0, 2**70: 1.0}) == message.predict({})
    for both in ({"-1": 5.0, -1: 5.0}, {2: 1.0, 3: 1.0, "3": 2.0}):
        with pytest.raises(InvalidInput, match="two ratings of one item"):
            message.predict(both)


def test_an_unknown_item_cannot_be_asked_for() -> None:
    for wrong in (["nowhere"], [True], [None], [["a"]]):
        with pytest.raises(UnknownName):
            transfer().predict(PROFILE, wrong)


def test_arrays_of_a_message_are_its_own_and_cannot_be_written_to() -> None:
    model = factor_posterior(D, N, 2.0, 2.0, np.arange(8), GRAM, 3.0, 4, TransferSettings())
    message = transfer(model)
    before = message.predict(PROFILE)
    model.loadings[:] = 0.0
    model.offsets.values[:] = 9.0
    assert message.predict(PROFILE) == before
    with pytest.raises(ValueError, match="read-only"):
        message.model.loadings[0] = 0.0  # type: ignore[attr-defined]


def test_replacements_give_alter_egos() -> None:
    table = replacements()
    assert table.replacement(1) == table.replacement(2) == 20
    assert table.replacement(np.int64(3)) == 10
    assert table.alter_ego({1: 5.0, 2: 2.0, 3: 1.0, 77: 4.0}) == {10: 1.0, 20: 3.5}
    assert table.alter_ego({1: 5.0, 20: 1.0, 30: 2.0}) == {20: 1.0, 30: 2.0}  # what was really rated wins
    assert table.alter_ego({}) == {}
    assert len(table) == 3
    assert str(PROMISE) in repr(table)
    assert table.replacement("3") == 10
    assert table.alter_ego({"1": 5.0, "20": 1.0, "03": 2.0, "-1": 3.0}) == {20: 1.0}
    for wrong in (10, 77, "01", "10", "1.0", "", "-", "²", True, None):
        with pytest.raises(UnknownName):
            table.replacement(wrong)


def test_replacements_are_written_and_read_again(tmp_path: Path) -> None:
    table = replacements()
    assert Replacements.from_json(json.loads(json.dumps(table.to_json()))) == table
    assert Replacements.load(table.save(tmp_path / "table.json")) == table
    assert table.to_json() == {
        "format": "tacit replacements/1", "source": [1, 2, 3], "target": [10, 20, 30], "chosen": [1, 1, 0], "scale": [1.0, 5.0],
        "guarantee": PROMISE.to_json(),
    }  # fmt: skip
    assert table != message_of(Replacements, (1, 2, 3), (10, 20, 30), (1, 1, 1), (1.0, 5.0), PROMISE)


def test_a_message_that_promises_nothing_says_so() -> None:
    silent = nothing(ONE_USER, "noise was left out")
    assert "no guarantee" in repr(message_of(Replacements, (1,), (2,), (0,), (1.0, 5.0), silent))
    model = _under(silent, transfer())
    assert TransferModel.from_json(model.to_json()).guarantee == silent
    assert "no guarantee" in repr(model)


EPSILON = PROMISE.epsilon
RHO_EPSILON = epsilon_of_rho(0.05, 1e-6)
PROMISES: list[tuple[float, float, Loss | None, bool]] = [
    (EPSILON, 1e-6, Loss(LossKind.GAUSSIAN, MU), True),
    (EPSILON * 2, 1e-6, Loss(LossKind.GAUSSIAN, MU), True),  # more is proved than is promised
    (EPSILON * (1 - 1e-13), 1e-6, Loss(LossKind.GAUSSIAN, MU), True),  # rounded
    (EPSILON * 0.999, 1e-6, Loss(LossKind.GAUSSIAN, MU), False),
    (EPSILON, 0.99e-6, Loss(LossKind.GAUSSIAN, MU), False),
    (EPSILON, 0.0, Loss(LossKind.GAUSSIAN, MU), False),
    (1e9, 0.0, Loss(LossKind.GAUSSIAN, MU), False),  # no epsilon without a delta
    (0.01, 1e-9, Loss(LossKind.GAUSSIAN, 5.0), False),
    (0.0, 0.0, Loss(LossKind.GAUSSIAN, 0.0), False),
    (5.0, 1e-6, Loss(LossKind.GAUSSIAN, 0.0), False),
    (0.0, 0.0, Loss(LossKind.ZCDP, 0.0), True),
    (0.0, 1e-6, Loss(LossKind.ZCDP, 0.0), True),
    (RHO_EPSILON, 1e-6, Loss(LossKind.ZCDP, 0.05), True),
    (RHO_EPSILON * (1 - 1e-13), 1e-6, Loss(LossKind.ZCDP, 0.05), True),
    (RHO_EPSILON * 0.999, 1e-6, Loss(LossKind.ZCDP, 0.05), False),
    (RHO_EPSILON, 0.9e-6, Loss(LossKind.ZCDP, 0.05), False),
    (1.0, 0.0, Loss(LossKind.ZCDP, 0.5), True),  # a pure epsilon has a rho, too
    (1.0, 0.0, Loss(LossKind.ZCDP, 0.05), True),
    (0.999, 0.0, Loss(LossKind.ZCDP, 0.5), False),
    (0.5, 0.0, Loss(LossKind.BOUNDED_RANGE, 0.5), True),
    (0.5, 0.0, Loss(LossKind.BOUNDED_RANGE, 0.501), False),
    (0.1, 0.0, Loss(LossKind.BOUNDED_RANGE, 5.0), False),
    (0.5, 0.0, Loss(LossKind.PURE, 0.5), True),
    (0.5, 1e-6, None, True),
]


@pytest.mark.parametrize(("epsilon", "delta", "loss", "follows"), PROMISES, ids=str)
def test_a_promise_that_does_not_follow_from_its_loss_is_refused(
    epsilon: float, delta: float, loss: Loss | None, follows: bool
) -> None:
    promise = Guarantee(epsilon, ONE_USER, delta=delta, proof="transfer-moments", loss=loss)
    for message in (transfer(), replacements()):
        written = {**message.to_json(), "guarantee": promise.to_json()}
        if isinstance(message, TransferModel) and (loss is None or loss.kind is not LossKind.GAUSSIAN):
            with pytest.raises(InvalidMessage, match=r"a gaussian loss.*\$\.guarantee\.loss"):
                TransferModel.from_json(written)
            continue
        if follows:
            assert type(message).from_json(written).guarantee == promise
            continue
        with pytest.raises(InvalidMessage, match=r"follows from delta and the loss at \$\.guarantee"):
            type(message).from_json(written)
        with pytest.raises(InvalidMessage, match="follows from delta"):
            _under(promise, message)


def _under(promise: Guarantee, message: Any) -> Any:
    """The same message, released under another guarantee."""
    if isinstance(message, TransferModel):
        return message_of(TransferModel, message.source, message.target, message.model, promise)
    return message_of(Replacements, message.source, message.target, message.chosen, message.scale, promise)


def _with(**changed: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda found: {**found, **changed}


def _inside(*path: str, to: Any) -> Callable[[dict[str, Any]], Any]:
    def damage(found: dict[str, Any]) -> Any:
        copy = json.loads(json.dumps(found))
        place = copy
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to
        return copy

    return damage


ANY = [
    _with(format="tacit transfer/2"),
    _with(format=1),
    _with(more=1),
    _with(source=["a", "a", "c", "d"]),
    _with(source=["a", 2, "c", "d"]),
    _with(source=[True, "b", "c", "d"]),
    _with(source=["w", "b", "c", "d"]),  # an item of both domains
    _with(source=[]),
    _with(source="abcd"),
    _with(target=["w", "x", "y"]),
    _with(target={"w": 1}),
    _with(scale=[5.0, 1.0]),
    _with(scale=[1.0]),
    _with(scale=[1.0, math.inf]),
    _with(scale=[1.0, 1e300]),
    _with(scale=None),
    _with(guarantee=None),
    _inside("guarantee", "epsilon", to=-1.0),
    _inside("guarantee", "epsilon", to="small"),
    _inside("guarantee", "users", to=6_040),
    lambda found: {name: value for name, value in found.items() if name != "guarantee"},
    lambda found: [found],
    lambda found: None,
    lambda found: json.dumps(found),
]
_MODEL = [
    _with(kind="offsets"),
    _with(kind="pickle"),
    _with(kind=["bridge"]),
    _with(model=None),
    _inside("model", "offsets", to=[]),
    _inside("model", "offsets", "values", to=[0.0] * 7),
    _inside("model", "offsets", "values", to=[0.0] * 7 + [math.nan]),
    _inside("model", "offsets", "values", to=[0.0] * 7 + ["0"]),
    _inside("model", "offsets", "values", to=[0.0] * 7 + [1e300]),
    _inside("model", "offsets", "means", to=[1.0, 2.0, 3.0]),
    _inside("model", "offsets", "share", to=-1.0),
    _inside("model", "offsets", "few", to=True),
    _inside("model", "directions", to=3),
    _inside("model", "directions", to=10**9),
    _inside("model", "directions", to=2.0),
    _inside("model", "crossing", to=3),
    _inside("model", "crossing", to=-1),
    _inside("model", "crossing", to=1.0),
]
FACTORS = [
    _inside("model", "head", to=[1, 0, 2, 3, 4, 5, 6, 7]),
    _inside("model", "head", to=[0, 1, 1, 3, 4, 5, 6, 7]),
    _inside("model", "head", to=[0, 1, 2, 3, 4, 5, 6, 8]),
    _inside("model", "head", to=[-1, 1, 2, 3, 4, 5, 6, 7]),
    _inside("model", "head", to=[0.0, 1, 2, 3, 4, 5, 6, 7]),
    _inside("model", "head", to=list(range(9))),
    _inside("model", "head", to=[0]),
    _inside("model", "loadings", to=[[1.0]] * 8),
    _inside("model", "loadings", to=[[1.0, None]] * 8),
    _inside("model", "loadings", to=[[1e300, 0.0]] * 8),
    _inside("model", "loadings", to=[[1e6, 1e6]] * 8),  # with hardly any noise nothing can be solved for
    _inside("model", "noise", to=0.0),
    _inside("model", "noise", to=-1.0),
    _inside("model", "reach", to=math.inf),
]
BRIDGE = [
    _inside("model", "weights", to=[[0.0]]),
    _inside("model", "loadings", to=[]),
    _inside("model", "norm", to=0.0),
    _inside("model", "clip", to=None),
]
X_MAP = [
    _inside("model", "replacements", to=[0, 0, 0, 4]),
    _inside("model", "replacements", to=[0, 0, 0, -2]),
    _inside("model", "replacements", to=[0, 0, 0]),
    _inside("model", "similar", to=[[0, 0, 0, 0]] * 4),
    _inside("model", "similar", to=[[0, 1, 2, 9]] * 4),
    _inside("model", "similar", to=[[0], [1, 2]]),
    _inside("model", "similar", to=[]),
    _inside("model", "cosines", to=[[1.5, 0.0, 0.0, 0.0]] * 4),
]


@pytest.mark.parametrize(
    ("message", "damages"),
    [
        (every_kind()[0], ANY + _MODEL + FACTORS),
        (every_kind()[1], _MODEL + BRIDGE),
        (
            every_kind()[2],
            _MODEL[:12] + _MODEL[13:] + X_MAP,
        ),  # how many directions is of no use to it, and may be any number
        (every_kind()[3], [_with(kind="bridge"), _inside("model", "head", to=[])]),
    ],
    ids=["factor-posterior", "bridge", "honest-x-map", "offsets"],
)
def test_a_damaged_model_is_refused(message: TransferModel, damages: list[Callable[[Any], Any]]) -> None:
    for damage in damages:
        damaged = damage(message.to_json())
        with pytest.raises(InvalidMessage) as refused:
            TransferModel.from_json(damaged)
        assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "damage",
    [
        *ANY,
        _with(chosen=[0, 1, 3]),
        _with(chosen=[0, 1, -1]),
        _with(chosen=[0, 1]),
        _with(chosen=[0, 1, 1.0]),
        _with(chosen=None),
        _with(format="tacit transfer/1"),
    ],
)
def test_damaged_replacements_are_refused(damage: Callable[[Any], Any]) -> None:
    found = replacements().to_json()
    damaged = damage(found)
    if isinstance(damaged, dict) and damaged.get("target") == ["w", "x", "y"]:
        damaged["target"] = [10, 10, 30]
    with pytest.raises(InvalidMessage):
        Replacements.from_json(damaged)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"NaN", b"[" * 100_000, b'{"format": "tacit transfer/1"}', b"null"]
)
def test_a_file_that_is_no_message_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(content)
    for kind in (TransferModel, Replacements):
        with pytest.raises(InvalidMessage):
            kind.load(path)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = transfer().save(tmp_path / "model.json")
    monkeypatch.setattr("tacit.messages.cross_domain._MOST_BYTES", path.stat().st_size - 1)
    with pytest.raises(InvalidMessage, match="at most"):
        TransferModel.load(path)
    with pytest.raises(FileNotFoundError):
        TransferModel.load(tmp_path / "nowhere")


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="disk full"):
        transfer().save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_a_model_must_fit_its_catalogues_and_be_of_a_known_kind() -> None:
    model = transfer().model
    for source, target in ((SOURCE[:3], TARGET), (SOURCE, TARGET[:3]), (SOURCE[:3], (*TARGET, "more"))):
        with pytest.raises(InvalidMessage):
            message_of(TransferModel, source, target, model, PROMISE)
    for wrong in (None, 5, TransferSettings()):
        with pytest.raises(InvalidMessage):
            message_of(TransferModel, SOURCE, TARGET, wrong, PROMISE)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage):
        message_of(TransferModel, SOURCE, TARGET, model, None)  # type: ignore[arg-type]


def test_a_release_of_noise_alone_still_makes_a_message_on_any_scale() -> None:
    """What is released decides nothing about whether it can be sent."""
    rng = np.random.default_rng(11)
    for low, high in ((1.0, 5.0), (0.0, 1e-3), (-1e6, 1e6)):
        settings = TransferSettings.for_scale(low, high)
        unit = (high - low) / 4.0
        for size in (1.0, 1e6):
            upper = np.triu(rng.normal(0.0, unit**2, (8, 8)), 1) * size
            d, n = rng.normal(0.0, unit, 8) * size, rng.normal(0.0, 1.0, 8) * size
            made = factor_posterior(d, n, unit, 1.0, np.arange(8), upper + upper.T, unit**2, 4, settings)
            gram, own = upper + upper.T, replace(settings, centre=None)
            sigmas = (unit**2, unit, 1.0, 1.0)
            over = bridge(gram, d, n, rng.normal(0.0, 1.0, 3) * size, sigmas, 4, own)
            for model in (made, over, honest_x_map(gram, d, n, sigmas, 4, own)):
                predicted = transfer(model).predict({"a": high, "b": low}).values()
                assert all(low <= value <= high for value in predicted)
