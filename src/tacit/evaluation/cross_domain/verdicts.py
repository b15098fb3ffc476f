"""What the figures decide. Of two methods one is ahead by 2 standard errors of the difference, user by user."""

from collections.abc import Iterator
from itertools import pairwise

from tacit.evaluation.cross_domain import names, paper
from tacit.evaluation.cross_domain.comparisons import INF, Setting, Table
from tacit.evaluation.cross_domain.outcome import Outcome
from tacit.evaluation.cross_domain.published import A_DRAW, EACH, FURTHER, OF_ITEMS
from tacit.evaluation.cross_domain.reference import PLAIN
from tacit.evaluation.cross_domain.sweeps import BY_USERS
from tacit.evaluation.result import Claim
from tacit.evaluation.statistics import Estimate

ALLOWED = 0.01  # by which an error may rise where it should fall
CLOSE = 0.005
DRAWN: Setting = {**INF, A_DRAW: EACH}


def verdicts(found: Outcome) -> Iterator[Claim]:
    worlds = dict.fromkeys(
        str(dict(setting)["world"])
        for _, setting in found.scored
        if {name for name, _ in setting} == {"world", "epsilon"}
    )
    for world in worlds:
        table = Table(found, world)
        yield from _published(table)
        yield from _honesty(table)
        yield from _moments(table)
        yield from _simpler(table)
    yield from _sweeps(found)


def _published(table: Table) -> Iterator[Claim]:
    for other in (names.REMOTE_USER, names.ITEM_AVERAGE, names.KNN):
        apart = [("", table.lower(names.NX_PUBLISHED, other))]
        yield from table.claim(paper.UNVERIFIED, f"NX-Map-ib has a lower error than {other}", apart)
    both: Setting = {**DRAWN, OF_ITEMS: FURTHER}
    apart = [
        (other, table.lower(names.PRS_TOP_NOISY, other, both)) for other in (names.ITEM_AVERAGE, names.REMOTE_USER)
    ]
    yield from table.claim(paper.UNVERIFIED, "X-Map with its noise has a lower error than baselines without any", apart)


def _honesty(table: Table) -> Iterator[Claim]:
    yield from table.claim(
        paper.OURS,
        "drawn from a list that no record decides, replacements at the paper's epsilon are worse than item averages",
        [("item-based", table.lower(names.ITEM_AVERAGE, names.PRS_VALID, INF, DRAWN))],
    )
    yield from table.claim(
        paper.OURS,
        "what the published draws are worth rests on the list of ten that the records decide",
        [
            ("item-based", table.lower(names.PRS_TOP, names.PRS_VALID, DRAWN, DRAWN)),
            ("user-based", table.lower(names.PRS_TOP_UB, names.PRS_VALID_UB, DRAWN, DRAWN)),
        ],
    )
    both: Setting = {**DRAWN, OF_ITEMS: FURTHER}
    for epsilon in table.epsilons(names.B3):
        at: Setting = {"epsilon": epsilon}
        yield from table.claim(
            paper.OURS,
            f"B3 at epsilon {epsilon:g} for the whole system has a lower error than published X-Map, which promises nothing, "
            "and than private replacements in the same budget",
            [
                ("published", table.lower(names.B3, names.PRS_TOP_NOISY, at, both)),
                ("prs_valid", table.lower(names.B3, names.TABLE, at, at)),
            ],
        )


def _moments(table: Table) -> Iterator[Claim]:
    epsilons = table.epsilons(names.B3)
    for method in (names.B3, names.B3_OFFSETS, names.B2_CAREFUL):
        steps = [
            (f"{less:g} to {more:g}", table.lower(method, method, {"epsilon": more}, {"epsilon": less}))
            for less, more in pairwise(epsilons)
        ]
        if len(epsilons) > 1:
            told = f"the error of {method} falls as epsilon grows (by no step does it rise more than {ALLOWED:g})"
            yield from table.no_worse(paper.OURS, told, steps, ALLOWED)
    for other in (names.B2_CAREFUL, names.B1, names.OFFSETS):
        apart = [
            (f"epsilon {each:g}", table.lower(names.B3, other, {"epsilon": each}, {"epsilon": each}))
            for each in epsilons
            if other == names.OFFSETS or not _fell_back(table, other, each)
        ]
        yield from table.claim(paper.OURS, f"B3 has a lower error than {other} at equal epsilon", apart)
    gains = [
        (f"epsilon {each:g}", table.lower(names.B3, names.B3_OFFSETS, {"epsilon": each}, {"epsilon": each}))
        for each in epsilons
    ]
    told = f"directions of taste never cost more than {CLOSE:g} over offsets with the whole budget"
    yield from table.no_worse(paper.OURS, told, gains, CLOSE)
    larger = [each for each in epsilons if each >= 2.0]
    averages, mapped, shipped = (
        [(f"epsilon {each:g}", table.lower(names.B3, other, {"epsilon": each})) for each in larger]
        for other in (names.ITEM_AVERAGE, names.NX, names.NX_SOURCE)
    )
    told = "B3 at epsilon 2 or more has a lower error than item averages without privacy"
    yield from table.claim(paper.OURS, told, averages)
    told = f"B3 at epsilon 2 or more is within {ALLOWED:g} of NX-Map-ib without privacy, or better"
    yield from table.no_worse(paper.OURS, told, mapped, ALLOWED)
    told = f"B3 at epsilon 2 or more is within {ALLOWED:g} of the library's NX-Map ({names.NX_SOURCE}), or better"
    yield from table.no_worse(paper.OURS, told, shipped, ALLOWED)


def _fell_back(table: Table, method: str, epsilon: float) -> bool:
    """Whether a method is the offsets of its release and nothing else: to compare with it would count one comparison twice."""
    apart = table.lower(method, names.OFFSETS, {"epsilon": epsilon}, {"epsilon": epsilon})
    return apart is not None and apart.value == 0.0 and apart.stderr == 0.0


def _simpler(table: Table) -> Iterator[Claim]:
    yield from table.no_worse(
        paper.OURS,
        f"taking similar items from the profile is no worse than the published way, by more than {CLOSE:g}",
        [("", table.lower(names.NX, names.NX_PUBLISHED))],
        CLOSE,
    )
    apart = [(one, table.lower(one, names.NX)) for one in (names.KNN, names.ALS)]
    yield from table.claim(
        paper.OURS, "baselines that see both domains as one have a lower error than NX-Map-ib", apart
    )
    yield from table.claim(
        paper.OURS,
        "several replacements of an item are better than one",
        [(f"{count}", table.lower(name, names.NX)) for count, name in names.NX_MANY.items()],
    )
    yield from table.claim(
        paper.OURS,
        "a user's level is better told from the mean of the domain that it was formed in",
        [("", table.lower(names.USER_MEAN_SOURCE, names.USER_MEAN))],
    )


def _sweeps(found: Outcome) -> Iterator[Claim]:
    table = Table(found, PLAIN)
    few, some, most = ({"overlap": share} for share in (0.02, 0.2, 0.8))
    fewer = _apart(found, names.NX, few, some)
    if fewer is not None:
        yield Claim(
            paper.OURS, f"{PLAIN}: from 2 % to 20 % of users in both domains the error of NX-Map-ib falls",
            fewer.above(0.0), f"other users, other worlds: {fewer}",
        )  # fmt: skip
    later = _apart(found, names.NX, some, most)
    if later is not None:
        yield Claim(
            paper.OURS, f"{PLAIN}: from 20 % to 80 % it hardly changes (by {ALLOWED:g} or less)",
            abs(later.value) <= ALLOWED, f"other users, other worlds: {later}",
        )  # fmt: skip
    for drift in ("none", "strong"):
        ages = [
            (f"drift {drift}", table.lower(names.NX, names.NX, {"drift": drift, "alpha": 0.03}, {"drift": drift, "alpha": 0.0}))
        ]  # fmt: skip
        yield from table.level(
            paper.OURS, f"ageing of ratings neither helps nor costs more than {CLOSE:g}", ages, CLOSE
        )
    yield from table.claim(
        paper.OURS,
        "significance counts: W = 50 is better than 0",
        [("", table.lower(names.NX, names.NX, {"W": 50}, {"W": 0}))],
    )
    users = sorted(
        {int(dict(setting)["users"]) for name, setting in found.scored if name == names.B3 and "users" in dict(setting)}
    )
    steps = [
        (
            less,
            more,
            _apart(found, names.B3, {"users": less, "epsilon": 2.0}, {"users": more, "epsilon": 2.0}, BY_USERS),
        )
        for less, more in pairwise(users)
    ]
    by_users = Table(found, BY_USERS)
    at: list[Setting] = [{"users": each, "epsilon": 2.0} for each in users]
    spent = [(f"{one['users']:,} users", by_users.lower(names.B3, names.B3_OFFSETS, one, one)) for one in at]
    told = f"second moments never cost more than {CLOSE:g} over offsets with the whole budget, however few the users"
    yield from by_users.no_worse(paper.OURS, told, spent, CLOSE)
    if steps:
        yield Claim(
            paper.OURS,
            f"{BY_USERS}: the error of B3 at epsilon 2 falls as users are added (by no step does it rise more than {ALLOWED:g})",
            all(one is not None and one.value >= -ALLOWED for _, _, one in steps),
            "; ".join(f"{less:,} to {more:,}: {one}" for less, more, one in steps),
        )


def _apart(found: Outcome, method: str, one: Setting, other: Setting, world: str = PLAIN) -> Estimate | None:
    """How far the error falls from one setting to another of different users: errors as of independent figures."""
    first, second = (found.find(method, world=world, **setting) for setting in (one, other))
    if first is None or second is None:
        return None
    before, after = first.mae, second.mae
    return Estimate(before.value - after.value, (before.stderr**2 + after.stderr**2) ** 0.5, min(before.n, after.n))
