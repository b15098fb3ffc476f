"""Pictures of what a guarantee is. Every number in them is worked out by tacit when they are drawn."""

import math
import tempfile
from pathlib import Path

from docs.pictures.drawing import bar, box, circle, curve, line, lines, picture, words
from tacit.errors import BudgetExhausted
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, anywhere, metric, pure, shuffle, tight, within
from tacit.ledger import Budget, PrivacyLedger
from tacit.mechanisms import PermuteAndFlip, ProfileScores


def guarantee() -> str:
    """How likely each of four films is for two people who have nothing in common, at epsilon 1."""
    mechanism = PermuteAndFlip(ProfileScores(1.0, 5.0), epsilon=1.0)
    hers, his = mechanism.pmf([5.0, 3.0, 1.0, 4.0]), mechanism.pmf([1.0, 4.0, 5.0, 2.0])
    parts = [words(40, 26, "chance to be shown", "soft small"), line(40, 210, 560, 210, "axis")]
    for place, (one, other) in enumerate(zip(hers, his, strict=True)):
        x = 60 + 128 * place
        for offset, share, look in ((0, one, "cool"), (44, other, "warm")):
            parts += [bar(x + offset, 210 - 440 * share, 38, 440 * share, look)]
            parts += [words(x + offset + 19, 204 - 440 * share, f"{share:.2f}", "small", "middle")]
        ratio = max(one, other) / min(one, other)
        parts += [words(x + 41, 230, f"film {place + 1}", "", "middle")]
        parts += [words(x + 41, 248, f"ratio {ratio:.2f}", "soft small", "middle")]
    parts += [bar(40, 268, 12, 12, "cool"), words(58, 278, "if the profile is hers"), bar(210, 268, 12, 12, "warm")]
    parts += [
        words(228, 278, "if it is somebody else's"),
        words(40, 300, f"At epsilon 1 no ratio is above e¹ = {math.e:.2f}, whoever the two are.", "bold"),
    ]
    return picture(
        600, 312, "Two people's chances of four films differ by a factor of at most e to the epsilon.", parts
    )


def budget() -> str:
    """A real ledger with a budget of 2: three charges fit, a fourth is refused, a smaller one fits."""
    asked = (0.5, 0.7, 0.6, 0.5, 0.2)
    parts = [
        words(40, 16, "left of a budget of epsilon 2, and what a release asks for (orange)", "soft small"),
        line(40, 200, 580, 200, "axis"),
    ]
    left = 2.0
    with tempfile.TemporaryDirectory() as folder, PrivacyLedger.create(Path(folder) / "ledger.db") as ledger:
        ledger.enrol("users", Budget(epsilon=2), protects=ONE_USER)
        for place, epsilon in enumerate(asked):
            x = 56 + 106 * place
            parts += [bar(x, 200 - 76 * left, 62, 76 * left, "cool")]
            parts += [words(x + 31, 194 - 76 * left, f"{left:.1f}", "small", "middle")]
            try:
                ledger.charge("users", f"release {place}", pure(epsilon, ONE_USER))
            except BudgetExhausted as refusal:
                parts += [box(x, 200 - 76 * epsilon, 62, 76 * epsilon, "refused")]
                parts += [words(x + 31, 238, "refused", "warm-text bold", "middle")]
                parts += [words(x + 31, 254, f"{refusal.left} is left", "soft small", "middle")]
            else:
                parts += [bar(x, 200 - 76 * left, 62, 76 * epsilon, "warm")]
                parts += [words(x + 31, 238, "charged", "soft", "middle")]
                left = ledger.statement("users").windows[0].left.amount / 10**9  # whole nano-epsilon
            parts += [words(x + 31, 220, f"asks {epsilon}", "", "middle")]
    return picture(
        600, 266, "A budget of 2 pays for releases of 0.5, 0.7 and 0.6, refuses 0.5, and pays for 0.2.", parts
    )


def composition() -> str:
    """What n slates of 0.1 cost together: added up, and by zCDP at delta = 1e-6."""
    each = Guarantee(0.1, ONE_USER, loss=Loss(LossKind.BOUNDED_RANGE, 0.1))
    counts = [1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    together = {count: tight([each] * count, delta=1e-6).epsilon for count in counts}

    def place(count: float, epsilon: float) -> tuple[float, float]:
        return 60 + 4.2 * count, 210 - 18 * epsilon

    parts = [
        line(60, 210, 490, 210, "axis"),
        line(60, 210, 60, 20, "axis"),
        words(66, 28, "epsilon in all", "soft small"),
    ]
    parts += [words(60 + 4.2 * count, 228, str(count), "soft small", "middle") for count in (0, 25, 50, 75, 100)]
    parts += [words(52, 214 - 18 * epsilon, str(epsilon), "soft small", "end") for epsilon in (0, 5, 10)]
    parts += [curve([place(0, 0), place(100, 10)], "warm-line"), words(492, 34, "added up: 10", "bold")]
    parts += [curve([place(count, together[count]) for count in counts], "cool-line")]
    parts += [words(492, 214 - 18 * together[100], f"zCDP: {together[100]:.2f}", "bold")]
    parts += [words(275, 246, "slates of epsilon 0.1 each, at delta = 10⁻⁶", "soft small", "middle")]
    return picture(610, 256, "A hundred slates of epsilon 0.1 cost 10 added up, and about 2.4 by zCDP.", parts)


def shuffling() -> str:
    """Reports are mixed; what one of them tells falls with how many others there are."""
    parts = [*_mixed(), line(300, 222, 596, 222, "axis"), line(300, 222, 300, 28, "axis")]
    parts += [words(308, 20, "epsilon after shuffling, delta = 10⁻⁶", "soft small")]

    def place(reports: float, epsilon: float) -> tuple[float, float]:
        return 300 + 72 * (math.log10(reports) - 2), 118 - 56 * math.log10(epsilon * 10)

    for power, name in ((2, "100"), (3, "1,000"), (4, "10,000"), (5, "100,000"), (6, "a million")):
        parts += [words(300 + 72 * (power - 2), 238, name, "soft small", "middle")]
    parts += [words(294, place(100, epsilon)[1] + 4, f"{epsilon:g}", "soft small", "end") for epsilon in (0.01, 0.1, 1)]
    for local, look in ((2.0, "warm-line"), (1.0, "cool-line"), (0.5, "third-line")):
        reports = [10 ** (2 + step / 4) for step in range(17)]
        points = [place(count, shuffle(local, round(count), 1e-6)) for count in reports]
        parts += [curve(points, look), words(points[-1][0] + 6, points[-1][1] + 4, f"local {local:g}", "small")]
    parts += [words(445, 256, "honest reports in the batch", "soft small", "middle")]
    return picture(
        660, 266, "Reports of many devices are mixed; the epsilon of each falls as their number grows.", parts
    )


def _mixed() -> list[str]:
    parts: list[str] = []
    order = (3, 0, 4, 1, 2)
    for place in range(5):
        y = 50 + 36 * place
        parts += [circle(34, y, 11, "home"), box(62, y - 9, 26, 18, "box"), box(196, y - 9, 26, 18, "box")]
        parts += [line(90, y, 194, 50 + 36 * order[place], "line")]
    return [
        *parts,
        *lines(34, 236, "devices", "soft small"),
        *lines(142, 236, "shuffler", "soft small"),
        *lines(222, 236, "server", "soft small"),
    ]


def distance() -> str:
    """Balls around one person's features: how far epsilon reaches at eta = 0.1."""
    signal = metric(10.0)
    parts = []
    for radius, size in ((1.0, 128), (0.5, 88), (0.2, 52), (0.1, 28)):
        parts += [circle(170, 146, size, "ball")]
        epsilon = within(signal, radius).epsilon
        parts += [line(170, 146 - size, 330, 146 - size, "axis")]
        parts += [
            words(338, 150 - size, f"distance {radius:g}: epsilon {epsilon:.0f}, a factor of {math.exp(epsilon):,.1f}")
        ]
    parts += [circle(170, 146, 5, "cool"), *lines(170, 166, "her features", "small")]
    parts += lines(338, 168, "People nearby are hidden among each other;\nwhoever is far away is not.", "soft", "start")
    parts += lines(
        338,
        222,
        f"Anybody at all (distance 4): epsilon {anywhere(signal, 4.0).epsilon:.0f}.\nNever quote an epsilon without its distance.",
        "soft",
        "start",
    )
    return picture(660, 292, "Around one person's features, epsilon grows with the distance to others.", parts)


def neighbours() -> str:
    """The three pairs of inputs between which guarantees hide the difference."""
    parts: list[str] = []
    heads = (
        "one user's rows,\nadded or removed",
        "one profile,\nreplaced by any other",
        "features,\nby their distance",
    )
    for place, head in enumerate(heads):
        parts += [box(10 + 215 * place, 10, 200, 216, "box"), *lines(110 + 215 * place, 36, head, "bold")]
    for side, rows in ((0, 4), (1, 3)):
        for row in range(rows):
            lost = side == 0 and row == 2
            y = 76 + 22 * (row if side == 0 or row < 2 else row + 1)
            parts += [bar(28 + 92 * side, y, 72, 15, "warm" if lost else "cool")]
    parts += lines(110, 190, "a curator's ratings with\nher and without her", "soft small")
    parts += [box(247, 80, 58, 74, "home"), box(345, 80, 58, 74, "away")]
    parts += [*lines(276, 117, "her\nprofile"), *lines(374, 117, "any\nother"), *lines(325, 117, "or", "soft")]
    parts += lines(325, 190, "everything on one device,\nwhoever it belongs to", "soft small")
    parts += [circle(490, 132, 6, "cool"), circle(585, 96, 6, "warm"), line(490, 132, 585, 96, "line")]
    parts += [
        words(530, 102, "0.2", "small", "end"),
        *lines(540, 190, "numbers made from a profile;\nthe nearer, the better hidden", "soft small"),
    ]
    return picture(
        660, 236, "Neighbours: one user's rows more or less, one profile or any other, features at a distance.", parts
    )
