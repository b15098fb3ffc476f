"""What all parties of one secure sum know, and what follows from it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tacit.checks import keep
from tacit.errors import InvalidParameter
from tacit.models.secure_sum.context import COMMITMENT_BYTES, commitment
from tacit.models.secure_sum.plan import SumPlan
from tacit.models.secure_sum.sealing import PARCEL_EXTRA
from tacit.models.secure_sum.shares import SHARE_BYTES

_KEY_BYTES = 32
_RUN_DIGITS = 64


@dataclass(frozen=True, slots=True)
class SumSession:
    """The run's id (64 hexadecimal digits), the Ed25519 keys of those who contribute, and the names of the uploads to be summed.

    Refuses what is not safe: see SumPlan.
    """

    run: str
    roster: Mapping[str, bytes] = field(repr=False)
    fewest: int
    colluding: int
    uploads: tuple[str, ...] = ("popularity", "gram")
    plan: SumPlan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.run, str) or len(self.run) != _RUN_DIGITS or set(self.run) - set("0123456789abcdef"):
            raise InvalidParameter(f"the id of a run is {_RUN_DIGITS} hexadecimal digits in lower case.")
        roster = {name: bytes(self.roster[name]) for name in sorted(self.roster)}
        if any(len(key) != _KEY_BYTES for key in roster.values()) or len(set(roster.values())) < len(roster):
            raise InvalidParameter(f"every entity has a public key of {_KEY_BYTES} bytes of its own.")
        uploads = tuple(self.uploads)
        if not uploads or len(set(uploads)) < len(uploads) or not all(isinstance(one, str) and one for one in uploads):
            raise InvalidParameter("uploads must be different names, at least one.")
        plan = SumPlan(tuple(roster), self.fewest, self.colluding)
        keep(self, roster=roster, fewest=plan.fewest, colluding=plan.colluding, uploads=uploads, plan=plan)

    @property
    def names(self) -> tuple[str, ...]:
        """Who takes part, in the order of the plan."""
        return self.plan.names

    @property
    def commitments_bytes(self) -> int:
        """The open part of a parcel: for every upload the commitment to a share of the seed, then of the masking key."""
        return 2 * len(self.uploads) * COMMITMENT_BYTES

    @property
    def parcel_bytes(self) -> int:
        """How many bytes a sealed parcel of shares has."""
        return self.commitments_bytes + 2 * len(self.uploads) * SHARE_BYTES + PARCEL_EXTRA

    def digest(self, names: Iterable[str]) -> str:
        """What stands for a set of entities of this run."""
        return commitment(b"", "names", self.run, *sorted(names)).hex()

    def check_upload(self, upload: str) -> int:
        """The place of an upload among the uploads."""
        if upload not in self.uploads:
            raise InvalidParameter(f"an upload is one of {', '.join(self.uploads)}.")
        return self.uploads.index(upload)
