"""Private slates: each drawn anew while that is better, or noisy counts once for any number of them."""

from tacit.curator.private_slates.plan import Plan, plan
from tacit.curator.private_slates.routes import Route
from tacit.evaluation.advice.recipe import IMPORT, Recipe, digits
from tacit.evaluation.advice.situation import Holder, Situation, Wants

BASELINE = "A list that an editor or public figures made, the same for everybody: it uses nobody's ratings."
PAGE = "private-slates"
NOT_IN_TWO = "no user is in two entities"
_K = 10
_START = """\
import tacit

ratings = tacit.data.load("movielens-small")
curator = tacit.Curator(ratings, ledger="curator.db", budget=tacit.Budget(epsilon={epsilon}{delta}))
"""
_EACH = """\
slate = curator.slate(k={k}, epsilon={epsilon}, slates={slates}, request_id="1 of {slates}")
print(curator.titles(slate), slate.guarantee)
"""
_COUNTS = """\
counts = curator.popularity(epsilon={epsilon})                    # charged once
server = tacit.server.PrivateSlates(counts, curator.features_of(counts.items))
print(server.slate(k={k}).items, counts.guarantee)
"""


def recipe(at: Situation) -> Recipe:
    """As the curator itself would plan it, charges added up plainly or by zCDP, whichever leaves more to a slate."""
    k = min(_K, at.items) if at.wants is Wants.SLATE else 1
    made, delta = _plan(at, k)
    is_once = made.route is Route.COUNTS
    each, total = made.each, made.total
    if at.holder is Holder.ENTITY and (at.entities or 1) > 1:
        each, total = each.assuming(NOT_IN_TWO), total.assuming(NOT_IN_TWO)
    epsilon, of_delta = digits(at.epsilon), f", delta={digits(delta)}" if delta else ""
    body = _COUNTS.format(epsilon=epsilon, k=k) if is_once else _EACH.format(k=k, epsilon=epsilon, slates=at.releases)
    return Recipe(
        mode=f"{made.route.value}, k={k}, "
        + ("released once for any number of slates" if is_once else _times(at.releases)),
        each=each,
        total=total,
        read_at=made.epsilon,
        users=at.users_each,
        commands=() if is_once else _drawn(epsilon, delta),
        python=_START.format(epsilon=epsilon, delta=of_delta) + body,
        reasons=(made.why, *_personal(at)),
        warnings=_warnings(at, k, is_once),
        line="counts" if is_once else None,
        of_sums=True,
    )


def _plan(at: Situation, k: int) -> tuple[Plan, float]:
    plain = plan(k, at.epsilon, at.releases, items=at.items)
    if at.delta == 0.0 or at.releases == 1:
        return plain, 0.0
    ranged = plan(k, at.epsilon, at.releases, items=at.items, delta=at.delta, accounting="zcdp")
    best = max((plain, ranged), key=lambda one: (one.route is not Route.COUNTS, one.epsilon))
    return best, 0.0 if best is plain else at.delta


def _times(slates: int) -> str:
    return "one slate" if slates == 1 else f"each of {slates:,} slates drawn anew"


def _drawn(epsilon: str, delta: float) -> tuple[str, ...]:
    budget = f"TACIT_SERVE_BUDGET_EPSILON={epsilon}" + (f" TACIT_SERVE_BUDGET_DELTA={digits(delta)}" if delta else "")
    return (
        IMPORT,
        "tacit keys add editor --scope operator",  # makes the folder; slates are asked for with this key
        "tacit ledger init tacit-home/curator.db",
        f"{budget} tacit serve --curator ratings.parquet",
    )


def _personal(at: Situation) -> tuple[str, ...]:
    if at.wants is Wants.SLATE:
        return ()
    return (
        "The item is the same for everybody. A user's own wishes may weigh it (`curator.slate(request=...)`): others stay "
        "protected from her, she is not protected from the curator.",
    )


def _warnings(at: Situation, k: int, is_once: bool) -> tuple[str, ...]:
    found = [
        "The features that make slates differ have to be public. Where who likes what together is to decide instead, that is "
        'private too: `similarity="private"` (`natural`), at a fraction of the popularity. A plain file of ratings has none: '
        "slates from it are of the most liked items (`top-k`), and differ by chance."
    ]
    if is_once:
        found.append("Counts are of the ratings as they are; new ratings need a new release and another charge.")
        found.append(
            "`tacit fit --slates` releases counts too, but beside a model and look-alikes that promise nothing to those who rated: "
            "it is for ratings whose owners agreed to that. Served by themselves, counts are released in Python."
        )
    if k != _K:
        found.append(f"What was measured are slates of {_K}, not of {k}.")
    return tuple(found)
