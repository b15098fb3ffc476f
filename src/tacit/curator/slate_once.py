"""What is released once and kept, noisy counts or a noisy kernel; and slates of it, which are post-processing and cost nothing."""

from collections.abc import Sequence
from hashlib import sha256
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from tacit.curator.likes import Likes
from tacit.curator.slate_account import SlateAccount
from tacit.curator.slate_drawing import counting
from tacit.curator.slate_plan import Plan
from tacit.curator.slate_request import checked_id
from tacit.curator.slate_routes import Route
from tacit.errors import InvalidParameter
from tacit.mechanisms import Noise
from tacit.messages.private_slates import Popularity, Similarity, Slate
from tacit.models.dpp.coins import Coins, RngCoins
from tacit.models.released_slates import ALPHA, from_counts, from_kernel, quality

Places = NDArray[np.int64]

_WIDEST = 1e100  # of likes_each, and its inverse the least: steps that a message carries, sums that are good floats


def release_once(
    account: SlateAccount, made: Plan, part: Likes, noise: Noise, request_id: str | None
) -> Popularity | Similarity:
    """The counts or the kernel of this plan: now, or as they were before. Without an id they are known by their digest."""
    counts = made.route is Route.COUNTS
    message = Popularity if counts else Similarity
    guarantee, release_of = account.promised(made.each, part.assumed), counting(made)
    items = len(part.ids)
    if not 1.0 / _WIDEST <= made.options.likes_each <= _WIDEST:
        raise InvalidParameter(f"likes_each must lie from {1.0 / _WIDEST:g} to {_WIDEST:g}.")
    account.require_room(part.id_bytes, items, items if counts else items * (items + 1) // 2, guarantee)

    def draw() -> bytes:
        release = account.stated(release_of(part.rows, noise), guarantee)
        return account.packed(message.from_release(release, part.ids).to_json())

    digest = _digest(account, made, part)
    return message.from_json(account.release(_release_id(made, digest, request_id), digest, guarantee, draw))


def require_left(account: SlateAccount, plans: Sequence[Plan], part: Likes) -> None:
    """Refuses releases without an id that the budget does not allow all together, before any of them is charged.

    What is left now may be taken by others before it is charged.
    """
    ids = [_release_id(made, _digest(account, made, part), None) for made in plans]
    guarantees = [account.promised(made.each, part.assumed) for made in plans]
    account.ledger.require_left(zip(repeat(account.subject), ids, guarantees))


def slate_of(released: Popularity | Similarity, made: Plan, part: Likes, seed: str | None) -> Slate:
    """The greedy slate; or, with a ``seed``, one that is drawn, the same for the same release and seed.

    Numpy's generator protects nobody, and need not: what it draws from is released already.
    """
    coins = None
    if seed is not None:
        number = int.from_bytes(sha256(seed.encode()).digest())
        coins = RngCoins(np.random.default_rng(number))
    if isinstance(released, Similarity):
        chosen = from_kernel(released.kernel(), made.k, coins=coins)
    elif coins is None:
        chosen = from_counts(released.counts(), part.features, made.k)
    else:
        chosen = _drawn(released.counts(), part, made.k, coins)
    items = tuple(released.items[place] for place in chosen.tolist())
    return Slate(items, made.route.value, released.guarantee)


def seed_of(account: SlateAccount, made: Plan, part: Likes, request_id: str | None) -> str | None:
    """What the slate of this id is drawn from, besides the release."""
    return None if request_id is None else f"{_digest(account, made, part)}\n{checked_id(request_id)}"


def _drawn(counts: NDArray[np.float64], part: Likes, k: int, coins: Coins) -> Places:
    """As many items by a k-DPP as the features have directions; any others by quality alone, each e^(alpha q) (Gumbel)."""
    size = min(k, part.rank)
    chosen = from_counts(counts, part.features, size, coins=coins) if size else np.zeros(0, dtype=np.int64)
    keys = ALPHA * quality(counts) - np.log(-np.log(coins.uniforms(len(counts))))
    keys[chosen] = -np.inf
    return np.sort(np.concatenate([chosen, np.argsort(-keys, kind="stable")[: k - size]]))


def _release_id(made: Plan, digest: str, request_id: str | None) -> str:
    return f"{_kind(made)} {digest[:32] if request_id is None else checked_id(request_id)}"


def _kind(made: Plan) -> str:
    return "popularity" if made.route is Route.COUNTS else "similarity"


def _digest(account: SlateAccount, made: Plan, part: Likes) -> str:
    """Another epsilon, other items or likes are another release. Counts have no delta, and neither release has features."""
    delta = 0.0 if made.route is Route.COUNTS else made.delta
    return account.digest(_kind(made), made.epsilon, delta, made.options.likes_each, part.digest)
