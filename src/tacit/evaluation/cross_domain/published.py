"""X-Map as published, and its replacements over a list that no record decides: how far each step costs, and what it buys.

Nothing here but `PrivateReplacement` promises anything, and that covers the mapping alone: predictions from it use target ratings
as they are. "epsilon a draw" is spent on one source item; one user's ratings move the draws of all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.known import Known
from tacit.evaluation.cross_domain.plain import ALPHA, K, item_based_of, user_based_of
from tacit.evaluation.cross_domain.splits import Floats
from tacit.guarantees import Guarantee
from tacit.mechanisms import Noise
from tacit.mechanisms.x_map import (
    PrivateReplacement,
    PublishedReplacement,
    PublishedSimilarItems,
    published_similar_items,
)
from tacit.models.cross_domain.alter_egos import AlterEgos, ItemBased, SimilarItems

EACH, FURTHER = 0.3, 0.8  # the paper's epsilon of one replacement, and of similar items
A_DRAW, OF_ITEMS = "epsilon a draw", "epsilon of PNSA + PNCF"
NoiseOf = Callable[[str], Noise]
Setting = dict[str, int | float | str]


class Drawn(NamedTuple):
    method: str
    setting: Setting  # beside the world
    scores: Floats
    guarantee: Guarantee


@dataclass(frozen=True, eq=False, repr=False)
class NoisyItems(ItemBased):
    """Similar items that were drawn, with noisy similarities; the rest as in `ItemBased`."""

    table: Any = None  # csr, items x items

    def cosines(self, items: NDArray[Any]) -> Floats:
        rows: Floats = self.table[items].toarray()
        return rows


def top(known: Known, epsilon: float, noise: Noise) -> tuple[NDArray[np.int64], Guarantee]:
    """Among the ten target items of largest |X-SIM|, as the authors' program draws."""
    found = PublishedReplacement(epsilon).release(known.x.values, noise)
    return found.value, PublishedReplacement(epsilon).guarantee


def signed(known: Known, epsilon: float, noise: Noise) -> tuple[NDArray[np.int64], Guarantee]:
    """Among all target items, X-SIM with its sign and the published sensitivity 2; undefined counts as 0."""
    table = known.x.values
    cells = np.arange(table.shape[1], dtype=np.int32)
    filled = sparse.csr_array(
        (table.toarray().ravel(), np.tile(cells, table.shape[0]), np.arange(table.shape[0] + 1) * table.shape[1]),
        shape=table.shape,
    )
    mechanism = PublishedReplacement(epsilon, kept=None)
    return mechanism.release(filled, noise).value, mechanism.guarantee


def positive(known: Known, epsilon: float, noise: Noise) -> tuple[NDArray[np.int64], Guarantee]:
    """Among all target items, the positive part of X-SIM and sensitivity 1: a promise, of all draws together."""
    n_source, n_target = known.x.values.shape
    mechanism = PrivateReplacement(n_target, n_source, epsilon * n_source)
    return mechanism.release(known.x.values, noise).value, mechanism.guarantee


def noisy_items(known: Known, epsilon: float, noise: Noise) -> tuple[NoisyItems, Guarantee]:
    """PNSA and PNCF for every target item."""
    mechanism = PublishedSimilarItems(K, epsilon)
    n = known.held.n_target
    drawn = published_similar_items(known.target, mechanism, np.arange(n), noise)
    items, cosine = drawn.value
    there = items >= 0
    rows = np.repeat(np.arange(n), there.sum(axis=1))
    table = sparse.csr_array((cosine[there], (rows, items[there])), shape=(n, n))
    plain = known.items
    return NoisyItems(plain.means, plain.directions, plain.rated, plain.significant, table), mechanism.guarantee


def by_noisy_items(known: Known, items: NoisyItems, egos: AlterEgos, level: Floats | None = None) -> Floats:
    """The published prediction, with item means as base; or with the user's ``level``."""
    return known.table(
        lambda users, wanted: items.predict(
            egos, users, wanted, known.scale, k=K, similar=SimilarItems.STATIC, level=level, alpha=ALPHA
        )
    )


def published(known: Known, noise_of: NoiseOf, *, rated: bool = True) -> Iterator[Drawn]:
    """The paper's settings: .3 for a replacement, .8 for similar items. ``rated``: with the better prediction as well."""
    items, of_items = noisy_items(known, FURTHER, noise_of(names.NX_NOISY))
    yield from _noised((names.NX_NOISY, names.NX_NOISY_USER), {OF_ITEMS: FURTHER}, known, items, known.egos, of_items)
    for draw, plain, by_users, noised, better in (
        (top, names.PRS_TOP, names.PRS_TOP_UB, (names.PRS_TOP_NOISY, names.PRS_TOP_NOISY_USER), names.PRS_TOP_RATED),
        (
            positive,
            names.PRS_VALID,
            names.PRS_VALID_UB,
            (names.PRS_VALID_NOISY, names.PRS_VALID_NOISY_USER),
            names.POSITIVE_RATED,
        ),
    ):
        chosen, guarantee = draw(known, EACH, noise_of(plain))
        egos = known.egos_of(chosen)
        setting: Setting = {A_DRAW: EACH}
        yield Drawn(plain, setting, item_based_of(known, egos, similar=SimilarItems.STATIC), guarantee)
        yield Drawn(by_users, setting, user_based_of(known, egos), guarantee)
        yield from _noised(noised, {**setting, OF_ITEMS: FURTHER}, known, items, egos, of_items)
        if rated:
            yield Drawn(better, setting, item_based_of(known, egos, level=known.level), guarantee)


def _noised(
    methods: tuple[str, str], setting: Setting, known: Known, items: NoisyItems, egos: AlterEgos, guarantee: Guarantee
) -> Iterator[Drawn]:
    """With item means as base, as published, and with the user's level in it."""
    for method, level in zip(methods, (None, known.level), strict=True):
        yield Drawn(method, setting, by_noisy_items(known, items, egos, level), guarantee)


def by_price(known: Known, epsilons: tuple[float, ...], noise_of: NoiseOf) -> Iterator[Drawn]:
    """What one draw would have to cost for the mapping to be of use, with the better prediction."""
    methods = ((names.PRS_TOP_RATED, top), (names.PRS_VALID_RATED, signed), (names.POSITIVE_RATED, positive))
    for epsilon in epsilons:
        for method, draw in methods:
            chosen, guarantee = draw(known, epsilon, noise_of(f"{method} {epsilon}"))
            scores = item_based_of(known, known.egos_of(chosen), level=known.level)
            yield Drawn(method, {A_DRAW: epsilon}, scores, guarantee)


def by_price_of_items(known: Known, epsilons: tuple[float, ...], noise_of: NoiseOf) -> Iterator[Drawn]:
    for epsilon in epsilons:
        items, guarantee = noisy_items(known, epsilon, noise_of(f"{names.NX_NOISY} {epsilon}"))
        yield from _noised(
            (names.NX_NOISY, names.NX_NOISY_USER), {OF_ITEMS: epsilon}, known, items, known.egos, guarantee
        )


def whole_table(known: Known, epsilon: float, noise: Noise) -> Drawn:
    """All replacements in one budget; the prediction as in NX-Map, from target ratings that nothing protects."""
    n_source, n_target = known.x.values.shape
    mechanism = PrivateReplacement(n_target, n_source, epsilon, names.DELTA)
    chosen = mechanism.release(known.x.values, noise).value
    scores = item_based_of(known, known.egos_of(chosen), level=known.level)
    return Drawn(names.TABLE, {"epsilon": epsilon}, scores, mechanism.guarantee)
