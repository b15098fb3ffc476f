"""Numbers and guarantees as a reader meets them."""

import math

from tacit.evaluation.curve import NATS_EACH, NATS_PER_DISTANCE, Curve
from tacit.guarantees import Guarantee
from tacit.guarantees.arithmetic import shown_up

Value = int | float | str
PERCENT = ("share", "lift")  # units that are told in percent
WORDS: dict[str, str] = {  # by system: the short terms of its tables and claims
    "multi-selection": "d_i is what the best item of the slate lacks of the best of all, d_f what the item picked lacks: "
    "both in stars, by the true features. eta is 1/epsilon, k the size of the slate.",
    "private-selection": "rr is randomised response, pf permute-and-flip; gamma is the cutoff. auto chooses a rule from public "
    "data, public shows everybody the same item, greedy promises nothing.",
}


def figure(value: float) -> str:
    """About four digits: 0.1234, 12.34, 1,234."""
    if math.isinf(value):
        return "∞"
    if value == 0.0 or 1e-3 <= abs(value) < 10.0:
        return f"{value:.3f}"
    if abs(value) < 1e-3:
        return f"{value:.2g}"
    return f"{value:,.2f}" if abs(value) < 100.0 else f"{value:,.0f}"


def interval(value: float, stderr: float | None, unit: str = "") -> str:
    """With its standard error, where there is one."""
    if unit.startswith(PERCENT):
        digits = 2 if stderr is not None and 0.0 < stderr < 1e-3 else 1
        return f"{value:.{digits}%}" + ("" if stderr is None else f" ± {stderr:.{digits}%}")
    return figure(value) + ("" if stderr is None else f" ± {figure(stderr)}")


def setting(value: Value) -> str:
    if value == "inf" or (isinstance(value, float) and math.isinf(value)):
        return "∞"
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def promise(guarantee: Guarantee) -> str:
    """Epsilon and delta only; what is protected stands beside it."""
    if guarantee.promises_nothing:
        return "nothing is promised"
    text = f"ε = {shown_up(guarantee.epsilon, 4)}"  # never rounded down
    if guarantee.per_distance:
        text += f" per unit of {guarantee.protects.distance} distance"
    return text + (f", δ = {shown_up(guarantee.delta, 2)}" if guarantee.delta else "")


def at(curve: Curve, epsilon: float) -> str:
    unit = {NATS_PER_DISTANCE: " per unit of L1 distance", NATS_EACH: " per impression"}
    return f"ε = {epsilon:.3g}{unit.get(curve.measured_in, '')}"
