"""The worst users and kernels, searched for: how much a slate can lose, against what the theorems say.

The search climbs over kernels and over the users added and removed, signed, by the signs of exact gradients with steps that grow
(so that kernels may run away, where the worst case lies). It is given no hint of where that is. What it finds is judged in
fractions, by `tacit.audit.slate_pairs`.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tacit.audit.minors import Floats, log_minors, pulled_back, sizes
from tacit.audit.slate_pairs import Pair, Setting
from tacit.guarantees import Relation

_FARTHEST = 9.0  # rows of A up to e^9 roots of sigma: beyond it floats lose the digits that the search needs


def climb(
    settings: Sequence[Setting],
    *,
    rng: np.random.Generator,
    restarts: int = 8,
    rounds: int = 80,
    allowed: NDArray[np.bool_] | None = None,
) -> list[Pair]:
    """For every setting (all of one number of items) the worst pair that was found.

    ``allowed`` limits the slates further: a public rule under which slates are drawn again until they fit.
    """
    items, many = settings[0].items, np.repeat(np.arange(len(settings)), restarts)
    sized = np.array([[one.k is None or one.k == size for size in sizes(items).tolist()] for one in settings])
    open_to = (sized if allowed is None else sized & allowed)[many]
    sigma, bound = (np.array([getattr(one, name) for one in settings])[many] for name in ("sigma", "bound"))
    replaced = np.array([one.relation is Relation.REPLACE for one in settings])[many]
    reach = np.sqrt(bound)[:, None, None]
    way = np.where(np.arange(len(many)) % 2 == 0, 1.0, -1.0)  # half of them make a slate likelier, half of them rarer

    # the columns of one block: A, the logarithms by which its rows are scaled, the user removed, the user added
    wide = np.ones((len(many), items, 1))
    scale = np.concatenate([np.repeat(wide, items + 1, axis=2), reach * wide, reach * wide], axis=2)
    here = _admitted(scale * rng.normal(size=scale.shape), bound, replaced)
    step, sign = 0.3 * scale, np.zeros(scale.shape)
    best, found = np.full(len(many), -np.inf), here.copy()
    for _ in range(rounds):
        loss, gradient = _slope(here, sigma, bound, way, open_to)
        better = loss > best
        best, found = np.where(better, loss, best), np.where(better[:, None, None], here, found)
        turned = sign * np.sign(gradient)
        step = np.minimum(step * np.where(turned > 0.0, 1.3, np.where(turned < 0.0, 0.5, 1.0)), scale)
        sign = np.where(turned < 0.0, 0.0, np.sign(gradient))
        here = _admitted(here + sign * step, bound, replaced)
    top = [int(np.argmax(np.where(many == place, best, -np.inf))) for place in range(len(settings))]
    return [
        Pair(setting, _rows(found, sigma)[place], found[place, :, -2], found[place, :, -1])
        for setting, place in zip(settings, top, strict=True)
    ]


def every_size(largest: int, bounds: Sequence[float], relations: Sequence[Relation]) -> Iterator[list[Setting]]:
    """All k < n <= ``largest``, for every bound and relation; one list for each n, as `climb` takes them."""
    for items in range(2, largest + 1):
        yield [Setting(items, k, bound, relation) for k, bound, relation in product(range(1, items), bounds, relations)]


def _slope(
    here: Floats, sigma: Floats, bound: Floats, way: Floats, open_to: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """The largest log ratio of each pair in its ``way``, and the direction in which it grows."""
    items = here.shape[1]
    others, users = _rows(here, sigma), (here[:, :, -2], here[:, :, -1])
    base = others @ others.transpose(0, 2, 1) + sigma[:, None, None] * np.eye(items)
    kernels = np.stack([base + user[:, :, None] * user[:, None, :] for user in users])
    logs = np.where(open_to, log_minors(kernels), -np.inf)
    top = logs.max(axis=-1, keepdims=True)
    weight = np.exp(logs - top)
    laws = weight / weight.sum(axis=-1, keepdims=True)
    log_laws = logs - top - np.log(weight.sum(axis=-1, keepdims=True))
    gap = np.subtract(log_laws[1], log_laws[0], out=np.zeros(open_to.shape), where=open_to)
    worst = np.argmax(way[:, None] * gap, axis=1)
    rows = np.arange(len(here))
    chosen = np.zeros(open_to.shape)
    chosen[rows, worst] = 1.0
    turn = np.stack([-way, way])[:, :, None] * (chosen - laws)
    first, second = pulled_back(kernels, turn)
    by_row = (first + second) @ others
    gradient = np.concatenate(
        [
            by_row,  # of A up to a positive factor: only signs are used
            (by_row * others).sum(axis=2, keepdims=True),
            _along_the_ball(first, users[0], bound),
            _along_the_ball(second, users[1], bound),
        ],
        axis=2,
    )
    return way * gap[rows, worst], gradient


def _along_the_ball(kernel: Floats, user: Floats, bound: Floats) -> Floats:
    """A user's gradient; at her bound without the part that only lengthens her, for she would be cut back to it."""
    slope, square = np.einsum("pij,pj->pi", kernel, user), (user * user).sum(axis=1)
    longer = np.where(square > 0.999 * bound, np.maximum((slope * user).sum(axis=1), 0.0) / bound, 0.0)
    return np.asarray(slope - longer[:, None] * user)[:, :, None]


def _rows(here: Floats, sigma: Floats) -> Floats:
    items = here.shape[1]
    return np.asarray(np.sqrt(sigma)[:, None, None] * np.exp(here[:, :, items, None]) * here[:, :, :items])


def _admitted(here: Floats, bound: Floats, replaced: NDArray[np.bool_]) -> Floats:
    """Users cut to their bound; nobody is removed where one is added; A not beyond where floats can follow."""
    items = here.shape[1]
    users = here[:, :, items + 1 :]
    norm = np.sqrt((users * users).sum(axis=1))
    cut = users * np.minimum(1.0, np.sqrt(bound)[:, None] / np.maximum(norm, 1e-300))[:, None, :]
    cut[:, :, 0] = np.where(replaced[:, None], cut[:, :, 0], 0.0)
    directions, scales = here[:, :, :items], here[:, :, items, None]
    return np.concatenate([np.clip(directions, -3.0, 3.0), np.clip(scales, -_FARTHEST, _FARTHEST), cut], axis=2)
