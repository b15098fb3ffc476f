"""Broken on purpose, never use: mechanisms with the faults that this field has really shipped, claiming what they do not keep.

`tacit audit` runs each under the same check as the mechanism it imitates and must catch it; a check that catches nothing
proves nothing. None of them is exported from tacit. What they release carries no guarantee and says why.
"""

from tacit.guarantees import Guarantee, nothing

REASON = "broken on purpose, to be caught by an audit"


def no_promise(claim: Guarantee) -> Guarantee:
    """What a twin's releases carry, whatever it claims."""
    return nothing(claim.protects, REASON)
