"""What an entity agrees to, whoever asks: a manifest that asks for more is refused before anything is drawn."""

from dataclasses import dataclass

from tacit.checks import keep, positive, probability, whole
from tacit.errors import GuaranteeRefused, InvalidParameter
from tacit.messages.federated_prototypes_manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The most that one run may promise to cost a user (``epsilon``, ``delta``); the ``mechanisms`` and the ``aggregation`` that
    are allowed; how many contributors there must be. None allows everything: the budget in the ledger still holds."""

    epsilon: float | None = None
    delta: float | None = None
    mechanisms: tuple[str, ...] | None = None
    aggregation: str | None = None
    contributors: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=None if self.epsilon is None else positive("the epsilon of a policy", self.epsilon),
            delta=None if self.delta is None else probability("the delta of a policy", self.delta),
            contributors=whole("contributors", self.contributors, least=1),
        )
        if isinstance(self.mechanisms, str):
            raise InvalidParameter("mechanisms are a tuple of names, such as ('moments', 'tree').")

    def require(self, manifest: Manifest) -> None:
        """Refuses a manifest that goes beyond this policy. Only public numbers are looked at."""
        promised = manifest.guarantee
        if self.epsilon is not None and promised.epsilon > self.epsilon:
            raise GuaranteeRefused(
                f"the run asks for epsilon = {promised.epsilon:g}; this entity allows {self.epsilon:g}."
            )
        if self.delta is not None and promised.delta > self.delta:
            raise GuaranteeRefused(f"the run asks for delta = {promised.delta:g}; this entity allows {self.delta:g}.")
        if self.mechanisms is not None and manifest.mechanism.value not in self.mechanisms:
            raise GuaranteeRefused(f"this entity does not take part in runs of '{manifest.mechanism}'.")
        if self.aggregation is not None and manifest.aggregation not in (None, self.aggregation):
            raise GuaranteeRefused(f"this entity takes part with aggregation '{self.aggregation}' only.")
        if len(manifest.contributors) < self.contributors:
            raise GuaranteeRefused(f"this entity takes part where there are {self.contributors} contributors or more.")
