"""How good entities' lists are with each other's users, by epsilon of the one release."""

from collections.abc import Iterator

from tacit.evaluation.curve import Better, Curve, Level, Role
from tacit.evaluation.curve_rows import count, kept, level, line
from tacit.evaluation.federated_prototypes import names
from tacit.evaluation.federated_prototypes.measures import NDCG
from tacit.evaluation.result import Result

TOLD_AT = 1.0


def curves(result: Result) -> Iterator[Curve]:
    """One for each real world with lists. An entity by itself asks nobody; all rows in one place promise nothing."""
    for world in (names.HOSPITALS, names.ZIP2, names.ZIP1, names.REGIONS):
        default = line(result, NDCG, names.MOMENTS, Role.DEFAULT, world=world)
        plain = level(result, NDCG, names.CENTRAL, world=world)
        nothing = level(result, NDCG, names.INDIVIDUAL, world=world)
        if default is None or plain is None or nothing is None:
            continue
        yield Curve(
            result.system,
            world,
            NDCG,
            "of held-out items",
            Better.HIGHER,
            kept(default, line(result, NDCG, names.MOMENTS_APART, world=world)),
            Level("all rows in one place", plain.value, plain.stderr),
            Level("each entity by itself", nothing.value, nothing.stderr),
            told_at=TOLD_AT,
            users=count(result, "users", world=world),
            items=count(result, "items", world=world),
            entities=count(result, "entities", world=world),
        )
