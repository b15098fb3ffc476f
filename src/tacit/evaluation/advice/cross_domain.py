"""Cross-domain: noisy moments, once, for any number of predictions."""

from typing import NoReturn

import numpy as np

from tacit.curator.cross_domain.domains import PUBLIC, SERVED, BothDomains, ReleaseRequest
from tacit.curator.cross_domain.moments import Moments
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Scale
from tacit.errors import InvalidParameter
from tacit.evaluation.advice.recipe import Recipe, digits, share_of
from tacit.evaluation.advice.situation import Situation
from tacit.guarantees import Guarantee, tight
from tacit.ledger import Accounting, Budget

BASELINE = "Predict by the user's own mean and show what is publicly known to be good: that uses nobody else's data."
PAGE = "cross-domain"
_LOW, _HIGH = 1.0, 5.0
_LISTED = 1000  # what is promised does not depend on how many items there are; ids are made up for it
_PYTHON = """\
import numpy as np
import tacit

both = tacit.data.synthetic(users=2_000, items=100, second_domain=True, overlap=0.3, rng=np.random.default_rng(1))
budget = tacit.Budget(epsilon={epsilon}, delta={delta})
curator = tacit.Curator(both, ledger="curator.db", budget=budget{accounting})        # or Curator(films, books, ledger=...)
model = curator.release(epsilon={each}, delta={delta}, users={users}, request_id="1 of {releases}")
print(model.remark)
print(model.recommend({{1: 5.0, 2: 4.5, 17: 1.0}}, k=3), model.guarantee)        # computed on her side
"""

_NEEDS = {
    "source.csv, target.csv": "the ratings of either domain, with the same users' ids: columns user_id, item_id and rating, "
    "from 1 to 5; the first line names them.",
    "source.txt, target.txt": "the public list of either domain's items, rated or not: one id in each line, no header.",
    "mine.csv": "one person's own ratings, on her side: columns item_id and rating. "
    'An example: docs/cross-domain.md, "On the command line, and on a cluster".',
}


def recipe(at: Situation) -> Recipe:
    """One release is charged exactly; several add up by zCDP."""
    if at.delta == 0.0:
        raise InvalidParameter(
            "the noise of moments is Gaussian and needs a delta above 0; without one nothing is released here."
        )
    accounting = Accounting.BASIC if at.releases == 1 else Accounting.ZCDP
    each = at.epsilon
    if at.releases > 1:
        budget = Budget(at.epsilon, at.delta)
        each = share_of(lambda e: _promise(at, e, accounting), at.releases, budget, accounting)
    guarantee = _promise(at, each, accounting)
    release = (
        "tacit transfer release source.csv target.csv --source-items source.txt --target-items target.txt "
        f"--epsilon {digits(each)} --delta {digits(at.delta)} --users {at.users} --ledger curator.db "
        f"--budget {digits(at.epsilon)} --out model.json"
    )
    warnings = [
        "What is carried over is learned from users with ratings in both domains: it is their number that counts.",
        "Her own predictions tell of her own ratings: they are computed on her side, and covered by nothing once she shows them.",
    ]
    if at.server_sees_choice:
        warnings.append(
            "The server is to see what was shown: to protect her too, let her device choose by private selection, with the model's "
            "predictions as private scores. That is charged to her, and was not measured together with this."
        )
    return Recipe(
        mode="moments (factors), one release" if at.releases == 1 else f"moments (factors), {at.releases:,} releases by zCDP",
        each=guarantee,
        total=guarantee if at.releases == 1 else tight({guarantee: at.releases}, at.delta, "zcdp"),
        read_at=each,
        users=at.users,
        # The command line adds charges up plainly, deltas too: several releases of one budget are made in Python.
        commands=(release, "tacit transfer predict model.json mine.csv --k 10") if at.releases == 1 else (),
        needs=_NEEDS if at.releases == 1 else {},
        python=_PYTHON.format(
            epsilon=digits(at.epsilon), each=digits(each), delta=digits(at.delta), users=at.users, releases=at.releases,
            accounting="" if at.releases == 1 else ', accounting="zcdp"',
        ),
        reasons=(
            "One release covers every prediction for anybody, for ever. Another one is needed only for new ratings."
            + ("" if at.releases == 1 else f" {at.releases:,} of them share the budget, by zCDP."),
        ),
        warnings=tuple(warnings),
        of_sums=True,
    )  # fmt: skip


def _promise(at: Situation, epsilon: float, accounting: Accounting) -> Guarantee:
    """What the curator's own mechanism promises at this epsilon: planned from public constants, without a rating."""
    half = min(at.items, _LISTED) // 2
    listed = BothDomains(
        Catalogue(np.arange(half)), Catalogue(np.arange(half, 2 * half)), Scale(_LOW, _HIGH), _no_rows, "advice"
    )
    plan = Moments(users=at.users).plan(listed, ReleaseRequest(epsilon, at.delta), accounting)
    return plan.mechanism.guarantee.assuming(PUBLIC, SERVED)


def _no_rows(least: int) -> NoReturn:
    raise InvalidParameter("advice reads no ratings.")
