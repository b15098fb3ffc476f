"""How many may be missing, and how many may collude, in one secure sum.

Of H entities at least `fewest` stay to the end, at most `colluding` tell the server all they know. A seed is shared such that
`threshold` = `fewest` shares give it back. Refused is every plan in which a server that tells different entities different stories
could get a total with fewer than `fewest - colluding` honest entities in it: proof and attack are in docs/proofs/secure-sum.md.
"""

from dataclasses import dataclass
from itertools import pairwise

from tacit.checks import keep, whole
from tacit.errors import InvalidParameter

MOST_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class SumPlan:
    """The names of the entities, sorted; how many must stay; how many may collude with the server. Refuses what is not safe."""

    names: tuple[str, ...]
    fewest: int
    colluding: int

    def __post_init__(self) -> None:
        names = tuple(self.names)
        if not all(isinstance(name, str) and name for name in names) or any(
            first >= second for first, second in pairwise(names)
        ):
            raise InvalidParameter("the names of the entities must be texts, sorted, and each there once.")
        entities = whole("the number of entities", len(names), least=1, most=MOST_NAMES)
        colluding = whole("colluding", self.colluding, least=1)  # every entity knows its own noise and is curious
        if entities - colluding < 2:
            raise InvalidParameter(
                f"a secure sum of {entities} entities hides nothing from {colluding} of them: at least {colluding + 2} "
                "must take part, so that there is a sum of two that they do not know. Have more entities, or no secure sum."
            )
        fewest = whole("fewest", self.fewest, least=1, most=entities)
        if not safe(entities, fewest, colluding):
            least = least_fewest(entities, colluding)
            raise InvalidParameter(
                f"fewest = {fewest} of {entities} entities is not safe with {colluding} colluding: a server that names different "
                f"drop-outs to different entities could unmask too small a sum. fewest must be from {least} to {entities}."
            )
        keep(self, names=names, fewest=fewest, colluding=colluding)

    @property
    def threshold(self) -> int:
        """How many shares give a secret back."""
        return self.fewest

    def index(self, name: str) -> int:
        """Where a share of this entity lies on the polynomial: 1 to H."""
        return self.names.index(name) + 1


def safe(entities: int, fewest: int, colluding: int) -> bool:
    """Whether no story of the server's gives a total with fewer than ``fewest - colluding`` honest entities, nor two totals."""
    honest = fewest - colluding
    # Each honest entity may be told other drop-outs, (entities - fewest) at most. (entities - fewest + 1) entities would have to be
    # reported missing by `honest` others each to make the total too small, and that is more than there is. It follows that
    # 2 * fewest > entities + colluding: there is one total.
    return honest >= 2 and honest > (entities - fewest) ** 2


def least_fewest(entities: int, colluding: int) -> int:
    """The smallest `fewest` that is safe: `entities` itself always is."""
    missing = 0
    while safe(entities, entities - missing - 1, colluding):
        missing += 1
    return entities - missing
