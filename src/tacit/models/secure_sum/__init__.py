"""The arithmetic of secure sums: whole numbers modulo 2^64, added up under masks so that only the total is seen.

The protocol of Bonawitz et al. (2017) on primitives of the package `cryptography`: X25519, HKDF, ChaCha20, ChaCha20-Poly1305.
Who says what to whom is in `messages`, `entity` and `server`; why it holds, and when not, in docs/proofs/secure-sum.md.
"""

from tacit.models.secure_sum.context import COMMITMENT_BYTES
from tacit.models.secure_sum.plan import SumPlan, least_fewest
from tacit.models.secure_sum.session import SumSession
from tacit.models.secure_sum.shares import SHARE_BYTES

__all__ = ["COMMITMENT_BYTES", "SHARE_BYTES", "SumPlan", "SumSession", "least_fewest"]
