"""Mode 'prs_valid': for each of a public list of source items one target item of a public list, drawn once by the exponential
mechanism on X-SIM, and kept. All draws together cost epsilon, because whoever sees several alter egos sees all of them.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.curator.cross_domain_budget import in_units, rho_within
from tacit.curator.cross_domain_modes import SERVED, Asked, Mode
from tacit.curator.cross_domain_rows import LEAST_RATINGS
from tacit.curator.slate_account import SlateAccount
from tacit.curator.x_map_parts import Graph
from tacit.data.catalogue import Catalogue
from tacit.errors import InvalidParameter
from tacit.guarantees.rounding import down, sqrt_down
from tacit.guarantees.zcdp import UNITS, epsilon_within, rho_exactly
from tacit.ledger import Accounting
from tacit.mechanisms import Noise, PrivateReplacement
from tacit.messages.cross_domain import Replacements
from tacit.messages.cross_domain_parts import place_of

if TYPE_CHECKING:
    from tacit.curator.cross_domain import Transfers

NOT_THE_RECOMMENDER = "a recommender that is fitted to ratings of the target has a guarantee of its own"
_PLACE = 12  # bytes of a place in a list, at most, with its comma


def release(
    transfers: "Transfers",
    account: SlateAccount,
    asked: Asked,
    noise: Noise,
    *,
    sources: Sequence[Any] | None = None,
    candidates: Sequence[Any] | None = None,
    significant: int = 50,
    edges: int = 10,
    by: Literal["signed", "absolute"] = "signed",
    least: int = LEAST_RATINGS,
) -> Replacements:
    """One draw for each of ``sources`` (by default all listed source items) among ``candidates`` (all listed target items).

    Both are public lists. Few of either leave more to each draw: a best item that scores 1 is drawn with probability .58 of ten
    candidates at epsilon 10 each, of a thousand with .01.
    """
    transfers.require_rows()  # X-SIM needs the rows themselves
    listed, graph = transfers.listed, Graph(significant, edges, by, least)
    asking = _places("sources", sources, listed.source)
    offered = _places("candidates", candidates, listed.target)
    mechanism = affordable(offered.size, asking.size, asked, account.terms.accounting, pure=not account.delta)
    guarantee = account.promised(mechanism.guarantee, (*listed.assumed, SERVED, NOT_THE_RECOMMENDER))
    named = tuple(listed.source.ids[asking].tolist()), tuple(listed.target.ids[offered].tolist())
    bounds = (listed.scale.low, listed.scale.high)
    promised = len(account.packed(guarantee.to_json()))
    account.require_size(listed.id_bytes + _PLACE * asking.size + promised)
    what = account.digest(
        Mode.PRS_VALID.value, mechanism, graph, listed.digest, asking.tobytes().hex(), offered.tobytes().hex()
    )

    def draw() -> bytes:
        scores = graph.x_sim(listed.read(least), listed.n_source).values[asking][:, offered]
        drawn = account.stated(mechanism.release(scores, noise), guarantee)
        table = Replacements(*named, tuple(drawn.value.tolist()), bounds, drawn.guarantee)
        return account.packed(table.to_json())

    return Replacements.from_json(account.release(asked.release_id(Mode.PRS_VALID, what), what, guarantee, draw))


def affordable(
    candidates: int, draws: int, asked: Asked, accounting: Accounting, *, pure: bool = False
) -> PrivateReplacement:
    """Draws that together cost no more than was asked for, where charges add up in this way; ``pure`` without any delta.

    Among others that add up by zCDP the draws may be worth less than alone: a pure epsilon costs more there than it is worth at a
    delta. They then get an equal share of rho, and their plain sum is what is promised beside it.
    """
    if accounting is not Accounting.ZCDP:
        epsilon, delta = in_units(asked.epsilon, asked.delta)
        return PrivateReplacement(candidates, draws, epsilon, 0.0 if pure else delta)
    made = PrivateReplacement(candidates, draws, epsilon_within(asked.epsilon, asked.delta), asked.delta)
    allowed, rho = rho_within(asked.epsilon, asked.delta), rho_exactly(made.guarantee)
    if rho is not None and rho <= allowed + Fraction(
        1, 2 * UNITS
    ):  # both are about half a unit below what the budget holds
        return made
    each = sqrt_down(8 * allowed / draws)
    return PrivateReplacement(candidates, draws, down(draws * Fraction(each)))


def _places(name: str, items: Sequence[Any] | None, catalogue: Catalogue) -> NDArray[np.int64]:
    """Of a public part of the items, ascending; all by default. 17 and "17" are one, as in a profile."""
    if items is None:
        return np.arange(len(catalogue))
    try:
        wished = None if isinstance(items, str | bytes) else list(items)
    except TypeError:
        wished = None
    if wished is None:
        raise InvalidParameter(f"`{name}` must be a list of items.")
    known = {item: place for place, item in enumerate(catalogue.ids.tolist())}
    found = [(place_of(item, known), item) for item in wished]
    places = [catalogue.code(item) if place is None else place for place, item in found]
    if not places:
        raise InvalidParameter(f"`{name}` must name at least one item.")
    return np.unique(np.array(places, dtype=np.int64))
