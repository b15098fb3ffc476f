"""One charge, one answer: nothing is read before it is paid for, nothing is drawn twice, and a refusal tells nothing."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit.data
from tacit.curator import Curator, slate_account
from tacit.curator.cross_domain_modes import PUBLIC, SERVED
from tacit.curator.cross_domain_rows import BothDomains
from tacit.curator.fit import RATED_AT_ALL
from tacit.data.pairs import TwoDomains
from tacit.errors import BudgetExhausted, Conflict, InvalidParameter
from tacit.guarantees import ONE_USER, LossKind
from tacit.ledger import Accounting, Budget, PrivacyLedger
from tacit.mechanisms import SYSTEM_NOISE, ReplayedNoise
from tacit.mechanisms.private_replacement import PUBLIC_LISTS
from tacit.messages.cross_domain import Replacements, TransferModel
from tacit.models.cross_domain.settings import TransferSettings
from tests.unit.curator.cross_domain_world import TABLE, curator, small, world
from tests.unit.curator.slates_world import CountedNoise, FailingNoise
from tests.unit.curator.test_slates_charging import BrokenNoise

ROOMY = Budget(100.0, 1e-4)
MODES = ("moments", "prs_valid")


@pytest.fixture(scope="module")
def domains() -> TwoDomains:
    return world(120, 15)


def charges(holder: Curator) -> int:
    return holder.statement().charges


def stored(holder: Curator) -> list[bytes]:
    return [one.content for one in holder.ledger.stored(holder.statement().subject)]


def told(message: Any) -> str:
    return json.dumps(message.to_json(), sort_keys=True)


# ---- the charge comes first


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_read_or_drawn_before_the_charge_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domains: TwoDomains, mode: str
) -> None:
    seen = []

    class Watched(CountedNoise):
        def draw(self, count: int) -> bytes:
            seen.append(("draw", charges(holder)))
            return SYSTEM_NOISE.draw(count)

    plain = BothDomains.of

    def watched(*args: Any, **options: Any) -> BothDomains:
        made = plain(*args, **options)

        def read(least: int) -> Any:
            seen.append(("read", charges(holder)))
            return made.read(least)

        return replace(made, read=read)

    monkeypatch.setattr(BothDomains, "of", watched)
    with curator(tmp_path, domains, noise=Watched()) as holder:
        holder.release(mode=mode)
    assert seen[0] == ("read", 1)
    assert {what for what, _ in seen} == {"read", "draw"}
    assert {charged for _, charged in seen} == {1}


@pytest.mark.parametrize("mode", MODES)
def test_what_the_budget_does_not_hold_is_refused_and_reads_nothing(
    tmp_path: Path, domains: TwoDomains, mode: str
) -> None:
    noise = CountedNoise()
    with curator(tmp_path, domains, noise=noise) as holder:
        for epsilon, delta in ((2.001, 1e-6), (2.0, 1.01e-6)):
            if mode == "prs_valid" and epsilon == 2.0:
                continue  # pure where that is what pays
            with pytest.raises(BudgetExhausted):
                holder.release(epsilon, delta, mode=mode)
        assert (charges(holder), noise.draws) == (0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_process_that_dies_while_drawing_has_paid_and_shown_nothing(
    tmp_path: Path, domains: TwoDomains, mode: str
) -> None:
    with curator(tmp_path, domains, noise=FailingNoise()) as holder:
        with pytest.raises(KeyboardInterrupt):
            holder.release(mode=mode)
        assert (charges(holder), stored(holder)) == (1, [])
    with curator(tmp_path, domains) as holder:
        assert holder.release(mode=mode).guarantee.epsilon <= 2.0
        assert charges(holder) == 1


@pytest.mark.parametrize("mode", MODES)
def test_an_error_while_drawing_uses_the_id_up_and_tells_nothing(
    tmp_path: Path, domains: TwoDomains, mode: str
) -> None:
    texts, noise = set(), BrokenNoise()
    with curator(tmp_path, domains, noise=noise, budget=ROOMY) as holder:
        for _ in range(2):
            with pytest.raises(Conflict, match="used up") as refused:
                holder.release(mode=mode, request_id="monday")
            texts.add(str(refused.value))
            assert refused.value.__cause__ is None
            assert refused.value.__context__ is None
        assert (noise.draws, charges(holder)) == (1, 1)
    sound = CountedNoise()
    with curator(tmp_path, domains, noise=sound) as holder:  # nor does it draw with better noise
        with pytest.raises(Conflict, match="used up") as refused:
            holder.release(mode=mode, request_id="monday")
        assert sound.draws == 0
        holder.release(mode=mode, request_id="tuesday")
        assert charges(holder) == 2
    assert len(texts | {str(refused.value)}) == 1
    assert not re.search(r"\d", texts.pop())


# ---- one answer


@pytest.mark.parametrize("mode", MODES)
def test_the_same_release_again_is_the_same_for_the_same_charge_also_after_a_restart(
    tmp_path: Path, domains: TwoDomains, mode: str
) -> None:
    noise = CountedNoise()
    with curator(tmp_path, domains, noise=noise) as holder:
        first, draws = told(holder.release(mode=mode)), noise.draws
        assert told(holder.release(mode=mode)) == first
        assert noise.draws == draws > 0
    other = TwoDomains(domains.source.subset(np.zeros(len(domains.source), dtype=np.bool_)), domains.target)
    with curator(tmp_path, other, noise=noise) as holder:  # whatever the ratings are by now
        assert told(holder.release(mode=mode)) == first
        assert (noise.draws, charges(holder)) == (draws, 1)
        with pytest.raises(BudgetExhausted):
            holder.release(mode=mode, request_id="another")


def test_another_process_gets_the_same_bytes(tmp_path: Path) -> None:
    program = (
        "import json, sys, tacit.data\n"
        "from tacit.curator import Curator\n"
        "with Curator(tacit.data.load('synthetic', second_domain=True, users=60, items=12), ledger=sys.argv[1]) as holder:\n"
        "    print(json.dumps(holder.release().to_json(), sort_keys=True))\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "curator.db")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=True)
    data = tacit.data.load("synthetic", second_domain=True, users=60, items=12)
    with curator(tmp_path, data) as holder:
        assert told(holder.release()) == done.stdout.strip()
        assert charges(holder) == 1


@pytest.mark.parametrize("mode", MODES)
def test_callers_at_the_same_time_get_one_answer_for_one_charge(tmp_path: Path, domains: TwoDomains, mode: str) -> None:
    with curator(tmp_path, domains) as holder, ThreadPoolExecutor(4) as pool:
        answers = {told(one) for one in pool.map(lambda _: holder.release(mode=mode), range(4))}
        assert (len(answers), charges(holder)) == (1, 1)


def test_an_id_of_its_own_is_a_release_of_its_own(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, budget=ROOMY) as holder:
        first, second = (holder.release(1.0, request_id=name) for name in ("monday", "tuesday"))
        assert told(first) != told(second)
        assert charges(holder) == 2
        assert holder.statement().promised.epsilon == pytest.approx(2.0)


OTHER: dict[str, Any] = {
    "epsilon": {"epsilon": 1.5},
    "delta": {"delta": 2e-6},
    "post": {"post": "bridge"},
    "settings": {"settings": TransferSettings.for_scale(0.5, 5.0, users=500)},
    "what is made of the noisy sums": {"settings": replace(TransferSettings.for_scale(0.5, 5.0), reach=0.5)},
    "users": {"users": 77},
    "least": {"least": 4},
}


@pytest.mark.parametrize("change", OTHER)
def test_an_id_does_not_stand_for_something_else(tmp_path: Path, domains: TwoDomains, change: str) -> None:
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    with curator(tmp_path, domains, budget=ROOMY) as holder:
        holder.release(**asked, request_id="monday")
        with pytest.raises(Conflict, match="before"):
            holder.release(**{**asked, **OTHER[change]}, request_id="monday")
        assert charges(holder) == 1
        holder.release(**{**asked, **OTHER[change]})  # by itself it is another release
        assert charges(holder) == 2


@pytest.mark.parametrize(
    "other",
    [lambda both: both.reversed(), lambda both: replace(both, source=_shorter(both.source)), lambda both: _wider(both)],
    ids=["order", "catalogue", "scale"],
)
def test_other_catalogues_or_another_scale_are_another_release(tmp_path: Path, domains: TwoDomains, other: Any) -> None:
    with curator(tmp_path, domains, budget=ROOMY, subject="people") as holder:
        holder.release(1.0, request_id="monday")
    with curator(tmp_path, other(domains), budget=ROOMY, subject="people") as holder:
        with pytest.raises(Conflict, match="before"):
            holder.release(1.0, request_id="monday")
        holder.release(1.0)
        assert charges(holder) == 2


def _shorter(ratings: Any) -> Any:
    """Without the last item."""
    kept = ratings.subset(ratings.items < ratings.n_items - 1)
    return replace(kept, catalogue=ratings.catalogue.select(np.arange(ratings.n_items - 1, dtype=np.int32)))


def _wider(both: TwoDomains) -> TwoDomains:
    scale = tacit.data.Scale(0.5, 6.0)
    return TwoDomains(replace(both.source, scale=scale), replace(both.target, scale=scale))


def test_replacements_of_other_lists_are_another_release(tmp_path: Path, domains: TwoDomains) -> None:
    source, target = (part.catalogue.ids.tolist() for part in (domains.source, domains.target))
    asked: dict[str, Any] = {"mode": "prs_valid", "epsilon": 1.0, "sources": source[:4], "candidates": target[:4]}
    others: list[dict[str, Any]] = [
        {"sources": source[1:5]},  # as many, and other ones
        {"candidates": target[1:5]},
        {"edges": 3},
        {"significant": 10},
        {"by": "absolute"},
        {"least": 2},
    ]
    with curator(tmp_path, domains, budget=ROOMY) as holder:
        holder.release(**asked, request_id="monday")
        for other in others:
            with pytest.raises(Conflict, match="before"):
                holder.release(**{**asked, **other}, request_id="monday")
        assert charges(holder) == 1
        tables = [told(holder.release(**asked))]
        for place, other in enumerate(others, start=3):  # by itself each is another release, drawn and charged for
            made = holder.release(**{**asked, **other})
            named = {**asked, **other}
            assert (made.source, made.target) == (tuple(named["sources"]), tuple(named["candidates"]))
            assert charges(holder) == place
            tables.append(told(made))
        assert [told(holder.release(**{**asked, **other})) for other in ({}, *others)] == tables
        assert charges(holder) == 2 + len(others)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "other",
    [
        lambda both: _renamed(both, source=1),
        lambda both: _renamed(both, target=1),
        lambda both: _wider(both),
        lambda both: both.reversed(),
    ],
    ids=["source", "target", "scale", "order"],
)
def test_as_many_items_of_other_names_are_another_release(
    tmp_path: Path, domains: TwoDomains, mode: str, other: Any
) -> None:
    with curator(tmp_path, domains, budget=ROOMY, subject="people") as holder:
        holder.release(1.0, mode=mode, request_id="monday")
        first = told(holder.release(1.0, mode=mode))
        assert charges(holder) == 2
    changed = other(domains)
    with curator(tmp_path, changed, budget=ROOMY, subject="people") as holder:
        with pytest.raises(Conflict, match="before"):
            holder.release(1.0, mode=mode, request_id="monday")
        made = holder.release(1.0, mode=mode)
        assert charges(holder) == 3
        assert (made.source, made.target) == tuple(
            tuple(part.catalogue.ids.tolist()) for part in (changed.source, changed.target)
        )
        assert made.scale == (changed.source.scale.low, changed.source.scale.high)
        assert told(made) != first


def _renamed(both: TwoDomains, source: int = 0, target: int = 0) -> TwoDomains:
    """The last item has another id; how many there are, and all places, are the same."""
    parts = []
    for part, by in ((both.source, source), (both.target, target)):
        ids = part.catalogue.ids.copy()
        ids[-1] += 1_000 * by
        parts.append(replace(part, catalogue=replace(part.catalogue, ids=ids)))
    return TwoDomains(*parts)


# ---- all of the budget


@pytest.mark.parametrize("accounting", [None, "basic", "zcdp"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("epsilon", [2.0, 0.3])
def test_epsilon_may_be_the_whole_budget(
    tmp_path: Path, domains: TwoDomains, accounting: str | None, mode: str, epsilon: float
) -> None:
    budget = Budget(epsilon, 1e-6)
    with curator(tmp_path, domains, accounting=accounting, budget=budget) as holder:
        made = holder.release(epsilon, 1e-6, mode=mode)
        assert made.guarantee.protects == ONE_USER
        terms = holder.statement().terms
        assert terms.accounting is (Accounting.ZCDP if accounting == "zcdp" else Accounting.BASIC)
        if made.guarantee.delta:
            assert made.guarantee.epsilon <= epsilon
        assert holder.statement().windows[0].left.amount <= 1  # nothing to speak of is left
        with pytest.raises(BudgetExhausted):
            holder.release(0.1, 1e-6, mode=mode)


@pytest.mark.parametrize("accounting", ["basic", "zcdp"])
def test_so_may_a_delta_that_no_ledger_counts_exactly(tmp_path: Path, domains: TwoDomains, accounting: str) -> None:
    budget = Budget(2 / 3, 1e-6 / 3)
    for mode in MODES:
        with curator(tmp_path, domains, accounting=accounting, budget=budget, ledger=tmp_path / mode) as holder:
            assert holder.release(budget.epsilon, budget.delta, mode=mode).guarantee.delta <= budget.delta


def test_few_draws_may_be_the_whole_of_a_budget_that_adds_up_by_rho(tmp_path: Path, domains: TwoDomains) -> None:
    source = domains.source.catalogue.ids.tolist()[:1]
    with curator(tmp_path, domains, accounting="zcdp", budget=Budget(2.0, 1e-6)) as holder:
        made = holder.release(2.0, 1e-6, mode="prs_valid", sources=source)
        assert made.guarantee.delta == 0.0
        assert 0.5 < made.guarantee.epsilon < 1.0  # what a rho of .07 affords one draw
        assert holder.statement().windows[0].left.amount <= 2


def test_the_default_budget_is_one_release_at_epsilon_2(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains) as holder:
        model = holder.release()
        assert holder.statement().terms.budgets == (Budget(2.0, 1e-6),)
        assert model.guarantee.epsilon == pytest.approx(2.0)
        assert model.guarantee.delta == 1e-6
        assert model.guarantee.loss is not None
        assert (model.guarantee.loss.kind, round(model.guarantee.loss.value, 6)) == (LossKind.GAUSSIAN, 0.448335)
    with curator(tmp_path, domains) as holder:  # and it is agreed, not asked again
        assert holder.statement().terms.budgets == (Budget(2.0, 1e-6),)
        with pytest.raises(BudgetExhausted):
            holder.release(0.1)


def test_a_budget_without_a_delta_has_no_room_for_gaussian_noise(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, budget=Budget(2.0)) as holder:
        with pytest.raises(InvalidParameter, match="needs a budget with a delta"):
            holder.release(1.0)
        assert charges(holder) == 0


def test_a_pure_budget_pays_for_replacements(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, budget=Budget(2.0)) as holder:
        promise = holder.release(2.0, mode="prs_valid").guarantee  # of 15 draws: with a delta they would get more each
        assert (promise.epsilon, promise.delta) == (2.0, 0.0)


def test_it_is_told_whether_a_release_was_drawn_or_sent_again(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, unprotected=["nx"], budget=Budget(4.0, 2e-6)) as holder:
        told = []
        for options in ({}, {}, {"mode": "nx"}, {}, {"request_id": "December"}):
            holder.release(**options)
            told.append(holder.sent_again)
        assert told == [False, True, False, True, False]


# ---- what is promised


@pytest.mark.parametrize("mode", MODES)
def test_the_promise_says_what_it_assumes(tmp_path: Path, mode: str) -> None:
    data = small(np.tile(TABLE, (3, 1)), rated_only=np.ones(3, dtype=np.bool_))
    with curator(tmp_path, data, public_catalogue=True) as holder:
        assert {SERVED, RATED_AT_ALL} <= holder.release(mode=mode).guarantee.assumes
    listed = small(np.tile(TABLE, (3, 1)))
    with curator(tmp_path, listed, ledger=tmp_path / "listed.db") as holder:
        assumes = holder.release(mode=mode).guarantee.assumes
        assert {SERVED, PUBLIC if mode == "moments" else PUBLIC_LISTS} <= assumes
        assert RATED_AT_ALL not in assumes


def test_replayed_noise_promises_nothing_and_is_refused_unless_named(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, noise=ReplayedNoise(1)) as holder, pytest.raises(Exception, match="replayed"):
        holder.release()
    with curator(
        tmp_path, domains, ledger=tmp_path / "b.db", noise=ReplayedNoise(1), unprotected=[ReplayedNoise.caveat]
    ) as holder:
        assert holder.release().guarantee.promises_nothing


def test_what_may_be_too_long_to_be_kept_is_refused_before_it_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domains: TwoDomains
) -> None:
    with curator(tmp_path, domains, budget=ROOMY) as holder:
        for mode in MODES:
            holder.release(1.0, mode=mode)
        longest = max(map(len, stored(holder)))
        monkeypatch.setattr(slate_account, "MOST_BYTES", 2_500)
        for mode in MODES:
            with pytest.raises(InvalidParameter, match="longer than what a ledger keeps"):
                holder.release(1.0, mode=mode, request_id="long")
        assert charges(holder) == 2
        monkeypatch.setattr(
            slate_account, "MOST_BYTES", 3 * longest + 20_000
        )  # not much more is asked for than is needed
        for mode in MODES:
            holder.release(1.0, mode=mode, request_id="long")


# ---- where the ratings lie


class Elsewhere:
    """Totals of rows that lie on other machines: exact, and nothing else."""

    def __init__(self, rows: Any) -> None:
        self._parts, self.asked = [rows[:50], rows[50:]], 0

    def totals(self, of: Any) -> Any:
        self.asked += 1
        return sum(of.totals(part) for part in self._parts)


def test_totals_from_elsewhere_are_charged_and_released_as_rows_are(tmp_path: Path, domains: TwoDomains) -> None:
    listed = BothDomains.of(domains)
    there = Elsewhere(listed.read(5))
    models = []
    for name, read in (("here", listed.read), ("there", lambda least: there)):
        options: Any = {"ledger": tmp_path / name, "noise": ReplayedNoise(5), "unprotected": [ReplayedNoise.caveat]}
        with curator(tmp_path, replace(listed, read=read), **options) as holder:
            models.append(holder.release())
            assert charges(holder) == 1
    assert there.asked == 2
    assert told(models[0]) == told(models[1])


def test_wrong_totals_are_not_told_of(tmp_path: Path, domains: TwoDomains) -> None:
    class Short:
        def totals(self, of: Any) -> Any:
            return np.zeros(3, dtype=np.int64)

    elsewhere = replace(BothDomains.of(domains), read=lambda least: Short())
    with curator(tmp_path, elsewhere) as holder, pytest.raises(Conflict, match="used up"):
        holder.release()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("mode", MODES)
def test_no_rating_makes_a_release_fail(tmp_path: Path, domains: TwoDomains, value: float, mode: str) -> None:
    values = domains.source.values.copy()
    values[:5] = value
    with curator(tmp_path, TwoDomains(replace(domains.source, values=values), domains.target)) as holder:
        assert holder.release(mode=mode).guarantee.epsilon <= 2.0


@pytest.mark.parametrize("mode", MODES)
def test_nobody_at_all_is_no_reason_to_fail_or_to_warn(tmp_path: Path, domains: TwoDomains, mode: str) -> None:
    nobody = TwoDomains(
        domains.source.select_users(np.zeros(0, dtype=np.int64)),
        domains.target.select_users(np.zeros(0, dtype=np.int64)),
    )
    with curator(tmp_path, nobody) as holder:
        made = holder.release(mode=mode)
    assert isinstance(made, TransferModel | Replacements)


# ---- one domain, or two


def test_slates_are_of_one_domain_and_releases_of_two(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains) as holder:
        for ask in (
            lambda: holder.slate(3, 0.1),
            lambda: holder.plan(3, 0.1),
            lambda: holder.popularity(0.1),
            lambda: holder.similarity(0.1),
            lambda: holder.items,
        ):
            with pytest.raises(InvalidParameter, match="holds two domains"):
                ask()
        assert charges(holder) == 0
    with curator(tmp_path, domains.source, ledger=tmp_path / "one.db") as holder:
        with pytest.raises(InvalidParameter, match="holds one domain"):
            holder.release()
        assert holder.slate(2, 0.1)


@pytest.mark.parametrize("options", [{"features": np.ones((15, 2))}, {"most_likes": 3.0}], ids=str)
def test_what_belongs_to_slates_is_refused_for_two_domains(tmp_path: Path, domains: TwoDomains, options: Any) -> None:
    with pytest.raises(InvalidParameter, match="belong to slates"):
        curator(tmp_path, domains, **options)


@pytest.mark.parametrize("options", [{"catalogues": ([1], [2])}, {"public_catalogue": True}], ids=str)
def test_what_belongs_to_two_catalogues_is_refused_where_there_is_one_or_both_are_known(
    tmp_path: Path, domains: TwoDomains, options: Any
) -> None:
    for data in (domains.source, BothDomains.of(domains)):
        with pytest.raises(InvalidParameter, match="catalogues"):
            curator(tmp_path, data, **options)
    assert not (tmp_path / "curator.db").exists()


def test_public_lists_are_what_a_release_speaks_of(tmp_path: Path, domains: TwoDomains) -> None:
    with curator(tmp_path, domains, catalogues=([1, 2, 77], [16, 99])) as holder:
        model = holder.release()
        assert (model.source, model.target) == ((1, 2, 77), (16, 99))
    for wrong in (([1, 2],), [1], {"a": 1}):
        with curator(tmp_path, domains, catalogues=wrong) as holder, pytest.raises(InvalidParameter, match="catalogue"):
            holder.release()


def test_two_scales_are_refused_at_once(tmp_path: Path, domains: TwoDomains) -> None:
    other = replace(domains.target, scale=tacit.data.Scale(0.0, 10.0))
    with pytest.raises(InvalidParameter, match="one scale"):
        curator(tmp_path, TwoDomains(domains.source, other))
    assert not (tmp_path / "curator.db").exists()


def test_a_curator_without_a_ledger_is_refused(domains: TwoDomains) -> None:
    with pytest.raises(InvalidParameter, match=r"ledger='curator\.db'"):
        Curator(domains)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"mode": "magic"}, "mode must be one of 'moments', 'prs_valid', 'published', 'nx'"),
        ({"colour": 3}, "has no option 'colour'; its options are"),
        ({"post": "magic"}, "post must be one of"),
        ({"settings": 3}, "TransferSettings"),
        ({"settings": TransferSettings.for_scale(1.0, 5.0)}, "scale"),
        ({"settings": TransferSettings.for_scale(0.5, 5.0), "users": 3}, "users"),
        ({"least": 0}, "least must"),
        ({"users": 0}, "users must"),
        ({"request_id": ""}, "a request_id must"),
        ({"request_id": "x" * 101}, "a request_id must"),
        ({"mode": "prs_valid", "sources": []}, "at least one item"),
        ({"mode": "prs_valid", "candidates": []}, "at least one item"),
        ({"mode": "prs_valid", "least": 0}, "least must"),
        ({"mode": "prs_valid", "edges": 0}, "edges must"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_before_the_charge(
    tmp_path: Path, domains: TwoDomains, options: dict[str, Any], match: str
) -> None:
    noise = CountedNoise()
    with curator(tmp_path, domains, noise=noise) as holder:
        with pytest.raises(InvalidParameter, match=match):
            holder.release(**options)
        assert (charges(holder), noise.draws) == (0, 0)


def test_one_ledger_may_be_shared_and_stays_open(tmp_path: Path, domains: TwoDomains) -> None:
    with PrivacyLedger.create(tmp_path / "ledger.db") as ledger:
        with Curator(domains, ledger=ledger, subject="people") as holder:
            holder.release()
        assert ledger.statement("people").charges == 1
