"""How well clicks can be counted: from bits that each device flips by chance, and from exact sums with noise."""

from collections.abc import Iterator

import numpy as np

from tacit.curator.clicks import ClickSum
from tacit.evaluation.part import Part
from tacit.evaluation.result import Claim, Row
from tacit.evaluation.statistics import mean
from tacit.mechanisms import RandomisedResponse
from tacit.mechanisms.noise import ReplayedNoise
from tacit.server.clicks import click_estimate

IMPRESSIONS, CLICKED = 10_000, 680  # a rate of 6.8 %
EPSILON = 1.0
MISSING = 0.1  # of the bits
ERROR, SD = "error, in clicks", "sd, in clicks"


def run(replicates: int, *, seed: int = 0) -> Part:
    rows = tuple(_rows(replicates, seed))
    found = {(row.method, row.metric): row for row in rows}
    local, central = found["local, one bit each", f"{SD}, exact"], found["central, noisy sum", f"{SD}, exact"]
    wrong = found["local, impressions in place of bits received", ERROR]
    claims = (
        Claim(
            "tacit",
            "clicks: a noisy sum is at least 50 times as exact as randomised bits",
            local.value >= 50.0 * central.value,
            f"sd {local.value:.1f} against {central.value:.2f} clicks of {CLICKED}, epsilon {EPSILON:g}",
        ),
        Claim(
            "tacit",
            "clicks: the number of impressions may stand for that of the bits received",
            abs(wrong.value) <= 3.0 * (wrong.stderr or 0.0),
            f"with a tenth of the bits missing the count is off by {wrong.value:.0f} of {CLICKED}",
        ),
    )
    return Part(rows, claims)


def _rows(replicates: int, seed: int) -> Iterator[Row]:
    setting: dict[str, int | float | str] = {"impressions": IMPRESSIONS, "clicks": CLICKED, "click epsilon": EPSILON}
    mechanism, noise = RandomisedResponse(2, EPSILON), ReplayedNoise(seed)
    clicks = (np.arange(IMPRESSIONS) % (IMPRESSIONS // 10) < CLICKED // 10).astype(np.int64)  # alike in every tenth
    received = round((1.0 - MISSING) * IMPRESSIONS)
    right, partly, wrongly = [], [], []
    for _ in range(replicates):
        bits = mechanism.release_many(clicks, noise).value
        some = int(bits[:received].sum())
        right.append(click_estimate(IMPRESSIONS, int(bits.sum()), EPSILON).clicks - CLICKED)
        partly.append(click_estimate(received, some, EPSILON).clicks - (1.0 - MISSING) * CLICKED)
        wrongly.append(click_estimate(IMPRESSIONS, some, EPSILON).clicks - CLICKED)
    named = {
        "local, one bit each": right,
        "local, a tenth of the bits missing": partly,
        "local, impressions in place of bits received": wrongly,
    }
    for method, errors in named.items():
        yield Row.of(method, ERROR, mean(np.array(errors)), **setting)
        yield Row(method, setting, SD, float(np.std(errors, ddof=1)), n=replicates)
    yield Row("local, one bit each", setting, f"{SD}, exact", click_estimate(IMPRESSIONS, 0, EPSILON).sd)
    central = ClickSum(["item"], EPSILON)
    reports = [(str(user), "item", int(bit)) for user, bit in enumerate(clicks)]
    apart = np.array([central.release(reports, noise).value.of("item") - CLICKED for _ in range(replicates)])
    yield Row.of("central, noisy sum", ERROR, mean(apart), **setting)
    yield Row("central, noisy sum", setting, SD, float(apart.std(ddof=1)), n=replicates)
    yield Row("central, noisy sum", setting, f"{SD}, exact", central.sd)
