"""How popular slates are, by epsilon of one slate (or of the release that serves any number of them)."""

from collections.abc import Iterator

from tacit.evaluation.curve import Better, Curve, Level, Role
from tacit.evaluation.curve_rows import count, kept, level, line
from tacit.evaluation.private_slates import names
from tacit.evaluation.private_slates.measures import POPULARITY
from tacit.evaluation.result import Result

TOLD_AT = 0.1


def curves(result: Result) -> Iterator[Curve]:
    """One for the data set. A slate at random uses nobody's data; that of the most liked items uses all likes as they are."""
    default = line(result, POPULARITY, names.TEMPERED, Role.DEFAULT)
    plain, nothing = level(result, POPULARITY, names.TOP), level(result, POPULARITY, names.UNIFORM)
    if default is None or plain is None or nothing is None:
        return
    yield Curve(
        result.system,
        result.data,
        "popularity",
        "share of the most liked items' likes",
        Better.HIGHER,
        kept(
            default,
            line(result, POPULARITY, names.LAPLACE),
            line(result, POPULARITY, names.NATURAL),
            line(result, POPULARITY, names.PUBLISHED, Role.PUBLISHED),
        ),
        Level("most liked, by true likes", plain.value, plain.stderr),
        Level("at random", nothing.value, nothing.stderr),
        told_at=TOLD_AT,
        users=count(result, "users"),
        items=count(result, "items"),
    )
