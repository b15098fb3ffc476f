"""A store: exact round trips for every kind, what it prints, what it promises, and every damaged file refused."""

import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from tacit.errors import InvalidModel, MixedUnits
from tacit.guarantees import ONE_USER, ONE_USER_REPLACED, approximate, nothing, pure
from tacit.messages.store import SCORERS, SPACES, Store, digest
from tacit.models.features import FoldedTaste, GenreProfile
from tacit.models.items import Classes, Items
from tacit.models.scorers import FactorScorer, OnnxScorer, RatingNetwork, TwoTower
from tacit.models.scorers import two_tower_shapes as shapes
from tests.releases import changed, message_of
from tests.unit.models import onnx_models, plain_network

RNG = np.random.default_rng(31)
FLAGS = RNG.random((25, 19)) < 0.15
FILMS = Items(np.arange(25) * 7 + 3, tuple(f"Film {i}, L'Été 東京 (19{i:02})" for i in range(25)))
BOOKS = Items(np.sort(np.array([f"isbn-{i:03}é" for i in range(25)])))
PROFILES = plain_network.random_profiles(RNG, 12)
MODEL_SILENT = nothing(ONE_USER, "the model was fitted without noise: its training ratings must be public or consented")
SILENT = nothing(ONE_USER, "look-alikes are features of real users, taken as public")


def network_store() -> Store:
    network = RatingNetwork(plain_network.random_weights(RNG), FLAGS)
    return message_of(Store, FILMS, GenreProfile(FLAGS), network, PROFILES, MODEL_SILENT, SILENT, "films")


def two_tower_store() -> Store:
    weights = {name: RNG.normal(scale=0.3, size=shape).astype(np.float32) for name, shape in shapes(19).items()}
    space, private = GenreProfile(FLAGS, 3.5), approximate(2.0, 1e-6, ONE_USER)
    return message_of(
        Store, FILMS, space, TwoTower(weights, FLAGS), PROFILES, private, pure(0.5, ONE_USER), "two towers"
    )


def factor_store() -> Store:
    factors, offsets = RNG.normal(size=(25, 4)).astype(np.float32), RNG.normal(size=25).astype(np.float32)
    space = FoldedTaste(factors, offsets, 3.4, np.full(5, 0.7))
    look_alikes = RNG.uniform(-1, 1, size=(9, 4))
    return message_of(
        Store, BOOKS, space, FactorScorer(factors, offsets, 3.4), look_alikes, MODEL_SILENT, SILENT, "books"
    )


def onnx_store() -> Store:
    scorer = OnnxScorer(onnx_models.sums(38, 19), FLAGS, 38, shift=20.0)
    no_look_alikes = np.zeros((0, 38), dtype=np.float32)
    return message_of(
        Store, FILMS, GenreProfile(FLAGS), scorer, no_look_alikes, MODEL_SILENT, pure(0.0, ONE_USER), "mine"
    )


STORES = {"network": network_store(), "two-tower": two_tower_store(), "factors": factor_store(), "onnx": onnx_store()}
NETWORK = STORES["network"]
every_store = pytest.mark.parametrize("store", STORES.values(), ids=STORES.keys())


def scores(store: Store) -> NDArray[np.float32]:
    space = store.space
    features = np.random.default_rng(2).uniform(space.low, space.high, size=(6, space.dimension))
    return store.scorer.score(features, np.arange(len(store.items)))


def features(store: Store) -> NDArray[np.float64]:
    return store.space.of(np.array([0, 3, 4, 20]), np.array([5.0, 3.5, 1.0, 4.0]))


def test_every_kind_is_put_to_the_test() -> None:
    assert {store.scorer.kind for store in STORES.values()} == set(SCORERS)
    assert {store.space.kind for store in STORES.values()} == set(SPACES)


@every_store
@pytest.mark.parametrize("through", ["bytes", "file"])
def test_a_round_trip_is_exact(store: Store, through: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tacit"
    again = Store.load(store.save(path)) if through == "file" else Store.from_bytes(store.to_bytes())
    assert np.array_equal(scores(again), scores(store))
    assert np.array_equal(features(again), features(store))
    assert np.array_equal(again.look_alikes, store.look_alikes)
    assert again.items.ids.tolist() == store.items.ids.tolist()
    assert again.items.titles == store.items.titles
    assert (again.model_guarantee, again.look_alikes_guarantee) == (store.model_guarantee, store.look_alikes_guarantee)
    assert (again.name, again.version, str(again)) == (store.name, store.version, str(store))
    assert again.to_bytes() == store.to_bytes()


def test_the_version_changes_with_everything_that_is_held() -> None:
    weights = NETWORK.scorer.weights | {"trunk.3.bias": np.array([0.1], dtype=np.float32)}  # type: ignore[attr-defined]
    others = [
        changed(NETWORK, name="other"),
        changed(NETWORK, look_alikes=PROFILES[:-1]),
        changed(NETWORK, look_alikes=PROFILES[::-1]),
        changed(NETWORK, scorer=RatingNetwork(weights, FLAGS)),
        changed(NETWORK, space=GenreProfile(FLAGS, 3.5)),
        changed(NETWORK, items=Items(FILMS.ids)),
        changed(NETWORK, items=Items(FILMS.ids + 1, FILMS.titles)),
        changed(NETWORK, model_guarantee=pure(1.0, ONE_USER)),
        changed(NETWORK, look_alikes_guarantee=pure(1.0, ONE_USER)),
    ]
    versions = {store.version for store in [NETWORK, *others]}
    assert len(versions) == 1 + len(others)
    assert all(re.fullmatch(r"[0-9a-f]{64}", version) for version in versions)
    assert changed(NETWORK, look_alikes=PROFILES.copy()).version == NETWORK.version


def test_the_digest_tells_names_types_and_shapes_apart_where_the_bytes_are_equal() -> None:
    zeros = np.zeros((2, 3), dtype=np.float32)
    other = [{"a": zeros.reshape(3, 2)}, {"a": zeros.astype(np.int32)}, {"b": zeros}, {"a": zeros[:1], "b": zeros[1:]}]
    assert len({digest({}, tensors) for tensors in [{"a": zeros}, *other]}) == 5


def test_it_prints_its_sizes_and_both_guarantees() -> None:
    text = str(NETWORK)
    for shown in ("'films'", NETWORK.version[:12], "25", "12", "rating-network/1", "genre-profile/1"):
        assert shown in text
    assert str(MODEL_SILENT) in text
    assert str(SILENT) in text
    assert repr(NETWORK) == "Store('films': 25 items, 12 look-alikes)"


class TestGuarantee:
    def test_two_promises_add_up(self) -> None:
        together = STORES["two-tower"].guarantee
        assert (together.epsilon, together.delta, together.protects) == (2.5, 1e-6, ONE_USER)

    def test_one_silence_silences_both_and_keeps_every_reason(self) -> None:
        private = pure(1.0, ONE_USER, assumes=frozenset({"a reason of its own"}))
        for store in (changed(NETWORK, model_guarantee=private), changed(NETWORK, look_alikes_guarantee=private)):
            assert store.guarantee.promises_nothing
            assert "a reason of its own" in store.guarantee.assumes
            assert len(store.guarantee.assumes) == 2
        assert NETWORK.guarantee.assumes == MODEL_SILENT.assumes | SILENT.assumes

    def test_different_units_are_not_added_up(self) -> None:
        one, other = pure(1.0, ONE_USER), pure(1.0, ONE_USER_REPLACED)
        with pytest.raises(MixedUnits):
            _ = changed(NETWORK, model_guarantee=one, look_alikes_guarantee=other).guarantee
        assert changed(NETWORK, model_guarantee=other).guarantee.promises_nothing


class TestSaving:
    def test_a_failed_save_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = NETWORK.save(tmp_path / "x.tacit")
        before = path.read_bytes()

        def full(*_: object) -> None:
            raise OSError("no space left")

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="no space left"):
            STORES["factors"].save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]

    def test_a_save_replaces_a_store_that_is_mapped_by_a_reader(self, tmp_path: Path) -> None:
        path = NETWORK.save(tmp_path / "x.tacit")
        old = Store.load(path)
        STORES["factors"].save(path)
        assert np.array_equal(scores(old), scores(NETWORK))
        assert Store.load(path).name == "books"

    def test_only_its_owner_may_read_it(self, tmp_path: Path) -> None:
        path = NETWORK.save(tmp_path / "x.tacit")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_a_folder_that_is_not_there_is_the_systems_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            NETWORK.save(tmp_path / "no" / "x.tacit")
        with pytest.raises(FileNotFoundError):
            Store.load(tmp_path / "x.tacit")

    def test_a_scorer_of_ones_own_can_be_held_but_not_stored(self) -> None:
        own = changed(NETWORK, scorer=Constant())
        assert len(own.version) == 64
        with pytest.raises(InvalidModel, match="'constant' cannot be stored"):
            own.to_bytes()


@dataclass(frozen=True)
class Constant:
    kind: ClassVar[str] = "constant"
    dimension: int = 38
    classes: Classes = Classes(np.arange(25, dtype=np.int32))  # noqa: RUF009 (it is immutable)

    def score(self, features: NDArray[Any], items: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        return np.ones((len(features), len(items)), dtype=np.float32)

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {}


BAD_PARTS: dict[str, dict[str, Any]] = {
    "fewer items than scores": {"items": Items(FILMS.ids[1:])},
    "a space of other items": {"space": GenreProfile(FLAGS[1:])},
    "a space of another dimension": {"space": GenreProfile(FLAGS[:, 1:])},
    "a scorer of another dimension": {"scorer": OnnxScorer(b"x", FLAGS, 37)},
    "look-alikes of another dimension": {"look_alikes": PROFILES[:, 1:]},
    "one look-alike as a row": {"look_alikes": PROFILES[0]},
    "a look-alike that is not a number": {"look_alikes": np.where(np.arange(38) == 3, np.nan, PROFILES)},
    "a look-alike that is infinite": {"look_alikes": np.where(np.arange(38) == 3, np.inf, PROFILES)},
    "a look-alike outside the domain": {"look_alikes": PROFILES - 0.01},
    "no name": {"name": ""},
    "a name that would move the cursor": {"name": "a\x1b[2J"},
    "a name without end": {"name": "x" * 201},
}


@pytest.mark.parametrize("parts", BAD_PARTS.values(), ids=BAD_PARTS.keys())
def test_parts_that_do_not_fit_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidModel):
        changed(NETWORK, **parts)


# Files that were damaged or made by somebody else. Each change gets the tensors and the header, to spoil them in place.

Tensors = dict[str, NDArray[Any]]
Header = dict[str, Any]
Change = Callable[[Tensors, Header], object]


def written(change: Change, store: Store = NETWORK, key: str = "tacit.store") -> bytes:
    content = store.to_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["tacit.store"])
    tensors = {name: tensor.copy() for name, tensor in load_tensors(content).items()}
    change(tensors, header)
    made: bytes = save_tensors(tensors, metadata={key: json.dumps(header)})
    return made


def test_a_file_written_by_hand_is_read_if_nothing_was_changed() -> None:
    assert Store.from_bytes(written(lambda tensors, header: None)).version == NETWORK.version


def test_the_header_is_open_and_small() -> None:
    seen: list[Header] = []
    written(lambda tensors, header: seen.append(dict(header)))
    assert set(seen[0]) == {"format", "name", "space", "scorer", "model_guarantee", "look_alikes_guarantee", "digest"}
    assert seen[0]["model_guarantee"] == MODEL_SILENT.to_json()


def put(name: str, value: Any) -> Change:
    return lambda tensors, header: tensors.update({name: np.asarray(value)})


def edit(name: str, how: Callable[[NDArray[Any]], NDArray[Any]]) -> Change:
    return lambda tensors, header: tensors.update({name: how(tensors[name])})


def spoil(name: str, place: int, value: float) -> Change:
    return lambda tensors, header: tensors[name].reshape(-1).__setitem__(place, value)


def drop(name: str) -> Change:
    return lambda tensors, header: tensors.pop(name)


def say(name: str, value: Any) -> Change:
    return lambda tensors, header: header.update({name: value})


def unsay(name: str) -> Change:
    return lambda tensors, header: header.pop(name)


DAMAGE: dict[str, tuple[Change, str]] = {
    "a later format": (say("format", 2), "Update tacit"),
    "no format": (unsay("format"), "not a store"),
    "an unknown scorer": (say("scorer", "builtins.eval"), "does not know"),
    "a scorer that is no text": (say("scorer", ["rating-network/1"]), "does not know"),
    "an unknown space": (say("space", "genre-profile/2"), "does not know"),
    "no space": (unsay("space"), "does not know"),
    "another known scorer": (say("scorer", "two-tower/1"), "weights with its own names and shapes"),
    "another known space": (say("space", "folded-taste/1"), "lacks a part of its feature space"),
    "no guarantee": (unsay("model_guarantee"), "model_guarantee"),
    "a guarantee of another shape": (say("look_alikes_guarantee", {"epsilon": 1.0}), "look_alikes_guarantee"),
    "a guarantee that is no object": (say("look_alikes_guarantee", "epsilon = 0"), "look_alikes_guarantee"),
    "a better guarantee": (say("model_guarantee", pure(0.1, ONE_USER).to_json()), "changed or damaged"),
    "another name": (say("name", "other"), "changed or damaged"),
    "a name that is no text": (say("name", 7), "name"),
    "no digest": (unsay("digest"), "changed or damaged"),
    "no look-alikes": (drop("look_alikes"), "lacks 'look_alikes'"),
    "no ids": (drop("items.ids"), "lacks 'ids'"),
    "no ends of titles": (drop("items.titles.ends"), "lacks 'titles.ends'"),
    "no titles, ends left": (drop("items.titles"), "changed or damaged"),
    "no flags of the scorer": (drop("scorer.flags"), "lacks a part of its scorer"),
    "no flags of the space": (drop("space.flags"), "lacks a part of its feature space"),
    "no threshold": (drop("space.liked_from"), "lacks a part of its feature space"),
    "a threshold without a value": (put("space.liked_from", np.zeros(0)), "lacks a part of its feature space"),
    "a weight missing": (drop("scorer.trunk.2.bias"), "weights with its own names and shapes"),
    "a weight too many": (put("scorer.trunk.9.bias", np.zeros(3, dtype=np.float32)), "weights with its own names and shapes"),
    "a weight turned over": (edit("scorer.trunk.1.weight", np.transpose), "weights with its own names and shapes"),
    "flags in one row": (edit("scorer.flags", np.ravel), "lacks a part of its scorer"),
    "flags of fewer items": (edit("space.flags", lambda flags: flags[1:]), "must know the 25 items"),
    "a flag of 2": (edit("scorer.flags", lambda flags: flags * 2), "changed or damaged"),
    "a weight of NaN": (spoil("scorer.trunk.1.weight", 5, np.nan), "not finite"),
    "a weight of infinity": (spoil("scorer.item.0.bias", 0, np.inf), "not finite"),
    "a look-alike of NaN": (spoil("look_alikes", 7, np.nan), "not finite"),
    "a look-alike outside": (spoil("look_alikes", 7, 1.5), "from 0 to 1"),
    "a weight changed a little": (spoil("scorer.trunk.1.weight", 5, 0.125), "changed or damaged"),
    "a weight in another type": (edit("scorer.trunk.1.weight", lambda w: w.astype(np.float64)), "changed or damaged"),
    "look-alikes in another type": (edit("look_alikes", lambda rows: rows.astype(np.float64)), "changed or damaged"),
    "a tensor of nobody": (put("other", np.zeros(3)), "changed or damaged"),
    "ids that fall": (edit("items.ids", lambda ids: ids[::-1].copy()), "ascend"),
    "ids that repeat": (edit("items.ids", lambda ids: ids * 0), "ascend"),
    "ids that are no whole numbers": (edit("items.ids", lambda ids: ids.astype(np.float32)), "whole numbers or texts"),
    "one id less": (edit("items.ids", lambda ids: ids[1:]), "one title for each item"),
    "titles that are no text": (spoil("items.titles", 0, 255), "cannot be read as texts"),
    "titles that end too late": (edit("items.titles.ends", lambda ends: ends + 1), "cannot be read as texts"),
    "titles that end before they begin": (spoil("items.titles.ends", 0, 10_000), "cannot be read as texts"),
    "ends in another type": (edit("items.titles.ends", lambda ends: ends.astype(np.int32)), "cannot be read as texts"),
    "swapped letters": (spoil("items.titles", 0, ord("G")), "changed or damaged"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "told"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_store_is_refused(change: Change, told: str, tmp_path: Path) -> None:
    content = written(change)
    assert content != NETWORK.to_bytes()
    with pytest.raises(InvalidModel, match=re.escape(told)):
        Store.from_bytes(content)
    (tmp_path / "x.tacit").write_bytes(content)
    with pytest.raises(InvalidModel, match=re.escape(told)):
        Store.load(tmp_path / "x.tacit")


@pytest.mark.parametrize(
    "change",
    [
        edit("scorer.flags", lambda flags: flags * 2),
        edit("look_alikes", lambda rows: rows.astype(np.float64)),
        put("other", np.zeros(3)),
        say("remark", "hello"),
    ],
)
def test_what_a_store_does_not_hold_is_refused_even_with_the_right_digest(change: Change) -> None:
    def signed(tensors: Tensors, header: Header) -> None:
        change(tensors, header)
        header["digest"] = digest({name: value for name, value in header.items() if name != "digest"}, tensors)

    with pytest.raises(InvalidModel, match="changed or damaged"):
        Store.from_bytes(written(signed))


@pytest.mark.parametrize("name", ["two-tower", "factors", "onnx"])
def test_a_tensor_missing_from_any_kind_is_refused(name: str) -> None:
    store = STORES[name]
    for tensor in load_tensors(store.to_bytes()):
        with pytest.raises(InvalidModel):
            Store.from_bytes(written(drop(tensor), store))


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    content = NETWORK.to_bytes()
    others = {
        "empty": b"",
        "text": b"user,item,rating\n1,2,3\n" * 100,
        "cut off in the tensors": content[:-100],
        "cut off in the header": content[:50],
        "longer than it says": content + b"more",
        "a header without end": (1 << 40).to_bytes(8, "little") + content[8:],
        "a pickle": b"\x80\x04\x95" + content[3:],
        "tensors of somebody else": save_tensors({"weight": np.zeros((2, 2), dtype=np.float32)}),
        "metadata of somebody else": written(lambda tensors, header: None, key="other"),
        "a deep header": save_tensors({"x": np.zeros(1)}, metadata={"tacit.store": "[" * 100_000}),
        "a header that is a list": save_tensors({"x": np.zeros(1)}, metadata={"tacit.store": "[1]"}),
    }
    for what, other in others.items():
        path = tmp_path / "x.tacit"
        path.write_bytes(other)
        with pytest.raises(InvalidModel, match="not a store"):
            Store.load(path)
        with pytest.raises(InvalidModel, match="not a store"):
            Store.from_bytes(other)
        assert what


def test_every_flipped_bit_is_found() -> None:
    content = STORES["factors"].to_bytes()
    rng = np.random.default_rng(17)
    start = 8 + int.from_bytes(content[:8], "little")
    for place in rng.integers(0, len(content), 60).tolist() + rng.integers(start, len(content), 60).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        try:
            read = Store.from_bytes(bytes(flipped))
        except InvalidModel:
            continue
        assert read.version == STORES["factors"].version  # only a blank of the header may change without a trace
        assert place < start


def test_loading_a_store_runs_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    def loaded(*_: object, **__: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(onnxruntime, "InferenceSession", loaded)
    store = Store.load(STORES["onnx"].save(tmp_path / "x.tacit"))
    assert str(store) == str(STORES["onnx"])
    with pytest.raises(InvalidModel, match="a model was loaded"):
        scores(store)
