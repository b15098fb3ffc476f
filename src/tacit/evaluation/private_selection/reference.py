"""Reference figures: an independent computation in closed form, on worlds of the same description. Lifts over `public`, in shares.

Its worlds have parameters of their own, fitted to the same facts, and one seed: agreement within 1.5 points is what can be asked.
"""

from collections.abc import Iterator, Mapping

from tacit.evaluation.result import REFERENCE, Row

NAME = "reference figures"
PREFIX = REFERENCE
TOLERANCE = 0.015

_RULES = ("rr", "pf scaled", "pf clipped 0.5", "pf clipped 2")
_CTR: Mapping[str, Mapping[float, tuple[float, float, float, float]]] = {
    "display": {
        0.5: (-7.5, -8.7, -2.0, -6.9), 1.0: (-1.6, -4.8, 1.8, -2.0), 2.0: (9.9, 2.6, 4.1, 4.6), 3.0: (18.6, 8.8, 4.8, 8.4),
        5.0: (25.9, 17.7, 5.3, 12.2), 10.0: (27.4, 25.7, 5.5, 14.9),
    },
    "search": {
        0.5: (-40.0, -41.0, -9.7, -31.0), 1.0: (-37.0, -39.0, -1.8, -20.0), 2.0: (-26.0, -34.0, 1.0, -7.2),
        3.0: (-13.0, -28.0, 1.4, -1.3), 5.0: (4.1, -15.0, 1.6, 2.9), 10.0: (8.5, 3.6, 1.6, 4.9),
    },
}  # fmt: skip
_PLATEAUS = {"display": (27.4, 27.4, 5.6, 16.3), "search": (8.5, 8.5, 1.7, 5.2)}
# Click scores, 2500 auctions: rr and auto, then the full lift.
_CLICKS: Mapping[str, Mapping[float, tuple[float, float]]] = {
    "display": {0.5: (-20.6, 0.3), 1.0: (-13.0, 2.6), 2.0: (2.4, 10.6), 3.0: (14.3, 17.5), 5.0: (24.4, 24.6)},
    "search": {0.5: (-56.8, 0.5), 1.0: (-52.4, 1.1), 2.0: (-38.6, 3.1), 3.0: (-21.0, 4.7), 5.0: (1.5, 6.5)},
    "trained": {0.5: (-18.3, 1.4), 1.0: (-10.7, 4.2), 2.0: (4.5, 12.1), 3.0: (16.1, 18.8), 5.0: (26.0, 26.1)},
}
_TUNED = {
    "display": {1.0: 1.7, 2.0: 9.2, 3.0: 17.1, 5.0: 24.6},
    "search": {1.0: -1.6, 2.0: 2.2, 3.0: 4.5, 5.0: 6.4},
    "trained": {1.0: 3.6, 2.0: 11.0, 3.0: 18.1, 5.0: 26.1},
}
# Greedy on private scores; against prices from private scores: revenue and surplus per impression, then per click.
PRICING: Mapping[tuple[str, str], tuple[float, float, float, float]] = {
    ("display", "server"): (-0.16, 0.08, 0.17, -0.09),
    ("display", "global mean"): (-0.17, 0.09, 0.27, -0.14),
    ("search", "server"): (-0.08, 0.09, 0.01, -0.01),
    ("search", "global mean"): (-0.28, 0.29, 0.25, -0.27),
    ("trained", "server"): (-0.17, 0.10, 0.19, -0.12),
}
RECOVERED = {"display": 0.94, "trained": 0.95, "search": 0.48}  # of the gain, by rr at epsilon 5
CROSSING = {
    "display": (1.0, 2.0),
    "search": (4.0, 5.0),
}  # clipped is ahead of rr up to the first, behind from the second
BEST_GAMMA = {
    ("display", 5.0): {"CTR": 0.9, "value": 0.8},
    ("search", 5.0): {"CTR": 0.6, "value": 0.5},
    ("display", 2.0): {"CTR": 0.7},
    ("search", 2.0): {"CTR": 0.4},
}
AHEAD_UP_TO = {1.0: (0.5, 1.0, 2.0), 0.25: (2.0, 3.0, 5.0)}  # alpha: by k <= 3, 4 to 9, at least 10
SPENDS_NOTHING = {"display": 0.47, "search": 0.65}  # share of offers with m = 1 at epsilon 1
BIAS = {0.002: 0.003, 0.005: 0.022, 0.01: 0.175}  # of a ratio of noised probabilities, by Laplace scale
FALL = (0.01, 0.10)  # by how much revenue falls when noise on click probabilities also sets the ranks, at those scales
SYNTHETIC = {
    ("rr", "uniform", 15, 1.0): 0.545, ("pf scaled", "uniform", 15, 1.0): 0.546, ("rr", "uniform", 15, 3.0): 0.746,
    ("pf scaled", "uniform", 15, 3.0): 0.635, ("rr", "Bernoulli(0.9)", 100, 3.0): 0.915,
    ("pf scaled", "Bernoulli(0.9)", 100, 3.0): 0.976,
}  # fmt: skip


def ctr(world: str, rule: str, epsilon: float | str) -> float | None:
    """The lift of the main table, if it has one; epsilon "inf" is the plateau."""
    cells = _PLATEAUS.get(world) if epsilon == "inf" else _CTR.get(world, {}).get(float(epsilon))
    return None if cells is None or rule not in _RULES else cells[_RULES.index(rule)] / 100.0


def click_lift(world: str, rule: str, epsilon: float) -> float | None:
    """The lift with click scores of rr, auto, or rr with a tuned gamma."""
    if rule == "rr, tuned gamma":
        found = _TUNED.get(world, {}).get(epsilon)
    else:
        cells = _CLICKS.get(world, {}).get(epsilon)
        found = None if cells is None or rule not in ("rr", "auto") else cells[("rr", "auto").index(rule)]
    return None if found is None else found / 100.0


def rows(world: str) -> Iterator[Row]:
    for epsilon in (*_CTR.get(world, ()), "inf"):
        for rule in _RULES:
            value = ctr(world, rule, epsilon)
            if value is not None:
                yield Row(PREFIX + rule, {"world": world, "epsilon": epsilon}, "CTR lift", value)
    for epsilon in _CLICKS.get(world, ()):
        for rule in ("rr", "auto", "rr, tuned gamma"):
            value = click_lift(world, rule, epsilon)
            if value is not None:
                yield Row(PREFIX + rule, {"world": world, "epsilon": epsilon, "score": "click"}, "CTR lift", value)
    for (where, prices), cells in PRICING.items():
        if where == world:
            for place, value in enumerate(cells):
                pay, metric = ("impression", "click")[place // 2], ("revenue", "surplus")[place % 2]
                yield Row(
                    PREFIX + "greedy", {"world": world, "prices": prices, "pay per": pay}, f"{metric} lift", value
                )
