"""Clicks from randomised bits at the server: without bias, with the error that is stated, by the bits that came."""

import logging
import math
from itertools import product
from pathlib import Path

import pytest

from tacit.errors import InvalidParameter
from tacit.ledger import Settlement
from tacit.messages.private_selection import Engagement, Impression, OfferRequest
from tacit.server import Listings, PrivateSelection, click_estimate
from tacit.server.clicks import reward
from tests.releases import message_of


def kept(epsilon: float) -> float:
    return math.exp(epsilon) / (1.0 + math.exp(epsilon))


def test_the_estimate_has_no_bias_and_its_sd_is_exact() -> None:
    """All 2^5 outcomes of five bits, three of them clicks, weighed by their probability."""
    clicks, epsilon = (1, 0, 1, 1, 0), 0.7
    p = kept(epsilon)
    mean = square = 0.0
    for bits in product((0, 1), repeat=5):
        weight = math.prod(p if bit == click else 1.0 - p for bit, click in zip(bits, clicks, strict=True))
        found = click_estimate(5, sum(bits), epsilon)
        mean += weight * found.clicks
        square += weight * found.clicks**2
    assert mean == pytest.approx(3.0, rel=1e-12)
    assert click_estimate(5, 0, epsilon).sd == pytest.approx(math.sqrt(square - mean**2), rel=1e-12)


def test_the_stated_error_at_ten_thousand_impressions() -> None:
    assert click_estimate(10_000, 3_000, 1.0).sd == pytest.approx(95.95, abs=0.01)


def test_bits_received_count_and_not_impressions() -> None:
    """10,000 impressions, 680 clicks, a tenth of the bits missing, each count at its mean."""
    p = kept(1.0)
    received, clicks = 9_000, 612
    ones = round(clicks * p + (received - clicks) * (1 - p))
    assert click_estimate(received, ones, 1.0).clicks == pytest.approx(612, abs=1.5)
    by_impressions = click_estimate(10_000, ones, 1.0).clicks
    assert by_impressions - 680 == pytest.approx(-650, abs=2)


def test_estimates_below_0_are_kept() -> None:
    assert click_estimate(100, 0, 1.0).clicks < 0.0
    assert click_estimate(100, 100, 1.0).clicks > 100.0
    assert click_estimate(0, 0, 1.0) == (0.0, 0.0, 0)


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 40.0, 5_000.0])
def test_no_epsilon_overflows(epsilon: float) -> None:
    found = click_estimate(10, 4, epsilon)
    assert math.isfinite(found.clicks)
    assert math.isfinite(found.sd)
    assert click_estimate(10, 5, epsilon).clicks == pytest.approx(5.0)


def test_wrong_counts_are_refused() -> None:
    for received, ones, epsilon in ((3, 4, 1.0), (-1, 0, 1.0), (3, 1, 0.0), (3, 1, math.nan), (3.5, 1, 1.0)):
        with pytest.raises(InvalidParameter):
            click_estimate(received, ones, epsilon)  # type: ignore[arg-type]


def test_one_bit_is_an_estimate_of_its_click_without_bias() -> None:
    p = kept(1.3)
    for click in (0, 1):
        mean = sum((p if bit == click else 1 - p) * reward(bit, 1.3) for bit in (0, 1))
        assert mean == pytest.approx(click, abs=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 2.0000000000000004])
def test_bits_that_were_flipped_at_another_epsilon_are_refused(
    tmp_path: Path, epsilon: float, caplog: pytest.LogCaptureFixture
) -> None:
    """At 1 a bit says less than at 2: counted as one of 2, every estimate would be wrong, and nobody would notice."""
    shop = PrivateSelection(Listings(["tent"], [10**6], [10**5]), tmp_path / "s.db", click_epsilon=2.0, explore=1.0)
    offer = shop.offer(OfferRequest("", consent=True))
    assert offer is not None
    shop.bill(message_of(Impression, offer.token, ("tent",)))
    with caplog.at_level(logging.DEBUG):
        assert shop.engage(message_of(Engagement, offer.token, 1, epsilon)) is Settlement.CONFLICT
    assert not caplog.records  # a line would say what was sent, and when
    assert shop.clicks("tent").received == 0
    assert not shop.exploration.rows
    assert shop.engage(message_of(Engagement, offer.token, 1, 2.0)) is Settlement.OK  # the token was not used up


def test_the_server_counts_the_bits_that_it_received(tmp_path: Path) -> None:
    shop = PrivateSelection(Listings(["x"], [10**6], [10**5]), tmp_path / "s.db", click_epsilon=2.0)
    tokens = []
    for _ in range(6):
        offer = shop.offer(OfferRequest("", consent=True))
        assert offer is not None
        tokens.append(offer.token)
        assert shop.bill(message_of(Impression, offer.token, ("x",))) is Settlement.OK
    for token, bit in zip(tokens[:4], (1, 0, 1, 0), strict=True):
        assert shop.engage(message_of(Engagement, token, bit, 2.0)) is Settlement.OK
    assert shop.engage(message_of(Engagement, tokens[0], 1, 2.0)) is Settlement.DUPLICATE
    assert shop.engage(message_of(Engagement, tokens[0], 0, 2.0)) is Settlement.CONFLICT
    assert shop.engage(message_of(Engagement, "00" * 16, 0, 2.0)) is Settlement.UNKNOWN
    assert shop.clicks("x") == click_estimate(4, 2, 2.0)
    assert shop.ledger.item("x").impressions == 6
    assert shop.clicks("y").received == 0
