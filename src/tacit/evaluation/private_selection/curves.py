"""What private scores are worth where a server chooses the candidates: over the public choice, by epsilon of an impression."""

from collections.abc import Iterator

from tacit.evaluation.curve import NATS_EACH, Better, Curve, Level, Role
from tacit.evaluation.curve_rows import count, kept, level, line
from tacit.evaluation.private_selection.automatic import AUTO
from tacit.evaluation.private_selection.movielens import MODELS, RATING
from tacit.evaluation.private_selection.rules import RR
from tacit.evaluation.result import Result

LIFT, SCORE = "CTR lift", "click"
TOLD_AT = 3.0


def curves(result: Result) -> Iterator[Curve]:
    """One for the films, and one for each simulated world. The public choice asks nobody anything."""
    yield from _films(result)
    for world in dict.fromkeys(str(row.setting["world"]) for row in result.select(LIFT, AUTO, score=SCORE)):
        default = line(result, LIFT, AUTO, Role.DEFAULT, world=world, score=SCORE)
        rows = result.select(LIFT, RR, world=world, score=SCORE, epsilon="inf")
        if default is None or not rows:
            continue
        yield Curve(
            result.system,
            f"{world}, simulated auctions",
            "click rate",
            "lift over the public choice",
            Better.HIGHER,
            kept(default, line(result, LIFT, RR, Role.PUBLISHED, world=world, score=SCORE)),
            plain=Level("private scores told", rows[0].value, rows[0].stderr),
            nothing=Level("public choice", 0.0),
            told_at=TOLD_AT,
            measured_in=NATS_EACH,
        )


def _films(result: Result) -> Iterator[Curve]:
    for data in dict.fromkeys(str(row.setting["data"]) for row in result.select(RATING, AUTO)):
        at = {"data": data, "model": next(iter(MODELS))}
        default = line(result, RATING, AUTO, Role.DEFAULT, **at)
        plain, nothing = level(result, RATING, "greedy", **at), level(result, RATING, "public", **at)
        if default is None or plain is None or nothing is None:
            continue
        yield Curve(
            result.system,
            data,
            "expected rating",
            "stars, by the private model",
            Better.HIGHER,
            kept(default, line(result, RATING, RR, Role.PUBLISHED, **at)),
            Level("private scores told", plain.value, plain.stderr),
            Level("public choice", nothing.value, nothing.stderr),
            told_at=TOLD_AT,
            measured_in=NATS_EACH,
            users=count(result, "users", data=data),
            items=count(result, "items", data=data),
        )
