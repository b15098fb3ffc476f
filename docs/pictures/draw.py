"""Draws the pictures of the documentation anew: python -m docs.pictures.draw"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs.pictures import concepts, systems

PICTURES: dict[str, Callable[[], str]] = {
    "guarantee.svg": concepts.guarantee,
    "neighbours.svg": concepts.neighbours,
    "budget.svg": concepts.budget,
    "composition.svg": concepts.composition,
    "shuffling.svg": concepts.shuffling,
    "distance.svg": concepts.distance,
    "systems.svg": systems.systems,
    **{
        f"{row[0].lower().replace(' ', '-')}.svg": partial(systems.flow, row[0]) for row in systems.FLOWS
    },  # one for each how-to
}


def main() -> None:
    for name, drawn in PICTURES.items():
        (Path(__file__).parent / name).write_text(drawn())


if __name__ == "__main__":
    main()
