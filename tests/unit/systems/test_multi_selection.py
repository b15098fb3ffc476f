"""One user asks once, through real bytes: sizes, utilities by a slow reference, refusals."""

import numpy as np
import pytest

from tacit.errors import InvalidFeatures, InvalidMessage
from tacit.mechanisms import ReplayedNoise
from tacit.messages.multi_selection import Reply, Request
from tacit.systems.multi_selection import simulate
from tests.unit.server.small_store import random_features, small_store

STORE = small_store()
USER = random_features(1, seed=3)[0]


class Silent:
    """Noise that must not be drawn."""

    caveat = None

    def draw(self, count: int) -> bytes:
        raise AssertionError("noise was drawn")


def asked(**settings: object):  # type: ignore[no-untyped-def]
    return simulate(STORE, USER, noise=ReplayedNoise(5), rng=np.random.default_rng(6), **settings)  # type: ignore[arg-type]


def test_only_the_request_is_sent_and_both_messages_have_their_size() -> None:
    outcome = asked(k=5)
    assert len(outcome.request) == 16 + 4 * STORE.space.dimension
    assert len(outcome.reply) == 8 + 5 * 8 + 4 * 5 * (1 + STORE.space.dimension)
    read = Request.from_bytes(outcome.request)
    assert (read.k, read.t) == (5, 1)
    assert read.signal.guarantee == outcome.guarantee
    assert Reply.from_bytes(outcome.reply).items == tuple(int(STORE.items.numbers[code]) for code in outcome.slate)


@pytest.mark.parametrize("local_model", ["ridge", "pca", "pca-map", "network", "none"])
@pytest.mark.parametrize("t", [1, 2])
def test_utilities_are_those_of_the_model_at_the_true_features(local_model: str, t: int) -> None:
    outcome = asked(k=5, t=t, local_model=local_model)
    scores = STORE.scorer.score(USER[None], np.arange(len(STORE.items)))[0]
    assert outcome.best == pytest.approx(sum(sorted(scores)[-t:]), rel=1e-6)
    assert outcome.offered == pytest.approx(sum(sorted(scores[list(outcome.slate)])[-t:]), rel=1e-6)
    assert outcome.taken == pytest.approx(sum(scores[list(outcome.picked)]), rel=1e-6)
    assert set(outcome.picked) <= set(outcome.slate)
    assert len(outcome.picked) == t
    assert outcome.best >= outcome.offered >= outcome.taken - 1e-9


def test_with_the_network_on_the_device_the_pick_loses_what_the_slate_loses() -> None:
    outcome = asked(local_model="network")
    assert outcome.taken == pytest.approx(outcome.offered)


def test_without_a_model_the_first_of_the_slate_is_taken() -> None:
    outcome = asked(local_model="none")
    assert outcome.picked == outcome.slate[:1]


def test_equal_noise_and_coins_give_equal_bytes_and_other_noise_others() -> None:
    assert asked(algorithm="sat-realuser").reply == asked(algorithm="sat-realuser").reply
    other = simulate(STORE, USER, noise=ReplayedNoise(6), rng=np.random.default_rng(6))
    assert other.request != asked().request


def test_replayed_noise_promises_nothing_and_system_noise_promises_the_stated_epsilon() -> None:
    assert asked().guarantee.promises_nothing
    assert simulate(STORE, USER, 0.1).guarantee.epsilon == pytest.approx(10.0)


def test_features_outside_their_domain_are_refused_before_noise_is_drawn() -> None:
    with pytest.raises(InvalidFeatures):
        simulate(STORE, USER * 2.0, noise=Silent())


def test_more_picks_than_items_are_refused() -> None:
    with pytest.raises(InvalidMessage):
        asked(k=2, t=3)


def test_an_outcome_shows_no_item() -> None:
    assert repr(asked()) == "PickTranscript(5 items, 268 bytes received, 56 bytes sent)"
