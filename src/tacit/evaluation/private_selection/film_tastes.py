"""How many films `auto` offers if its prior is people: what a private model expects 100 other users to give each film.

Independent draws of one spread promise the same gain from any two films; people show which films their tastes tell apart.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.private_selection.films import Films
from tacit.models.private_selection import DRAWS, Tastes, choose

if TYPE_CHECKING:
    from tacit.evaluation.private_selection.movielens import Decisions

PEOPLE = "auto, people"
Whole = NDArray[np.int64]


def panels(users: int, rng: np.random.Generator) -> Whole | None:
    """Two panels without a user in common, so that everybody has one that she is not in; None if users are too few."""
    return None if users < 2 * DRAWS else rng.permutation(users)[: 2 * DRAWS].reshape(2, DRAWS)


def offered(films: Films, found: "Decisions", people: Whole, epsilons: tuple[float, ...]) -> dict[float, Whole]:
    """For each epsilon the m of every decision, from public scores and a panel without the decision's own user."""
    sizes = {epsilon: np.empty(len(found.users), dtype=np.int64) for epsilon in epsilons}
    other = np.isin(found.users, people[0]).astype(np.int64)
    by_film = [np.ascontiguousarray(films.private[panel].T) for panel in people]
    for place, (items, public) in enumerate(zip(found.items, found.public, strict=True)):
        tastes = Tastes(by_film[other[place]][items])
        for epsilon, m in sizes.items():
            m[place] = choose(public, tastes, epsilon).m
    return sizes
