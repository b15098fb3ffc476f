"""One charge, one answer: nothing is read before it is paid for, nothing is drawn twice, and a refusal tells nothing."""

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
from tacit.curator.cross_domain.domains import BothDomains
from tacit.data.pairs import TwoDomains
from tacit.errors import BudgetExhausted, Conflict
from tacit.mechanisms import SYSTEM_NOISE
from tacit.models.cross_domain.transfer import TransferSettings
from tests.unit.curator.cross_domain_charged import MODES, ROOMY, charges, stored, told
from tests.unit.curator.cross_domain_world import curator
from tests.unit.curator.slates_world import CountedNoise, FailingNoise
from tests.unit.curator.test_slates_charging import BrokenNoise

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
        "from tacit.ledger import Budget\n"
        "with Curator(tacit.data.load('synthetic', second_domain=True, users=60, items=12), ledger=sys.argv[1],\n"
        "             budget=Budget(2, 1e-6)) as holder:\n"
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
