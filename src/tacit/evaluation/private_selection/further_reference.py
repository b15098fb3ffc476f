"""Reference figures of films, equal items, the optimum and counterfactual estimates, each in the setting of our own figure."""

from collections.abc import Iterable, Iterator

from tacit.evaluation.private_selection import reference
from tacit.evaluation.result import Claim, Row, Setting

EPSILONS = (1.0, 3.0, 5.0)
_RATINGS = {"rr": (3.629, 4.011, 4.301), "pf scaled": (3.617, 3.757, 3.882), "auto": (4.213, 4.290, 4.346)}
_LIKED = {"rr": (0.610, 0.716, 0.775), "auto": (0.786, 0.787, 0.789)}
_MANY = {"Bernoulli(0.1)": (0.245, 0.334, 0.615), "uniform": (0.579, 0.623, 0.813)}


def films(setting: Setting, rating: str, gain: str, liked: str) -> Iterator[Row]:
    """MovieLens 100K. Which films are popular is not told, and moves all ratings alike: so the gains over public as well."""
    for method, metric, value in (
        ("public model", "test rmse", 1.036),
        ("private model", "test rmse", 0.952),
        ("public", rating, 4.194),
        ("greedy", rating, 4.378),
        ("greedy", gain, 4.378 - 4.194),
        ("uniform", rating, 3.543),
        ("uniform", gain, 3.543 - 4.194),
        ("public", liked, 0.777),
        ("greedy", liked, 0.788),
    ):
        yield Row(reference.PREFIX + method, setting, metric, value)
    gains = {method: tuple(value - 4.194 for value in values) for method, values in _RATINGS.items()}
    for metric, table in ((rating, _RATINGS), (gain, gains), (liked, _LIKED)):
        for method, values in table.items():
            for epsilon, value in zip(EPSILONS, values, strict=True):
                yield Row(reference.PREFIX + method, {**setting, "epsilon": epsilon}, metric, value)


def many_equal(metric: str) -> Iterator[Row]:
    for law, values in _MANY.items():
        for method, value in zip(("rr", "pf", "rr, best d"), values, strict=True):
            yield Row(reference.PREFIX + method, {"scores": law, "k": 100, "epsilon": 3.0}, metric, value)


def optimum(share: str, equal: str, draws: int) -> Iterator[Row]:
    for epsilon, plain, best in ((1.0, 0.84, 0.92), (3.0, 0.87, 0.93)):
        setting: Setting = {"prior": equal, "epsilon": epsilon, "draws": draws}
        yield Row(f"{reference.PREFIX}rr(m)", setting, share, plain)
        yield Row(f"{reference.PREFIX}rr(m, d)", setting, share, best)


def counterfactual(setting: Setting, outside: Setting, clicks: str, sd: str) -> Iterator[Row]:
    prefix = reference.PREFIX
    yield Row(f"{prefix}truth", setting, clicks, 0.0781, n=2041)
    yield Row(f"{prefix}propensities", setting, clicks, 0.0774, 0.0010, 200)
    yield Row(f"{prefix}propensities", setting, sd, 0.0136, n=200)
    yield Row(f"{prefix}propensities", setting, "largest weight", 59.0)
    yield Row(f"{prefix}propensities, self-normalised", setting, sd, 0.0135, n=200)
    yield Row(f"{prefix}truth", outside, clicks, 0.128)
    yield Row(f"{prefix}device terms", outside, clicks, 0.106)


def agreement(what: str, rows: Iterable[Row], metric: str, near: float) -> Claim:
    """Whether every reference figure of a metric has one of ours within ``near`` of it."""
    listed = [row for row in rows if row.metric == metric]
    ours = {_key(row.method, row.setting): row.value for row in listed}
    apart, told = [], []
    for row in listed:
        method = row.method.removeprefix(reference.PREFIX)
        if method != row.method:
            found = ours[_key(method, row.setting)]
            apart.append(abs(found - row.value))
            where = ", ".join(str(one) for name, one in row.setting.items() if name in ("scores", "epsilon"))
            told.append(f"{method} {f'({where})' if where else ''}".strip() + f" {found:.3f} for {row.value:.3f}")
    return Claim(
        reference.NAME,
        f"{what}: every figure agrees within {near:g}",
        bool(apart) and max(apart) <= near,
        "; ".join(told),
    )


def _key(method: str, setting: Setting) -> tuple[str, frozenset[tuple[str, int | float | str]]]:
    return method, frozenset(setting.items())
