"""How far predictions in the target are off, by epsilon of the whole model."""

from collections.abc import Iterator

from tacit.evaluation.cross_domain import names
from tacit.evaluation.cross_domain.measures import MAE
from tacit.evaluation.curve import Better, Curve, Level, Role
from tacit.evaluation.curve_rows import count, kept, level, line
from tacit.evaluation.result import Result

PLAIN = (names.NX_SOURCE, names.NX)  # the paper's mapping, by the levels of the source where that was tried
TOLD_AT = 2.0
MADE_UP = "synthetic"


def curves(result: Result) -> Iterator[Curve]:
    """One for each world, real ones first. A user's own mean uses nobody else's data; the paper's mapping promises nothing."""
    for world in sorted(_worlds(result), key=lambda name: name.startswith(MADE_UP)):
        default = line(result, MAE, names.B3, Role.DEFAULT, called="moments", world=world)
        nothing = level(result, MAE, names.OWN_MEAN, world=world)
        plain = [one for method in PLAIN if (one := level(result, MAE, method, world=world)) is not None]
        if default is None or nothing is None or not plain:
            continue
        best = min(plain, key=lambda one: one.value)
        yield Curve(
            result.system,
            world,
            MAE,
            "stars",
            Better.LOWER,
            kept(
                default,
                line(result, MAE, names.B3_OFFSETS, called="moments, averages only", world=world),
                line(result, MAE, names.B1_CAREFUL, called="X-Map from moments", world=world),
            ),
            Level(f"{best.method}: all ratings", best.value, best.stderr),
            Level("own mean", nothing.value, nothing.stderr),
            told_at=TOLD_AT,
            users=count(result, "users", world=world),
            items=count(result, "items", world=world),
        )


def _worlds(result: Result) -> list[str]:
    """Those with nothing but an epsilon to set."""
    rows = result.select(MAE, names.B3)
    return list(dict.fromkeys(str(row.setting["world"]) for row in rows if row.setting.keys() == {"world", "epsilon"}))
