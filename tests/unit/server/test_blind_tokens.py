"""Blind tokens: the package against the vectors of RFC 9497 and against a second computation, then what is built on it."""

import builtins
import os
from typing import Any

import pytest

from tacit.device.catalogue import blind
from tacit.errors import Conflict, InvalidMessage, InvalidParameter, MissingExtra
from tacit.messages.private_selection import BatchTerms, Candidate, IssuedToken, Offer, Policy, Rule, TokenRequest
from tacit.server.shuffled import BlindTokens, InMemory, PlainTokens
from tests.unit.server import ristretto as book

voprf = pytest.importorskip("voprf").ristretto
hexadecimal = bytes.fromhex

# RFC 9497, A.1.2: ristretto255-SHA512, verifiable mode
SEED, INFO = b"\xa3" * 32, b"test key"
SECRET = int.from_bytes(hexadecimal("e6f73f344b79b379f1a0dd37e07ff62e38d9f71345ce62ae3a9bc60b04ccd909"), "little")
PUBLIC = hexadecimal("c803e2cc6b05fc15064549b5920659ca4a77b2cca6f04f6b357009335476ad4e")
BLINDED = hexadecimal("863f330cc1a1259ed5a5998a23acfd37fb4351a793a5b3c090b642ddc439b945")
EVALUATED = hexadecimal("aa8fa048764d5623868679402ff6108d2521884fa138cd7f9c7669a9a014267e")
PROOF = hexadecimal(
    "ddef93772692e535d1a53903db24367355cc2cc78de93b3be5a8ffcc6985dd06"
    "6d4346421d17bf5117a2a1ff0fcb2a759f58a539dfbe857a40bce4cf49ec600d"
)
OUTPUTS = {
    b"\x00": "b58cfbe118e0cb94d79b5fd6a6dafb98764dff49c14e1770b566e42402da1a7d"
    "a4d8527693914139caee5bd03903af43a491351d23b430948dd50cde10d32b3c",
    bytes([0x5A] * 17): "8a9a2f3c7f085b65933594309041fc1898d42d0858e59f90814ae90571a6df60"
    "356f4610bf816f27afdd84f47719e480906d27ecd994985890e5f539e7ea74b6",
}


class TestThePackage:
    """voprf is young and has one maintainer: it is believed as far as these tests go."""

    def test_the_second_computation_passes_the_vector_itself(self):
        assert book.encode(book.times(SECRET, book.G)) == PUBLIC
        assert book.encode(book.times(SECRET, book.decode(BLINDED))) == EVALUATED
        assert book.proves(PUBLIC, BLINDED, EVALUATED, PROOF)
        assert not book.proves(PUBLIC, BLINDED, EVALUATED, bytes([PROOF[0] ^ 1]) + PROOF[1:])

    def test_keys_evaluations_and_outputs_are_those_of_the_vectors(self):
        evaluator = voprf.Evaluator.from_seed(SEED, INFO)
        assert evaluator.public_key.serialize() == PUBLIC
        assert evaluator.evaluate(voprf.BlindedInput.deserialize(BLINDED)).serialize()[64:] == EVALUATED
        assert {given: evaluator.evaluate_known_input(given).hex() for given in OUTPUTS} == OUTPUTS

    def test_its_proofs_pass_the_second_computation(self):
        evaluator = voprf.Evaluator.from_seed(SEED, INFO)
        for _ in range(3):
            _, blinded = voprf.Client.blind(os.urandom(32))
            issued = evaluator.evaluate(blinded).serialize()
            assert book.proves(PUBLIC, blinded.serialize(), issued[64:], issued[:64])

    def test_what_is_unblinded_is_the_output_of_the_vector(self):
        evaluator = voprf.Evaluator.from_seed(SEED, INFO)
        for given, output in OUTPUTS.items():
            client, blinded = voprf.Client.blind(given)
            assert client.finalize(evaluator.evaluate(blinded), evaluator.public_key).hex() == output

    def test_every_damaged_byte_of_an_answer_is_refused(self):
        evaluator = voprf.Evaluator.from_seed(SEED, INFO)
        client, blinded = voprf.Client.blind(b"nonce")
        issued = evaluator.evaluate(blinded).serialize()
        for place in range(len(issued)):
            damaged = issued[:place] + bytes([issued[place] ^ 4]) + issued[place + 1 :]
            with pytest.raises(ValueError, match=r"invalid|proof"):
                client.finalize(voprf.VerifiableOutput.deserialize(damaged), evaluator.public_key)

    def test_an_element_under_another_key_is_refused_with_either_proof(self):
        published, other = (voprf.Evaluator.from_seed(bytes([n]) * 32, INFO) for n in (1, 2))
        client, blinded = voprf.Client.blind(b"nonce")
        good, bad = (one.evaluate(blinded).serialize() for one in (published, other))
        for sent in (bad, good[:64] + bad[64:], bad[:64] + good[64:]):
            with pytest.raises(ValueError, match="proof"):
                client.finalize(voprf.VerifiableOutput.deserialize(sent), published.public_key)

    def test_a_proof_for_another_blinding_is_refused(self):
        """Else a server could answer one element for another, and swap the marks of two users."""
        evaluator = voprf.Evaluator.from_seed(SEED, INFO)
        client, _ = voprf.Client.blind(b"nonce")
        _, another = voprf.Client.blind(b"nonce")
        with pytest.raises(ValueError, match="proof"):
            client.finalize(evaluator.evaluate(another), evaluator.public_key)

    def test_two_blindings_of_one_input_have_nothing_in_common_but_their_output(self):
        evaluator = voprf.Evaluator.from_seed(SEED, INFO)
        pairs = [voprf.Client.blind(b"nonce") for _ in range(50)]
        assert len({blinded.serialize() for _, blinded in pairs}) == 50
        assert len({evaluator.evaluate(blinded).serialize()[64:] for _, blinded in pairs}) == 50
        assert len({client.finalize(evaluator.evaluate(b), evaluator.public_key) for client, b in pairs}) == 1

    def test_an_element_that_says_nothing_is_refused(self):
        """The neutral element is the same under every key and every blinding."""
        for bad in (bytes(32), b"\xff" * 32, b"\x01" + bytes(31)):
            with pytest.raises(ValueError, match="invalid"):
                voprf.BlindedInput.deserialize(bad)
            with pytest.raises(ValueError, match="invalid"):
                voprf.PublicKey.deserialize(bad)


def offer(tokens: BlindTokens | PlainTokens, scope: str = "scope") -> Offer:
    candidates = (Candidate("a", 2.0), Candidate("b", 1.0))
    return Offer(
        tokens.offer_token(scope),
        10**9,
        Policy(Rule.RR, 2, 1.0),
        candidates,
        BatchTerms("batch", (3, 4), tokens.key(scope)),
    )


class TestBlindTokens:
    def test_a_token_is_issued_once_and_known_again(self):
        tokens = BlindTokens()
        blinded = blind(offer(tokens))
        token = blinded.finish(tokens.issue("scope", blinded.request))
        assert tokens.accepts("scope", token)
        assert len(token) == 192

    def test_the_server_sees_nothing_of_the_token_before_it_comes_back(self):
        tokens = BlindTokens()
        blinded = blind(offer(tokens))
        issued = tokens.issue("scope", blinded.request)
        token = blinded.finish(issued)
        seen = blinded.request.token + blinded.request.blinded + issued.evaluated
        for start in range(len(token) - 16):
            assert token[start : start + 16] not in seen

    def test_a_lost_answer_is_asked_for_again_and_gives_the_same_token(self):
        tokens = BlindTokens()
        blinded = blind(offer(tokens))
        first, second = (tokens.issue("scope", blinded.request) for _ in range(2))
        assert blinded.finish(first) == blinded.finish(second)

    def test_an_offer_has_one_token(self):
        tokens = BlindTokens()
        made = offer(tokens)
        tokens.issue("scope", blind(made).request)
        with pytest.raises(Conflict, match="one offer, one report"):
            tokens.issue("scope", blind(made).request)

    def test_it_has_one_token_also_when_its_first_answer_never_left(self):
        """The record is made before the evaluation."""
        issued = InMemory()
        tokens = BlindTokens(os.urandom(32), issued)
        made = offer(tokens)
        issued.first("scope", made.token, "00" * 32)
        with pytest.raises(Conflict):
            tokens.issue("scope", blind(made).request)

    @pytest.mark.parametrize("place", [0, 15])
    def test_offers_that_were_not_made_here_get_none(self, place: int):
        tokens = BlindTokens()
        request = blind(offer(tokens)).request
        raw = bytearray.fromhex(request.token)
        raw[place] ^= 1
        with pytest.raises(InvalidMessage, match="no offer"):
            tokens.issue("scope", TokenRequest(raw.hex(), request.blinded))

    def test_a_scope_has_a_key_and_offers_of_its_own(self):
        tokens = BlindTokens()
        blinded = blind(offer(tokens))
        token = blinded.finish(tokens.issue("scope", blinded.request))
        assert tokens.key("scope") != tokens.key("other")
        assert not tokens.accepts("other", token)
        with pytest.raises(InvalidMessage, match="no offer"):
            tokens.issue("other", blinded.request)

    def test_one_seed_makes_the_same_keys_after_a_restart(self):
        seed, issued = os.urandom(32), InMemory()
        first, second = BlindTokens(seed, issued), BlindTokens(seed, issued)
        made = offer(first)
        blinded = blind(made)
        token = blinded.finish(first.issue("scope", blinded.request))
        assert second.accepts("scope", token)
        with pytest.raises(Conflict):
            second.issue("scope", blind(made).request)

    def test_a_seed_needs_a_record(self):
        with pytest.raises(InvalidParameter, match="durable record"):
            BlindTokens(os.urandom(32))
        with pytest.raises(InvalidParameter, match="32 random bytes"):
            BlindTokens(b"short", InMemory())

    def test_invented_and_damaged_tokens_are_not_accepted(self):
        tokens = BlindTokens()
        blinded = blind(offer(tokens))
        token = bytes.fromhex(blinded.finish(tokens.issue("scope", blinded.request)))
        for place in (0, 31, 32, 95):
            damaged = token[:place] + bytes([token[place] ^ 1]) + token[place + 1 :]
            assert not tokens.accepts("scope", damaged.hex())
        assert not tokens.accepts("scope", os.urandom(96).hex())
        assert not tokens.accepts("scope", token[:95].hex())
        assert not tokens.accepts("scope", offer(tokens).token)

    def test_an_element_outside_the_group_is_refused_and_does_not_use_up_the_offer(self):
        tokens = BlindTokens()
        made = offer(tokens)
        with pytest.raises(InvalidMessage, match="no element"):
            tokens.issue("scope", TokenRequest(made.token, "ff" * 32))
        tokens.issue("scope", blind(made).request)


class TestTheDevice:
    def test_it_refuses_a_token_under_a_key_of_its_own(self):
        """A server that gives each user a key knows her report when it comes back."""
        published, own = BlindTokens(), BlindTokens()
        made = offer(published)
        blinded = blind(made)
        marked = own._voprf.Evaluator(os.urandom(32)).evaluate(
            voprf.BlindedInput.deserialize(bytes.fromhex(blinded.request.blinded))
        )
        with pytest.raises(InvalidMessage, match="key that the offer publishes"):
            blinded.finish(IssuedToken(marked.serialize().hex()))

    def test_a_key_of_its_own_puts_it_into_a_group_of_its_own(self):
        first, second = (offer(BlindTokens()) for _ in range(2))
        assert first.group_under(first.policy) != second.group_under(second.policy)

    @pytest.mark.parametrize("key", ["", "00" * 32, "ff" * 32, "ab" * 20])
    def test_an_offer_without_a_good_key_has_no_blind_token(self, key: str):
        made = offer(PlainTokens())
        made = Offer(made.token, made.expires, made.policy, made.candidates, BatchTerms("batch", (3, 4), key))
        with pytest.raises(InvalidMessage, match="key"):
            blind(made)

    def test_nothing_shows_the_nonce(self):
        tokens = BlindTokens()
        blinded = blind(offer(tokens))
        assert repr(blinded) == "BlindToken(...)"

    def test_every_offer_is_blinded_by_a_nonce_of_its_own(self):
        tokens = BlindTokens()
        made = offer(tokens)
        assert len({blind(made)._nonce for _ in range(20)}) == 20


class TestPlainTokens:
    def test_the_offers_token_is_the_reports(self):
        tokens = PlainTokens()
        token = tokens.offer_token("scope")
        assert tokens.accepts("scope", token)
        assert not tokens.accepts("other", token)
        assert not tokens.accepts("scope", os.urandom(16).hex())
        assert tokens.key("scope") == ""
        assert tokens.assumption is None
        with pytest.raises(InvalidMessage, match="no blind tokens"):
            tokens.issue("scope", TokenRequest(token, "00" * 32))

    def test_they_differ(self):
        tokens = PlainTokens()
        assert len({tokens.offer_token("scope") for _ in range(100)}) == 100


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def missing(name: str, *args: Any) -> Any:
        if name == "voprf":
            raise ImportError
        return real(name, *args)

    made = offer(BlindTokens())
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"tacit\[tokens\]"):
        BlindTokens()
    with pytest.raises(MissingExtra, match=r"tacit\[tokens\]"):
        blind(made)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"token": "0"}, {"blinded": "00" * 31}, {"more": 1}, {"token": None}]
)
def test_requests_are_read_strictly(change: dict[str, Any]):
    good = TokenRequest("0" * 32, "ab" * 32).to_json()
    assert TokenRequest.from_json(good) == TokenRequest("0" * 32, "ab" * 32)
    with pytest.raises(InvalidMessage):
        TokenRequest.from_json({**good, **change})


@pytest.mark.parametrize("change", [{"version": 2}, {"evaluated": "00" * 95}, {"more": 1}, {"evaluated": 3}])
def test_issued_tokens_are_read_strictly(change: dict[str, Any]):
    good = IssuedToken("ab" * 96).to_json()
    assert IssuedToken.from_json(good) == IssuedToken("ab" * 96)
    with pytest.raises(InvalidMessage):
        IssuedToken.from_json({**good, **change})
