"""Mode 'moments': noisy sums of both domains, released once, and a model made of them. Everything after the noise is free.

``post`` says what is made of the sums. "factors" (the default) releases offsets of all items and second moments of a head, and
finds directions of taste in them; "bridge" and "alter-egos" release all second moments, and regress the target on the source, or
map items as the paper does.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.checks import member, whole
from tacit.curator.cross_domain_budget import in_units, mu_within
from tacit.curator.cross_domain_modes import PUBLIC, SERVED, Asked, Mode
from tacit.curator.cross_domain_rows import LEAST_RATINGS, BothDomains
from tacit.curator.slate_account import SlateAccount
from tacit.errors import InvalidParameter
from tacit.guarantees import Release
from tacit.ledger import Accounting
from tacit.mechanisms import Noise, RatingMoments, TransferMoments
from tacit.mechanisms.rating_bounds import RatingBounds
from tacit.messages.cross_domain import TransferModel
from tacit.models.cross_domain.bridge import MOST as MOST_BRIDGE
from tacit.models.cross_domain.bridge import bridge
from tacit.models.cross_domain.factor_posterior import factor_posterior
from tacit.models.cross_domain.honest_x_map import honest_x_map
from tacit.models.cross_domain.settings import TransferSettings
from tacit.models.cross_domain.transfer import Transfer

if TYPE_CHECKING:
    from tacit.curator.cross_domain import Transfers

_SIMILAR = 50  # items of each target item
_MOST_ITEMS = 50  # of a user, where all second moments are released
_NUMBER = 27  # bytes of a float at most, with its sign, comma and brackets


class Post(StrEnum):
    FACTORS = "factors"
    BRIDGE = "bridge"
    ALTER_EGOS = "alter-egos"


class Plan(NamedTuple):
    """What is drawn, what is made of it, and how many numbers that holds at most. All of it public."""

    mechanism: TransferMoments | RatingMoments
    model_of: "ModelOf"
    numbers: int


def release(
    transfers: "Transfers",
    account: SlateAccount,
    asked: Asked,
    noise: Noise,
    *,
    settings: TransferSettings | None = None,
    users: int | None = None,
    post: str = "factors",
    least: int = LEAST_RATINGS,
) -> TransferModel:
    """One Gaussian release at (epsilon, delta) for the whole model. ``settings`` are public constants, by default those for the
    scale and for about ``users`` users: a public guess, which decides how the noise is shared out."""
    if not account.delta:
        raise InvalidParameter(
            f"Gaussian noise needs a budget with a delta, and this one is {account.terms.budgets[0]}: agree another one, "
            "Budget(epsilon=2, delta=1e-6), or use mode 'prs_valid'."
        )
    listed, wanted, least = transfers.listed, member("post", Post, post), whole("least", least, least=1)
    plan = planned(wanted, listed, _chosen(settings, users, wanted, listed), asked, account.terms.accounting)
    guarantee = account.promised(plan.mechanism.guarantee, (*listed.assumed, PUBLIC, SERVED))
    account.require_size(listed.id_bytes + _NUMBER * plan.numbers + len(account.packed(guarantee.to_json())))
    what = account.digest(Mode.MOMENTS.value, wanted.value, plan.mechanism, plan.model_of, listed.digest, least)

    def draw() -> bytes:
        drawn: Release[Any] = account.stated(plan.mechanism.release(listed.read(least), noise), guarantee)
        source, target = (tuple(part.ids.tolist()) for part in (listed.source, listed.target))
        return account.packed(TransferModel(source, target, plan.model_of(drawn.value), drawn.guarantee).to_json())

    return TransferModel.from_json(account.release(asked.release_id(Mode.MOMENTS, what), what, guarantee, draw))


def planned(post: Post, listed: BothDomains, settings: TransferSettings, asked: Asked, accounting: Accounting) -> Plan:
    """The mechanism that the budget affords, and what becomes of its output."""
    items, n_source = listed.n_items, listed.n_source
    mu = mu_within(asked.epsilon, asked.delta, accounting)
    delta = asked.delta if accounting is Accounting.ZCDP else in_units(asked.epsilon, asked.delta)[1]
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
        return Plan(first, model_of, items + head * (1 + settings.most_directions))
    second = RatingMoments(items, n_source, bounds, mu, delta, min(_MOST_ITEMS, items), settings.pair_norm)
    if post is Post.BRIDGE:
        return Plan(second, model_of, items * (1 + MOST_BRIDGE))
    similar = (items - n_source) * 2 * min(_SIMILAR, items - n_source)
    return Plan(second, model_of, items + n_source + similar)


@dataclass(frozen=True, slots=True)
class ModelOf:
    """A model from what was drawn: released numbers and public constants, and nothing else."""

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


def _chosen(settings: TransferSettings | None, users: int | None, post: Post, listed: BothDomains) -> TransferSettings:
    """Settings on the scale of these ratings, which is public; all second moments are of ratings centred by own means."""
    low, high = listed.scale.low, listed.scale.high
    if settings is None:
        stated = TransferSettings.for_scale(low, high, **({} if users is None else {"users": users}))
        return stated if post is Post.FACTORS else replace(stated, centre=None)
    if not isinstance(settings, TransferSettings):
        raise InvalidParameter(
            "settings must be TransferSettings: public constants, such as TransferSettings.for_scale(1, 5)."
        )
    if users is not None:
        raise InvalidParameter("settings say how many users there are about: leave `users` out.")
    if (settings.low, settings.high) != (low, high):
        raise InvalidParameter(
            f"these settings are for a scale from {settings.low:g} to {settings.high:g}, and the ratings' is {listed.scale}: "
            f"TransferSettings.for_scale({low:g}, {high:g})."
        )
    if post is not Post.FACTORS and settings.centre is not None:
        raise InvalidParameter(
            f"post {post.value!r} centres ratings by each user's own mean: give settings with centre=None."
        )
    return settings
