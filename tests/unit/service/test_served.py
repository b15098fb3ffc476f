"""What is served of a version: the catalogue that a device rebuilds everything from, and the scorer in parts."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import InvalidModel, TacitError
from tacit.ledger import ImpressionLedger
from tacit.messages.multi_selection import GRID_BITS, Reply
from tacit.messages.private_slates import Popularity
from tacit.messages.store import Store
from tacit.models.features import GenreProfile, version_of
from tacit.service.bodies import json_bytes
from tacit.service.served import ServedVersion
from tacit.service.settings import Settings
from tacit.service.versions import add_release, current, publish
from tests.releases import message_of
from tests.unit.server.small_store import small_store
from tests.unit.service.released import NAMES, counts_of, transfer_model

Serve = Callable[..., ServedVersion]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[ImpressionLedger]:
    with ImpressionLedger.create(tmp_path / "server.db") as opened:
        yield opened


@pytest.fixture
def serve(settings: Callable[..., Settings], ledger: ImpressionLedger) -> Serve:
    def make(models: Path | None = None, **given: object) -> ServedVersion:
        if models is not None:
            given["models"] = models
        found = settings(**given)
        return ServedVersion(current(found.models_folder), found, ledger)

    return make


def test_from_the_catalogue_a_device_makes_the_same_features(serve: Serve, store: Store) -> None:
    catalogue = json.loads(serve().catalogue.content)
    about = catalogue["features"]
    flags = np.zeros((len(catalogue["ids"]), len(about["names"])), dtype=bool)
    for item, genres in enumerate(catalogue["genres"]):
        flags[item, genres] = True
    rebuilt = GenreProfile(flags, about["liked_from"])
    assert version_of(rebuilt) == version_of(store.space)
    rng = np.random.default_rng(3)
    for _ in range(20):
        items = rng.choice(len(flags), 8, replace=False)
        values = rng.integers(1, 11, 8) / 2.0
        assert np.array_equal(rebuilt.of(items, values), store.space.of(items, values))
    assert (about["kind"], about["dimension"], about["low"], about["high"]) == ("genre-profile/1", 10, 0.0, 1.0)
    assert (about["names"], about["grid_bits"]) == (NAMES, GRID_BITS)


def test_the_catalogue_names_every_item_and_the_model(serve: Serve, store: Store) -> None:
    served = serve()
    catalogue = json.loads(gzip.decompress(served.catalogue.gzipped))
    assert set(catalogue) == {"version", "name", "model", "features", "ids", "titles", "genres"}
    assert (catalogue["ids"], catalogue["titles"]) == (store.items.ids.tolist(), list(store.items.titles or ()))
    assert (catalogue["version"], catalogue["name"], catalogue["model"]) == (1, "small", store.version)
    assert served.title(catalogue["ids"][5]) == "Film 5"


def test_without_titles_or_names_there_are_none(serve: Serve, tmp_path: Path) -> None:
    publish(tmp_path / "m", small_store())
    catalogue = json.loads(serve(tmp_path / "m").catalogue.content)
    assert catalogue["titles"] is None
    assert catalogue["features"]["names"] == [f"feature {place}" for place in range(1, 6)]


def test_the_parts_of_the_scorer_cover_every_listed_item_once(serve: Serve, tmp_path: Path) -> None:
    store = small_store(700, look_alikes=60)
    publish(tmp_path / "m", store, releases={"counts": counts_of(store)})
    served = serve(tmp_path / "m", offered=600)
    parts = served.scorer
    assert [len(part.items) for part in parts] == [255, 255, 90]
    numbers = [number for part in parts for number in part.items]
    assert [str(number) for number in numbers] == list(served.offered.listings.items)
    assert len(set(numbers)) == 600
    person = store.look_alikes[3].astype(np.float64)
    read = [Reply.from_bytes(part.to_bytes()) for part in parts]
    estimates = np.concatenate([part.model.estimate(person) for part in read])
    assert estimates == pytest.approx(served.offered.map.estimate(person), rel=1e-4, abs=1e-4)


def test_what_is_told_of_the_model_is_what_was_published(serve: Serve, store: Store) -> None:
    served = serve()
    assert json.loads(json_bytes(served.about)) == {
        "version": served.version.name,
        "store": store.version,
        "name": "small",
        "items": 60,
        "look_alikes": 80,
        "guarantee": store.guarantee.to_json(),
        "published": served.version.published,
    }


def test_the_release_that_tells_most_is_the_yardstick_and_what_is_offered(
    serve: Serve, home: Path, store: Store
) -> None:
    models = home / "models"
    assert [*serve(models, offered=2).offered.listings.items] == [str(one) for one in store.items.ids[[59, 58]]]
    more = counts_of(store, 4.0)
    add_release(models, "counts-4", message_of(Popularity, more.items, more.steps[::-1] - 5, more.step, more.guarantee))
    add_release(models, "books", transfer_model())  # is no count: sent to whoever asks, and nothing is made from it
    served = serve(models)
    assert set(served.slates) == {"counts-1", "counts-4"}
    assert served.slates_together is not None
    assert served.slates_together.epsilon == pytest.approx(5.0)
    # by the more exact of the two, and nothing is liked less than never
    assert served.liked == {item: max(54.0 - place, 0.0) for place, item in enumerate(store.items.ids.tolist())}
    assert [*serve(models, offered=2).offered.listings.items] == [str(one) for one in store.items.ids[[0, 1]]]
    assert served.warm_up() is served


def test_without_counts_there_are_no_slates(serve: Serve, tmp_path: Path) -> None:
    publish(tmp_path / "m", small_store())
    served = serve(tmp_path / "m").warm_up()
    assert (served.slates, served.slates_together, served.liked) == ({}, None, {})


def test_genres_are_rows_of_length_1(serve: Serve, store: Store) -> None:
    rows = serve().rows
    assert rows is not None
    assert isinstance(store.space, GenreProfile)
    some = store.space.flags.any(axis=1)
    assert np.linalg.norm(rows[some], axis=1) == pytest.approx(1.0)
    assert not rows[~some].any()


@pytest.mark.parametrize("name", ["store.tacit", "tables.safetensors", "counts-1"])
def test_a_version_with_a_damaged_file_is_not_taken_up(serve: Serve, home: Path, name: str) -> None:
    file = current(home / "models").folder / name
    content = file.read_bytes()
    file.write_bytes(content[:-10] + bytes([content[-10] ^ 1]) + content[-9:])
    with pytest.raises(TacitError):
        serve(home / "models")


def test_a_store_of_another_version_is_not_taken_up(serve: Serve, home: Path) -> None:
    """Whole, and yet not the one that the manifest names."""
    small_store(seed=4).save(current(home / "models").folder / "store.tacit")
    with pytest.raises(InvalidModel, match="not the one that was published"):
        serve(home / "models")
