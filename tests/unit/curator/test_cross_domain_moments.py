"""Mode 'moments': what is released is what the mechanism draws from the right rows, and the model is made of that alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator.cross_domain.domains import BothDomains, ReleaseRequest, mu_within, union
from tacit.curator.cross_domain.moments import Moments, Post
from tacit.data.pairs import TwoDomains
from tacit.errors import InvalidParameter
from tacit.ledger import Accounting, Budget
from tacit.mechanisms import RatingMoments, ReplayedNoise, TransferMoments
from tacit.mechanisms.rating_rows import RatingBounds
from tacit.messages.cross_domain import TransferModel
from tacit.models.cross_domain.transfer import TransferSettings
from tacit.models.cross_domain.transfer_models import bridge, factor_posterior, honest_x_map
from tests.releases import message_of
from tests.unit.curator.cross_domain_world import curator, world

SETTINGS = TransferSettings.for_scale(0.5, 5.0, users=3_000)
OWN = replace(SETTINGS, centre=None)


@pytest.fixture(scope="module")
def domains() -> TwoDomains:
    return world(120, 15)


def released(folder: Path, data: Any, **options: Any) -> TransferModel:
    noise = ReplayedNoise(11)
    with curator(folder, data, noise=noise, unprotected=[noise.caveat], budget=Budget(1e5, 1e-4)) as holder:
        return holder.release(**options)


def test_factors_are_made_of_transfer_moments_of_the_union(tmp_path: Path, domains: TwoDomains) -> None:
    mu = mu_within(2.0, 1e-6, Accounting.BASIC)
    bounds = RatingBounds(0.5, 5.0, SETTINGS.centre, SETTINGS.clip)
    head, share = SETTINGS.head_size(30, mu), SETTINGS.share_of_offsets(mu)
    mechanism = TransferMoments(
        30, 15, bounds, mu, 1e-6, head, share, SETTINGS.offset_norm, SETTINGS.mask, SETTINGS.pair_norm
    )
    drawn = mechanism.release(union(domains, 3)[0], ReplayedNoise(11)).value
    sums = drawn.offsets
    expected = factor_posterior(
        sums.values,
        sums.counts,
        sums.value_sd,
        sums.count_sd,
        drawn.head,
        drawn.matrix(),
        drawn.pair_sd,
        15,
        SETTINGS,
    )
    made = released(tmp_path, domains, settings=SETTINGS, least=3)
    assert made == message_of(TransferModel, made.source, made.target, expected, made.guarantee)
    assert made.source == tuple(range(1, 16))
    assert made.target == tuple(range(16, 31))
    assert made.kind == "factor-posterior"


@pytest.mark.parametrize("post", ["bridge", "alter-egos"])
def test_bridge_and_alter_egos_are_made_of_rating_moments(tmp_path: Path, domains: TwoDomains, post: str) -> None:
    mu = mu_within(2.0, 1e-6, Accounting.BASIC)
    bounds = RatingBounds(0.5, 5.0, None, OWN.clip)
    mechanism = RatingMoments(30, 15, bounds, mu, 1e-6, 30, OWN.pair_norm)
    drawn = mechanism.release(union(domains, 5)[0], ReplayedNoise(11)).value
    sums = (drawn.matrix(), drawn.values, drawn.counts)
    by_hand: dict[str, Any] = {
        "bridge": lambda: bridge(*sums, drawn.users, drawn.sds, 15, OWN),
        "alter-egos": lambda: honest_x_map(*sums, drawn.sds, 15, OWN),
    }
    made = released(tmp_path, domains, post=post, users=3_000)
    assert made == message_of(TransferModel, made.source, made.target, by_hand[post](), made.guarantee)
    assert made.kind == ("bridge" if post == "bridge" else "honest-x-map")


def test_with_much_budget_tastes_are_carried_and_told(tmp_path: Path) -> None:
    """Two kinds of people, and items of two kinds in both domains: who likes the first kind of films likes such books."""
    rng = np.random.default_rng(3)
    sign = np.sign(rng.standard_normal(400))[:, None] * np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    values = np.clip(np.rint(3.0 + 1.5 * sign + 0.3 * rng.standard_normal(sign.shape)), 1, 5)
    from tests.unit.curator.cross_domain_world import small

    made = released(tmp_path, small(values, cut=10), epsilon=500.0, settings=None, users=400)
    assert made.directions >= made.crossing >= 1
    fond = {item: 5.0 if item % 2 == 0 else 1.0 for item in range(10)}
    told = made.predict(fond)
    assert min(told[item] for item in range(10, 20, 2)) > max(told[item] for item in range(11, 20, 2)) + 1.0
    assert set(made.recommend(fond, 5)) == set(range(10, 20, 2))


def test_without_the_budget_for_a_direction_that_is_said(tmp_path: Path, domains: TwoDomains) -> None:
    made = released(tmp_path, domains, epsilon=0.5)
    assert made.directions == 0
    assert "only averages" in made.remark
    assert made.remark in repr(made)


# ---- public settings


def test_settings_are_by_default_those_of_the_scale(domains: TwoDomains) -> None:
    listed = BothDomains.of(domains)
    assert Moments().settings_for(listed) == TransferSettings.for_scale(0.5, 5.0)
    assert Moments(users=77).settings_for(listed).users == 77
    for post in (Post.BRIDGE, Post.ALTER_EGOS):
        assert Moments(post=post).settings_for(listed) == replace(TransferSettings.for_scale(0.5, 5.0), centre=None)
        assert Moments(settings=OWN, post=post).settings_for(listed) == OWN
        with pytest.raises(InvalidParameter, match="centre=None"):
            Moments(settings=SETTINGS, post=post).settings_for(listed)


@pytest.mark.parametrize("settings", [replace(SETTINGS, head=0), replace(SETTINGS, head=1)])
def test_without_a_pair_the_offsets_get_the_whole_budget(
    tmp_path: Path, domains: TwoDomains, settings: TransferSettings
) -> None:
    plan = Moments(settings=settings).plan(BothDomains.of(domains), ReleaseRequest(2.0, 1e-6), Accounting.BASIC)
    assert isinstance(plan.mechanism, TransferMoments)
    assert plan.mechanism.mus == (mu_within(2.0, 1e-6, Accounting.BASIC), 0.0)
    assert released(tmp_path, domains, settings=settings).directions == 0


@pytest.mark.parametrize("post", list(Post))
def test_numbers_are_no_more_than_room_was_asked_for(tmp_path: Path, domains: TwoDomains, post: Post) -> None:
    made = released(tmp_path, domains, epsilon=1e5, post=post.value)
    plan = Moments(post=post).plan(BothDomains.of(domains), ReleaseRequest(2.0, 1e-6), Accounting.BASIC)

    def count(value: Any) -> int:
        if isinstance(value, dict):
            return sum(map(count, value.values()))
        return sum(map(count, value)) if isinstance(value, list) else 1

    few = 12  # single ones: means, shares, bounds
    assert count(made.to_json()["model"]) <= plan.numbers + few


def test_the_mechanism_is_what_is_promised(domains: TwoDomains) -> None:
    for post in Post:
        for accounting in (Accounting.BASIC, Accounting.ZCDP):
            made = Moments(post=post).plan(BothDomains.of(domains), ReleaseRequest(1.0, 1e-6), accounting).mechanism
            assert made.guarantee.epsilon <= 1.0
            assert made.mu == mu_within(1.0, 1e-6, accounting)
            assert made.n_source == 15
            assert made.items == 30


def test_users_change_nothing_but_their_own_row(domains: TwoDomains) -> None:
    """Cutting users out of the ratings cuts their rows out of the table, and leaves all others as they were."""
    whole = union(domains, 3)[0].toarray()
    kept = np.arange(domains.n_users) % 3 != 0
    part = TwoDomains(domains.source.select_users(kept), domains.target.select_users(kept))
    assert np.array_equal(union(part, 3)[0].toarray(), whole[kept])
