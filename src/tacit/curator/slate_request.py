"""What a caller asks for, refused in her own terms before anything is charged. Options and requests; no rating is read here."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.curator.slate_drawing import SetUp, drawing
from tacit.curator.slate_plan import Plan
from tacit.curator.slate_routes import Route
from tacit.errors import InvalidParameter
from tacit.ledger.names import name
from tacit.models.dpp.kernels import rank_of

Floats = NDArray[np.float64]

_FIXED = {
    "items": "they are those of the catalogue: name a part of them in `among`",
    "rank": "it is that of the features",
    "accounting": "it was agreed with the budget, when the ledger first met these users",
}
_LONGEST = 100  # characters of a request_id: it is a part of a name in the ledger
_FREE = ("candidates", "likes_each", "most_likes", "route", "sampler", "threshold")


def checked_id(request_id: str) -> str:
    """An id that a ledger can keep, whatever is drawn for it."""
    return name("a request_id", request_id, _LONGEST)


def require_options(options: Mapping[str, object]) -> None:
    """Refuses options of ``tacit.curator.plan`` that a curator knows itself, and names that are none."""
    for one in options:
        if one in _FIXED:
            raise InvalidParameter(f"a curator takes no `{one}`: {_FIXED[one]}.")
        if one not in _FREE:
            raise InvalidParameter(f"there is no option {one!r}; further options are {', '.join(_FREE)}.")


def set_up_of(made: Plan, features: Floats | None, weights: Floats | None) -> SetUp:
    """``drawing``, and what it refuses of features and of a request said so that a curator's caller can do something about it."""
    if made.route is not Route.TEMPERED or features is None:
        return drawing(made, features, weights)
    if weights is not None and rank_of(features * weights[:, None]) < made.k:
        raise InvalidParameter(
            f"this request leaves too few different items for a tempered slate of {made.k}: weigh at least {made.k} items above "
            "0, of different features; or ask for fewer items, or for the route 'natural', which draws from all items."
        )
    try:
        return drawing(made, features, weights)
    except InvalidParameter as problem:
        cause = "the features are" if weights is None else "the features, weighed by this request, are"
        raise InvalidParameter(
            f"{cause} nearly dependent, and a tempered slate cannot be drawn from them: leave out features that nearly follow from "
            "others, or ask for the route 'counts', 'top-k' or 'natural'."
        ) from problem
