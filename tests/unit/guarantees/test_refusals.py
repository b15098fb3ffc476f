"""What no guarantee and no neighbours can say."""

import math
from typing import Any

import pytest

from tacit.errors import InvalidGuarantee
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, Neighbours
from tacit.guarantees.guarantee import Relation, Unit

ANYWHERE = Neighbours.features("L1")
GAUSSIAN = Loss(LossKind.GAUSSIAN, 0.2)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"epsilon": math.inf, "protects": ONE_USER}, "needs a reason"),
        (
            {"epsilon": math.inf, "protects": ONE_USER, "assumes": frozenset({"no noise"}), "loss": GAUSSIAN},
            "cannot have a `loss`",
        ),
        ({"epsilon": 1.0, "protects": ONE_USER, "per_distance": True}, "without a radius, and delta = 0"),
        (
            {"epsilon": 1.0, "protects": ANYWHERE, "per_distance": True, "delta": 1e-6},
            "without a radius, and delta = 0",
        ),
        ({"epsilon": 1.0, "protects": ANYWHERE}, "state a radius"),
    ],
)
def test_a_guarantee_that_promises_too_much_or_contradicts_itself_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidGuarantee, match=told):
        Guarantee(**given)


@pytest.mark.parametrize("given", [(Unit.FEATURES, Relation.REPLACE, None), (ONE_USER.unit, ONE_USER.relation, "L1")])
def test_a_distance_belongs_to_features_alone(given: Any) -> None:
    with pytest.raises(InvalidGuarantee, match="features need a distance, and no other unit has one"):
        Neighbours(*given)


@pytest.mark.parametrize("value", [{}, {"unit": "everybody", "relation": "replace"}, {"unit": "user"}, None])
def test_neighbours_from_elsewhere_are_of_a_known_kind(value: Any) -> None:
    with pytest.raises(InvalidGuarantee, match="neighbours need a `unit`"):
        Neighbours.from_json(value)
