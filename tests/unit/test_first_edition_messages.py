"""Messages that version 0.1.0 wrote are read, and written again, letter for letter; what it refused is refused."""

import json
import os
from typing import Any

import numpy as np
import pytest

import tacit.errors
from tests.unit.first_edition import (
    IN_BYTES,
    IN_JSON,
    Keys,
    Masked,
    Shares,
    SumSession,
    Unmask,
    bent,
    fp,
    openapi_of,
    outcomes,
    pack,
    probes,
    read_reply,
    read_sender,
    recorded,
    text_of,
    unpack,
)

MESSAGES: dict[str, list[dict[str, Any]]] = recorded("messages.json")
STRICTNESS = recorded("strictness.json")
FRAMES = recorded("frames.json")
PROFILE = {"a": 5.0, "b": 2, "c": 4.0, "unheard of": 99.0}
in_json = pytest.mark.parametrize("name", [name for name, rows in MESSAGES.items() if "json" in rows[0]])
in_bytes = pytest.mark.parametrize("name", [name for name, rows in MESSAGES.items() if "bytes" in rows[0]])


def test_every_message_has_its_fixture() -> None:
    assert {name for name, rows in MESSAGES.items() if "json" in rows[0]} == set(IN_JSON)
    assert {name for name, rows in MESSAGES.items() if "bytes" in rows[0]} == set(IN_BYTES) - {"Store"}
    assert {row["kind"] for row in FRAMES["frames"]} == {
        *("Manifest", "Step", "Reply", "SharedModel"),
        *("Keys", "Shares", "Masked", "Unmask"),
    }


@in_json
def test_what_was_written_in_json_is_read_and_written_again_to_the_letter(name: str) -> None:
    for row in MESSAGES[name]:
        message = IN_JSON[name].from_json(json.loads(row["json"]))
        if hasattr(message, "to_json"):
            assert text_of(message) == row["json"]
        if "bytes" in row:
            assert message.to_bytes().hex() == row["bytes"]
        if "guarantee" in row:
            assert message.guarantee.to_json() == row["guarantee"]


@in_bytes
def test_so_is_what_was_written_in_bytes(name: str) -> None:
    for row in MESSAGES[name]:
        message = IN_BYTES[name].from_bytes(bytes.fromhex(row["bytes"]))
        assert message.to_bytes().hex() == row["bytes"]
        if "json" in row:
            assert text_of(message) == row["json"]


# A member of a roster was once refused as a wrong parameter, unlike all other messages. What is read is the same.
MEMBER = "federated_prototypes.Member"
OF_A_MEMBER = {
    note: {
        "probes": said["probes"],
        "usual": "invalid-message",
        "name": {key: said["name"][key] for key in ("read", "as")},
    }
    for note, said in STRICTNESS["json"][MEMBER].items()
}


@in_json
def test_what_is_no_message_is_refused_with_the_same_code(name: str) -> None:
    assert set(STRICTNESS["json"][name]) == {row["note"] for row in MESSAGES[name]}
    for row in MESSAGES[name]:
        found = outcomes(IN_JSON[name].from_json, probes(json.loads(row["json"])))
        assert found["probes"] > 50
        assert found == (OF_A_MEMBER if name == MEMBER else STRICTNESS["json"][name])[row["note"]]


@in_bytes
def test_so_are_bytes_that_are_none(name: str) -> None:
    for row in MESSAGES[name]:
        found = outcomes(IN_BYTES[name].from_bytes, bent(bytes.fromhex(row["bytes"])))
        assert found == STRICTNESS["bytes"][name][row["note"]]


def test_a_manifest_has_the_same_run_and_the_same_terms() -> None:
    for row in MESSAGES["federated_prototypes.Manifest"]:
        manifest = fp.Manifest.from_json(json.loads(row["json"]))
        assert (manifest.run, list(manifest.stages), manifest.needed) == (row["run"], row["stages"], row["needed"])
        assert len(manifest.warnings()) == row["warnings"]
    assert fp.catalogue_hash(["a", "é"]) == FRAMES["catalogue_hash"]["texts"]
    assert fp.catalogue_hash([3, 1, 2]) == FRAMES["catalogue_hash"]["numbers"]


def test_an_offer_of_a_batch_has_the_same_group() -> None:
    found = [row for row in MESSAGES["private_selection.Offer"] if "group" in row]
    assert len(found) == 2
    for row in found:
        offer = IN_JSON["private_selection.Offer"].from_json(json.loads(row["json"]))
        assert offer.group_under(offer.policy) == row["group"]


def test_a_transfer_model_predicts_the_same() -> None:
    for row in MESSAGES["cross_domain.TransferModel"]:
        model = IN_JSON["cross_domain.TransferModel"].from_json(json.loads(row["json"]))
        assert model.predict(PROFILE) == pytest.approx(row["predicts"], rel=1e-9)
    for row in MESSAGES["cross_domain.Replacements"]:
        table = IN_JSON["cross_domain.Replacements"].from_json(json.loads(row["json"]))
        found = table.alter_ego({1: 4.0, "2": 2, "a": 3.0})
        assert [[item, value] for item, value in found.items()] == row["alter_ego"]


@pytest.mark.parametrize("place", range(len(FRAMES["frames"])), ids=lambda place: FRAMES["frames"][place]["kind"])
def test_signed_frames_are_read_and_signed_again_to_the_same_bytes(place: int) -> None:
    row = FRAMES["frames"][place]
    data = bytes.fromhex(row["bytes"])
    frame = fp.open_frame(data)
    key = bytes.fromhex(FRAMES["keys"][row["signer"]] if row["world"] else FRAMES["session_key"])
    frame.verify(fp.public_of(key))
    assert fp.sign(key, frame.header, frame.arrays) == data
    assert _again(row, data, key) == data
    for flipped in (data[:-1] + bytes([data[-1] ^ 1]), data[:-1]):
        with pytest.raises(tacit.errors.InvalidMessage):
            fp.open_frame(flipped).verify(fp.public_of(key))


def _again(row: dict[str, Any], data: bytes, key: bytes) -> bytes:
    """Read as what it is, and written by that."""
    kind, frame = row["kind"], fp.open_frame(data)
    if row["world"] is None:
        return _secure(kind, data, key)
    made = next(one for one in MESSAGES["federated_prototypes.Manifest"] if one["note"] == row["world"])
    manifest = fp.Manifest.from_json(json.loads(made["json"]))
    if kind == "Manifest":
        assert frame.digest == row["digest"]
        assert fp.Manifest.from_frame(frame, fp.public_of(key)) == manifest
        return manifest.signed(key)
    if kind == "Step":
        return fp.Step.from_frame(frame, manifest).signed(key)
    if kind == "SharedModel":
        model = fp.SharedModel.from_frame(frame, manifest)
        assert model.hash == row["hash"]
        return model.signed(key)
    sent, sender, stage = read_sender(data, manifest)
    reply = read_reply(sent, manifest, row["head"])
    assert (sender, stage, reply.entry) == ("a", reply.stage, row["entry"])
    return reply.signed(key, manifest)


def _secure(kind: str, data: bytes, key: bytes) -> bytes:
    said = FRAMES["session"]
    roster = {name: bytes.fromhex(public) for name, public in said["roster"].items()}
    session, everybody = SumSession(said["run"], roster, said["fewest"], said["colluding"]), sorted(roster)
    if kind == "Keys":
        return Keys.read(session, data).signed(session, key)
    if kind == "Shares":
        return Shares.read(session, data, everybody).signed(session, key)
    if kind == "Masked":
        masked = Masked.read(session, data, "gram", everybody, 3)
        assert masked.values.tolist() == np.array([0, 1, 2**64 - 1], dtype=np.uint64).tolist()
        return masked.signed(session, key, everybody)
    return Unmask.read(session, data, "gram", everybody, everybody).signed(session, key, everybody)


def test_parcels_are_packed_the_same_way() -> None:
    parcels = {name: bytes.fromhex(one) for name, one in FRAMES["parcels"].items()}
    assert pack(parcels).hex() == FRAMES["packed"]
    assert unpack(bytes.fromhex(FRAMES["packed"])) == parcels


def test_every_error_has_the_code_and_the_bases_that_it_had() -> None:
    for name, said in recorded("errors.json").items():
        found = getattr(tacit.errors, name)
        assert found.code == said["code"]
        assert [base.__name__ for base in found.__mro__[1:-1]] == said["bases"]


@pytest.mark.parametrize("name", ["server", "curator"])
def test_an_application_documents_the_same_routes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [one for one in os.environ if one.startswith("TACIT_SERVE_")]:
        monkeypatch.delenv(variable)
    now, before = without_prose(openapi_of(name)), without_prose(recorded(f"openapi_{name}.json"))
    statements = [document["components"]["schemas"].pop("LedgerStatement") for document in (now, before)]
    assert now == before
    assert set(statements[0]["required"]) >= set(statements[1]["required"])  # only this schema says more than it did


def without_prose(document: Any) -> Any:
    """A document without its descriptions, which may change, and with no order of required members, which means nothing."""
    if isinstance(document, dict):
        return {
            key: sorted(value) if key == "required" and isinstance(value, list) else without_prose(value)
            for key, value in document.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [without_prose(value) for value in document] if isinstance(document, list) else document
