"""The modes of a curator of two domains, and what every one of them is asked with."""

from enum import StrEnum
from typing import NamedTuple

from tacit.curator.slate_account import SlateAccount
from tacit.errors import GuaranteeRefused
from tacit.guarantees import Guarantee

PUBLIC = "the lists of items and all settings are public"
SERVED = "what a served user sees is computed from the release and her own ratings alone"


class Mode(StrEnum):
    MOMENTS = "moments"  # noisy sums once; models for any number of users follow from them
    PRS_VALID = "prs_valid"  # the paper's private replacement, over a public list of candidates
    PUBLISHED = "published"  # the paper's mechanisms as published: for comparison, promises nothing
    NX = "nx"  # the paper's system without noise: promises nothing


class Asked(NamedTuple):
    """Checked: a budget for one release, and the id that it is known by (None: known by its own settings)."""

    epsilon: float
    delta: float
    request_id: str | None

    def release_id(self, mode: Mode, digest: str) -> str:
        """In the ledger. Without an id the same release is asked for again, and found again."""
        return f"{mode.value} {digest[:32] if self.request_id is None else self.request_id}"


def charge_unprotected(account: SlateAccount, asked: Asked, mode: Mode, guarantee: Guarantee, what: str) -> None:
    """Notes that something was made that promises nothing; refused unless the subject's terms name it."""
    release_id = asked.release_id(mode, account.digest(mode.value, what))
    try:
        account.charge(release_id, guarantee)
    except GuaranteeRefused:
        raise GuaranteeRefused(
            f"mode {mode.value!r} promises nothing to anybody in these ratings, and their terms in this ledger do not allow that. "
            "Use mode 'moments'; or agree to it when a ledger first meets these users: "
            f"Curator(..., unprotected=[{mode.value!r}])."
        ) from None
