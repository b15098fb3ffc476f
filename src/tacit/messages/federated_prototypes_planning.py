"""What a manifest promises, and whether its run can tell anybody anything: from public constants, before a run."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER, Guarantee, Loss, LossKind, epsilon_of_rho, pure, rho_for
from tacit.guarantees.rounding import up
from tacit.guarantees.zcdp import UNITS
from tacit.messages.federated_prototypes_roster import USERS_EACH
from tacit.messages.federated_prototypes_terms import Mechanism

if TYPE_CHECKING:
    from tacit.messages.federated_prototypes_manifest import Manifest

PROOF = "composition"
_ROW = 20  # items of a user, where nothing is known of them


def rhos_of(manifest: "Manifest") -> tuple[float, float]:
    """The rho of the popularity and that of the Gram matrix: whole units of 10^-12, in all what (epsilon, delta) allows."""
    if manifest.delta is None or manifest.part is None:
        raise InvalidParameter("only 'moments' has two stages.")
    total = math.floor(Fraction(rho_for(manifest.epsilon, manifest.delta)) * UNITS)
    popularity = math.floor(Fraction(manifest.part) * total)
    if not 0 < popularity < total:
        raise InvalidParameter("epsilon is too small for two uploads: raise it, or take a part nearer to 1/2.")
    return popularity / UNITS, (total - popularity) / UNITS


def guarantee_of(manifest: "Manifest") -> Guarantee:
    """Of one user, by all that the run releases about her."""
    each, assumes = manifest.entities_each, _assumptions(manifest)
    if manifest.mechanism is Mechanism.GRID or manifest.delta is None:
        return pure(up(Fraction(manifest.epsilon) * each), ONE_USER, proof=PROOF, assumes=assumes)
    # Under one noise a user's q rows move the sum q times as far, and rho grows as the square; else it is added up.
    rho = Fraction(rho_for(manifest.epsilon, manifest.delta)) * (each**2 if manifest.is_secure else each)
    delta = up(Fraction(manifest.delta) * each)
    if not delta < 1.0:
        raise InvalidParameter("entities_each times delta must stay below 1.")
    epsilon = manifest.epsilon if each == 1 else epsilon_of_rho(up(rho), delta)
    return Guarantee(epsilon, ONE_USER, delta=delta, assumes=assumes, proof=PROOF, loss=Loss(LossKind.ZCDP, up(rho)))


def warnings_of(manifest: "Manifest") -> tuple[str, ...]:
    return tuple(_moments(manifest) if manifest.mechanism is Mechanism.MOMENTS else _prototypes(manifest))


def _assumptions(manifest: "Manifest") -> frozenset[str]:
    each = manifest.entities_each
    found = {"no user is in two entities" if each == 1 else f"no user is in more than {each} entities"}
    if manifest.honest > 1:
        found |= {
            "only the sum of the shares is seen",
            f"at least {manifest.honest} shares in it have noise that the adversary does not know",
        }
    return frozenset(found)


def _moments(manifest: "Manifest") -> list[str]:
    """``needed`` items must have a popularity above three deviations of the noise each, or there is no head.

    A unit row has at most sqrt(needed) on so many items, so the least popular of them has at most users / sqrt(needed): if all
    users had just these. Where fewer than 20 are needed that is still beyond hope, and users are taken to have 20 items each.
    """
    contributors = len(manifest.contributors)
    sd = math.sqrt(contributors / manifest.honest / (2.0 * rhos_of(manifest)[0]))
    needed = 10 + 0.004 * manifest.items
    if needed > manifest.items:
        return [f"with {manifest.items} items no head can be found: 'moments' needs {math.ceil(needed)} or more."]
    most = contributors * manifest.users / math.sqrt(max(_ROW, needed))
    if most > 3.0 * sd:
        return []
    enough = math.ceil(manifest.users * 3.0 * sd / most)
    remedy = "" if manifest.is_secure else ", take secure sums"
    return [
        f"no information at this budget: {math.ceil(needed)} items would need a popularity above {3.0 * sd:.3g} each, and "
        f"{contributors} entities of about {manifest.users:,} users could give them {most:.3g} each, if everybody had them all. "
        f"Raise epsilon{remedy}, or find more users: several times {enough:,} in each entity."
    ]


def _prototypes(manifest: "Manifest") -> list[str]:
    """A cluster's column sum, on average over all items, against the scale of its noise: (users / k) mean value >> B1 / epsilon."""
    k, each, bound = manifest.k or 1, manifest.items_each or 1, manifest.value_bound or 1.0
    row = min(each * bound, manifest.l1_bound or math.inf)
    part = manifest.shares[4] if manifest.shares is not None else 0.5
    noise = row / (manifest.epsilon * part)
    if manifest.mechanism is Mechanism.TREE and manifest.delta is not None:
        radius = min(bound * math.sqrt(each), manifest.l2_bound or math.inf)
        noise = math.sqrt(2.0) * radius / math.sqrt(rho_for(manifest.epsilon, manifest.delta) / 2.0)
    found = []
    signal = manifest.users / k * row / manifest.items
    if signal <= noise:
        found.append(
            f"no information at this budget: about {manifest.users / k:,.0f} users for each prototype have column sums of "
            f"{signal:.3g} at most on average, and their noise is {noise:.3g}. Raise epsilon, lower k or the bounds of a row."
        )
    if manifest.users < USERS_EACH * k:
        found.append(
            f"entities of about {manifest.users:,} users are too small to contribute {k} prototypes ({USERS_EACH} users for each): "
            "give them the role of a receiver, or lower k."
        )
    return found
