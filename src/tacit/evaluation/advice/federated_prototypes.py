"""Federated prototypes: moments under secure sums where that is possible, else what is left."""

from functools import cache
from typing import Any

from tacit.evaluation.advice.recipe import Recipe, digits, share_of
from tacit.evaluation.advice.situation import Situation
from tacit.guarantees import Guarantee, repeat, tight
from tacit.ledger import Accounting, Budget
from tacit.messages.federated_prototypes.manifest import Manifest, Member
from tacit.messages.federated_prototypes.terms import Aggregation, Mechanism

BASELINE = "Each organisation fits its users with its own rows alone. Nothing leaves, and nobody is charged."
PAGE = "federated-prototypes"
_SECURE_FROM = 3  # two cannot hide from each other
_K, _USERS_EACH, _ROW = 5, 20, 20
_PYTHON = """\
import numpy as np
import tacit
from tacit.systems.federated_prototypes import simulate

ratings = tacit.data.load("movielens-small")
entities = {entities}
home = np.random.default_rng(1).permutation(ratings.n_users) % entities    # in real life everybody holds their own
rows = {{f"entity-{{h}}": ratings.csr()[home == h] for h in range(entities)}}
catalogue = ratings.catalogue.ids.tolist()
with simulate(rows, catalogue, epsilon={epsilon}, users={users}{constants}) as run:
    print(run.guarantee)
    scores = run.entities["entity-0"].fit().scores()                       # stays inside
"""


def recipe(at: Situation) -> Recipe:
    """The mechanism by entities, items and delta, and what one of the runs may cost."""
    constants = _constants(at)
    mechanism = constants.get("mechanism", Mechanism.MOMENTS)
    is_secure = mechanism is Mechanism.MOMENTS and "aggregation" not in constants

    def manifest(epsilon: float) -> Manifest:
        return Manifest(
            catalogue="0" * 64, items=at.items, epsilon=epsilon, users=at.users_each, coordinator="f" * 64,
            roster=_roster(at.entities or 1), min_entities=min(2, at.entities or 1), **constants,
        )  # fmt: skip

    accounting = Accounting.ZCDP if at.delta else Accounting.BASIC
    each = at.epsilon
    if at.releases > 1:
        each = share_of(lambda e: manifest(e).guarantee, at.releases, Budget(at.epsilon, at.delta), accounting)
    plan = manifest(each)
    return Recipe(
        mode=_mode(mechanism, is_secure, constants),
        each=plan.guarantee,
        total=_together(plan.guarantee, at),
        read_at=each,
        users=at.users,
        commands=_COMMANDS,
        python=_PYTHON.format(
            entities=min(at.entities or 1, 16), epsilon=digits(each), users=at.users_each,
            constants="".join(f", {name}={_written(value)}" for name, value in constants.items()),
        ),
        files={"run.toml": _run_file(at, each, constants)},
        needs=_NEEDS,
        reasons=_reasons(mechanism, is_secure, at),
        warnings=(*plan.warnings(), *_warnings(at)),
        line=None if is_secure else "per entity",
        of_sums=True,
        is_hopeless=any(one.startswith("no information") for one in plan.warnings()),
        is_measured=mechanism is Mechanism.MOMENTS,
    )  # fmt: skip


_COMMANDS = (
    "tacit entity keys coordinator.key",
    "tacit entity keys north.key",
    "tacit federate open run run.toml",
    "tacit entity release north.toml",
    "tacit federate step run --key coordinator.key",
    "tacit entity fit north.toml --out recommendations.csv",
)


_NEEDS = {
    "items.txt": "the ids of all items, one in each line, in an order that the coordinator and all organisations share.",
    "north.toml": "of each organisation, what it keeps to itself: name, key, coordinator (its public key), catalogue (items.txt), "
    'rows, ledger, mailbox, budget and policy. An example: docs/federated-prototypes.md, "A hospital\'s view".',
    "north.csv": "its own rows, which north.toml names: columns user and item, and perhaps value; the first line names them.",
}


@cache
def _roster(entities: int) -> tuple[Member, ...]:
    return tuple(Member(f"entity-{n}", f"{n:064x}") for n in range(entities))


def _constants(at: Situation) -> dict[str, Any]:
    """Those of a manifest that are not its defaults. Prototypes: bounds of a row of marks."""
    is_grid = at.delta == 0.0
    if not is_grid and at.items > 10 + 0.004 * at.items:  # as a manifest warns: below it no head can be found
        delta = {"delta": at.delta}
        return delta if (at.entities or 1) >= _SECURE_FROM else delta | {"aggregation": Aggregation.NONE}
    found: dict[str, Any] = {"mechanism": Mechanism.GRID if is_grid else Mechanism.TREE}
    if not is_grid:
        found["delta"] = at.delta
    k = max(1, min(_K, at.users_each // _USERS_EACH))
    return found | {"k": k, "items_each": min(_ROW, at.items), "value_bound": 1.0}


def _together(each: Guarantee, at: Situation) -> Guarantee:
    if at.releases == 1:
        return each
    return tight({each: at.releases}, at.delta, "zcdp") if at.delta else repeat(each, at.releases)


def _mode(mechanism: Mechanism, is_secure: bool, constants: dict[str, Any]) -> str:
    if mechanism is Mechanism.MOMENTS:
        return "moments under secure sums" if is_secure else "moments, each organisation's by itself"
    return f"prototypes by a {mechanism.value}, k={constants['k']}"


def _reasons(mechanism: Mechanism, is_secure: bool, at: Situation) -> tuple[str, ...]:
    if mechanism is Mechanism.GRID:
        return (
            "No delta is allowed, and only prototypes by a grid promise a pure epsilon. They need far more users than moments.",
        )
    if mechanism is Mechanism.TREE:
        return (f"With {at.items} items moments find no head; prototypes by a tree take so few.",)
    if is_secure:
        return (
            "Under secure sums only the sum over all organisations is seen, and it carries the noise of one. Prototypes by a tree "
            "are for values that matter (ratings, doses), few items and tens of thousands of users in each organisation.",
        )
    return ("Two organisations cannot hide in a sum from each other: each adds all the noise itself.",)


def _warnings(at: Situation) -> tuple[str, ...]:
    found = ["Nobody may be in two organisations, unless the manifest says so (`entities_each`); it then costs more."]
    if at.releases > 1:
        found.append("Runs add up. Repeat one when there are many new users, not by the calendar.")
    if at.server_sees_choice:
        found.append(
            "What each user is then shown is computed from rows without noise: whoever outside sees it is told of them."
        )
    return tuple(found)


def _run_file(at: Situation, epsilon: float, constants: dict[str, Any]) -> str:
    """What `tacit federate open` reads; the roster goes on with the others."""
    told = "".join(f"{name} = {_written(value)}\n" for name, value in constants.items())
    roster = '[[roster]]\nname = "north"\nkey = "north.key.pub"\n'
    return (
        f'key = "coordinator.key"\ncatalogue = "items.txt"\nepsilon = {epsilon!r}\nusers = {at.users_each}\n{told}\n{roster}'
        f"# ... and so for each of the {at.entities}\n"
    )


def _written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
