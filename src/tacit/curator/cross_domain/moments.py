"""Mode 'moments': noisy sums of both domains, released once, and a model made of them. Everything after the noise is free."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from tacit.checks import keep, member, whole
from tacit.curator.account import CuratorAccount, RequestDigest
from tacit.curator.cross_domain.domains import (
    PUBLIC,
    SERVED,
    BothDomains,
    Domains,
    ReleaseRequest,
    in_units,
    mu_within,
)
from tacit.errors import InvalidParameter
from tacit.guarantees import Release
from tacit.ledger import Accounting
from tacit.mechanisms import Noise, RatingMoments, TransferMoments
from tacit.mechanisms.rating_rows import RatingBounds
from tacit.messages.cross_domain import TransferModel
from tacit.models.cross_domain.transfer import LEAST_RATINGS, Transfer, TransferSettings
from tacit.models.cross_domain.transfer_models import MOST as MOST_BRIDGE
from tacit.models.cross_domain.transfer_models import bridge, factor_posterior, honest_x_map

_SIMILAR = 50  # items of each target item
_MOST_ITEMS = 50  # of a user, if all second moments are released
_NUMBER = 27  # bytes of a float at most, with its sign, comma and brackets


class Post(StrEnum):
    """What is made of the sums.

    "factors" (the default) releases offsets of all items and second moments of a head, and finds directions of taste in them.
    "bridge" and "alter-egos" release all second moments; they regress the target on the source, or map items as the paper does.
    """

    FACTORS = "factors"
    BRIDGE = "bridge"
    ALTER_EGOS = "alter-egos"


@dataclass(frozen=True, slots=True)
class ModelOf:
    """Makes a model from what was drawn: from released numbers and public constants alone.

    The ledger names releases by a digest of the ``repr`` of this class and of `Post`: keep both as they are.
    """

    post: Post
    n_source: int
    settings: TransferSettings

    def __call__(self, drawn: Any) -> Transfer:
        n_source, settings = self.n_source, self.settings
        if self.post is Post.FACTORS:
            sums = drawn.offsets
            head, matrix, sd = drawn.head, drawn.matrix(), drawn.pair_sd
            known = (sums.values, sums.counts, sums.value_sd, sums.count_sd)
            return factor_posterior(*known, head, matrix, sd, n_source, settings)
        matrix, values, counts, sds = drawn.matrix(), drawn.values, drawn.counts, drawn.sds
        if self.post is Post.BRIDGE:
            return bridge(matrix, values, counts, drawn.users, sds, n_source, settings)
        return honest_x_map(matrix, values, counts, sds, n_source, settings, k=_SIMILAR)


class MomentsPlan(NamedTuple):
    """What is drawn, what is made of it, and how many numbers that holds at most. All of it is public."""

    mechanism: TransferMoments | RatingMoments
    model_of: ModelOf
    numbers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """One Gaussian release at (epsilon, delta) for the whole model.

    ``settings`` are public constants. By default they suit the scale and about ``users`` users, a public guess that decides how the
    noise is shared out. ``post`` is what is made of the sums. Users with fewer than ``least`` ratings in a domain do not count
    there.
    """

    name: ClassVar[str] = "moments"

    settings: TransferSettings | None = None
    users: int | None = None
    post: str = Post.FACTORS
    least: int = LEAST_RATINGS

    def __post_init__(self) -> None:
        keep(self, post=member("post", Post, self.post), least=whole("least", self.least, least=1))

    def release(
        self, domains: Domains, account: CuratorAccount, request: ReleaseRequest, noise: Noise
    ) -> TransferModel:
        """Plan, promise, room, then the release."""
        if not account.delta:
            raise InvalidParameter(
                f"Gaussian noise needs a budget with a delta, and this one is {account.terms.budgets[0]}: agree another one, "
                "Budget(epsilon=2, delta=1e-6), or use mode 'prs_valid'."
            )
        listed = domains.listed
        plan = self.plan(listed, request, account.terms.accounting)
        guarantee = account.promise(plan.mechanism.guarantee, (*listed.assumed, PUBLIC, SERVED))
        account.require_size(listed.id_bytes + _NUMBER * plan.numbers, guarantee)
        digest = account.digest(
            self.name, Post(self.post).value, plan.mechanism, plan.model_of, listed.digest, self.least
        )

        def draw() -> Release[Any]:
            return plan.mechanism.release(listed.read(self.least), noise)

        def message(release: Release[Any]) -> TransferModel:
            source, target = (tuple(catalogue.ids.tolist()) for catalogue in (listed.source, listed.target))
            return TransferModel.from_release(release.map(plan.model_of), source, target)

        release_id = request.release_id(self.name, digest)
        kept = account.release_message(release_id, RequestDigest(digest), guarantee, draw=draw, message=message)
        return TransferModel.from_json(kept)

    def plan(self, listed: BothDomains, request: ReleaseRequest, accounting: Accounting) -> MomentsPlan:
        """The mechanism that the budget affords, and what is made of its output."""
        settings, post = self.settings_for(listed), Post(self.post)
        items, n_source = listed.n_items, listed.n_source
        mu = mu_within(request.epsilon, request.delta, accounting)
        delta = request.delta if accounting is Accounting.ZCDP else in_units(request.epsilon, request.delta)[1]
        model_of = ModelOf(post, n_source, settings)
        bounds = RatingBounds(settings.low, settings.high, settings.centre, settings.clip)
        if post is Post.FACTORS:
            head = settings.head_size(items, mu)
            first = TransferMoments(
                items,
                n_source,
                bounds,
                mu,
                delta,
                head,
                offset_share=settings.share_of_offsets(mu),
                offset_norm=settings.offset_norm,
                mask=settings.mask,
                pair_norm=settings.pair_norm,
            )
            return MomentsPlan(first, model_of, items + head * (1 + settings.most_directions))
        second = RatingMoments(items, n_source, bounds, mu, delta, min(_MOST_ITEMS, items), settings.pair_norm)
        if post is Post.BRIDGE:
            return MomentsPlan(second, model_of, items * (1 + MOST_BRIDGE))
        similar = (items - n_source) * 2 * min(_SIMILAR, items - n_source)
        return MomentsPlan(second, model_of, items + n_source + similar)

    def settings_for(self, listed: BothDomains) -> TransferSettings:
        """Settings on the public scale of these ratings. All second moments are of ratings centred by each user's own mean."""
        settings, users, is_factors = self.settings, self.users, self.post == Post.FACTORS
        low, high = listed.scale.low, listed.scale.high
        if settings is None:
            usual = TransferSettings.for_scale(low, high, **({} if users is None else {"users": users}))
            return usual if is_factors else replace(usual, centre=None)
        if not isinstance(settings, TransferSettings):
            raise InvalidParameter(
                "settings must be TransferSettings: public constants, such as TransferSettings.for_scale(1, 5)."
            )
        if users is not None:
            raise InvalidParameter("`settings` has the number of users already: leave `users` out.")
        if (settings.low, settings.high) != (low, high):
            raise InvalidParameter(
                f"these settings are for a scale from {settings.low:g} to {settings.high:g}, and the ratings' is {listed.scale}: "
                f"TransferSettings.for_scale({low:g}, {high:g})."
            )
        if not is_factors and settings.centre is not None:
            raise InvalidParameter(
                f"post {str(self.post)!r} centres ratings by each user's own mean: give settings with centre=None."
            )
        return settings
