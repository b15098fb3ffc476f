"""The five systems: who holds raw data, what crosses the boundary, what stays."""

from docs.pictures.drawing import arrow, box, line, lines, picture, words

FLOWS = (
    (
        "Multi-selection",
        "device",
        "the pick stays here",
        "features with noise,\nonce a month",
        "k items, a local model",
        "server",
        "",
    ),
    (
        "Private selection",
        "device",
        "its scores stay here",
        "the one item shown,\nchosen privately",
        "candidates, a policy",
        "server",
        "bills it exactly",
    ),
    (
        "Federated prototypes",
        "entities",
        "fit their users here",
        "masked shares of\nnoisy sums, once",
        "a model",
        "coordinator",
        "sees the sums alone",
    ),
    (
        "Cross-domain",
        "curator of\ntwo domains",
        "",
        "noisy moments\nof ratings, once",
        "",
        "anybody",
        "predicts for herself",
    ),
    (
        "Private slates",
        "curator",
        "",
        "a slate drawn privately,\nor noisy counts, once",
        "",
        "anybody",
        "any number of slates",
    ),
)
ROW = 98


def systems() -> str:
    """One row for each system; the dashed line is the boundary."""
    height = ROW * len(FLOWS) + 40
    parts = [*_heads(), line(472, 30, 472, height - 8, "wall")]
    for place, row in enumerate(FLOWS):
        parts += [words(14, 46 + ROW * place, row[0], "bold"), *_flow(80 + ROW * place, row)]
    return picture(680, height, "The five systems: what leaves whoever holds raw data, and to whom.", parts)


def flow(name: str) -> str:
    """One system by itself."""
    row = next(row for row in FLOWS if row[0] == name)
    title = f"{name}: what leaves whoever holds raw data, and to whom."
    return picture(680, 120, title, [*_heads(), line(472, 30, 472, 114, "wall"), *_flow(66, row)])


def _heads() -> list[str]:
    heads = ((150, "holds raw data, and the ledger"), (342, "what crosses"), (590, "is trusted with nothing"))
    return [words(x, 20, head, "soft small", "middle") for x, head in heads]


def _flow(y: float, row: tuple[str, ...]) -> list[str]:
    _, holder, here, crosses, answer, receiver, there = row
    parts = [box(84, y - 24, 132, 50, "home"), *lines(150, y + 1, holder)]
    parts += [box(520, y - 24, 140, 50, "away"), *lines(590, y + 1, receiver)]
    up = -9 if answer else 0
    parts += [*arrow(216, y + up, 520), *_label(342, y + up - 18, crosses)]
    if answer:
        parts += [*arrow(520, y + 12, 216), *_label(342, y + 25, answer)]
    notes = ((150, here), (590, there))
    return [*parts, *(words(x, y + 42, note, "soft small", "middle") for x, note in notes if note)]


def _label(x: float, y: float, text: str) -> list[str]:
    return lines(x, y, text, "small", apart=14)
