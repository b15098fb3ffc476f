"""What a manifest would mean for an entity: with whom, at what cost, and whether it would be refused. For who decides."""

from dataclasses import dataclass, field
from typing import Any

from tacit.ledger import Statement
from tacit.ledger.amounts import Cost
from tacit.ledger.statements import cost_to_json
from tacit.messages.federated_prototypes_manifest import Manifest


@dataclass(frozen=True, slots=True)
class Outlook:
    """``known``: the members of the roster whose keys this entity has from elsewhere, and itself. ``cost``: what all of the run
    would be charged. ``refusal``: why it would not be answered, if so. ``joined``: whether it was answered already."""

    manifest: Manifest
    known: frozenset[str] = field(repr=False)
    cost: Cost
    statement: Statement
    joined: bool
    refusal: str | None

    def to_json(self) -> dict[str, Any]:
        manifest, terms = self.manifest, self.statement.terms
        return {
            "run": manifest.run,
            "title": manifest.title,
            "mechanism": manifest.mechanism.value,
            "aggregation": None if manifest.aggregation is None else manifest.aggregation.value,
            "fewest": manifest.fewest,
            "colluding": manifest.colluding,
            "entities_each": manifest.entities_each,
            "deadline": manifest.deadline,
            "guarantee": manifest.guarantee.to_json(),
            "roster": [{**one.to_json(), "known": one.name in self.known} for one in manifest.roster],
            "warnings": list(manifest.warnings()),
            "cost": cost_to_json(self.cost, terms),
            "windows": self.statement.to_json()["windows"],
            "joined": self.joined,
            "refusal": self.refusal,
        }
