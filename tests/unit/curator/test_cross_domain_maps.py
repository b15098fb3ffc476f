"""NX-Map and X-Map as published, behind a curator: what they give by hand, and that they promise nothing, and say so."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator.cross_domain.x_map import NX, PUBLISHED, Graph, NXMap, PublishedXMap
from tacit.data.pairs import TwoDomains
from tacit.errors import GuaranteeRefused, InvalidInput, InvalidParameter, UnknownName
from tacit.ledger import Budget
from tacit.mechanisms import ReplayedNoise
from tacit.mechanisms.x_map import PublishedReplacement, PublishedSimilarItems, centred, similarities
from tests.unit.curator.cross_domain_world import BY_HAND, TABLE, begin, curator, ratings, small, world
from tests.unit.curator.slates_world import CountedNoise

READER = {0: 5.0, 1: 4.0, 2: 1.0}


def apart() -> TwoDomains:
    """Nobody rated in both."""
    table = TABLE.copy()
    table[[2, 3, 6], 1] = 0
    return small(table)


@pytest.fixture
def nx(tmp_path: Path) -> NXMap:
    with curator(tmp_path, unprotected=["nx"]) as holder:
        return holder.release(mode="nx", **BY_HAND)


def test_replacements_and_alter_ego_are_those_worked_out_by_hand(nx: NXMap) -> None:
    assert nx.replacements == {0: 3, 1: 3}
    assert nx.alter_ego(READER) == {3: 4.5}  # two source items with one image: the mean
    assert nx.alter_ego({**READER, 3: 2.0}) == {3: 2.0}  # her own rating wins
    assert nx.alter_ego({2: 5.0, 99: 1.0, "00": 5.0}) == {}


@pytest.mark.parametrize("mode", ["nx", "published"])
def test_a_profile_that_was_json_in_between_is_the_same_one(tmp_path: Path, mode: str) -> None:
    with curator(tmp_path, unprotected=[mode]) as holder:
        made = holder.release(mode=mode, **({} if mode == "published" else {"significant": 0}), least=1)
    mine, times = {**READER, 4: 2.0}, {0: 1, 1: 2, 2: 3, 4: 4}
    written, at = json.loads(json.dumps(mine)), json.loads(json.dumps(times))
    assert made.predict(written) == made.predict(mine)
    assert made.predict(written, times=at) == made.predict(mine, times=times)
    assert made.recommend(written, 3) == made.recommend(mine, 3)
    assert 4 not in made.recommend(written, 3)
    assert made.alter_ego(written) == made.alter_ego(mine) != {}
    with pytest.raises(InvalidInput, match="two ratings of one item"):
        made.predict({0: 5.0, "0": 4.0})


@pytest.mark.parametrize("wrong", [None, "1", 1.5, True, 2**62, -(2**63) - 1])
def test_a_time_that_is_none_is_refused(nx: NXMap, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number of seconds"):
        nx.predict(READER, times={1: wrong})
    assert nx.predict(READER, times={1: -(2**63)}) == nx.predict(READER, times={99: wrong})
    with pytest.raises(InvalidInput, match="mapping"):
        nx.predict(READER, times=[1])  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["nx", "published"])
def test_where_no_rating_counts_the_middle_of_the_scale_is_expected(tmp_path: Path, mode: str) -> None:
    with curator(tmp_path, unprotected=[mode]) as holder, pytest.warns(UserWarning, match="nobody rated in both"):
        made = holder.release(mode=mode, least=99)
    assert made.predict({}) == {3: 3.0, 4: 3.0, 5: 3.0}
    if mode == "nx":  # a rating is measured against the middle, too
        assert made.predict({0: 4.0}) == {3: 4.0, 4: 4.0, 5: 4.0}


def test_prediction_by_hand(tmp_path: Path) -> None:
    """Item 5 from 3 = 5 (earlier) and 4 = 2, with the items' means as base: s35 .198137, s45 -.558799 on target ratings alone."""
    with curator(tmp_path, unprotected=["nx"]) as holder:
        options: Any = {"base": "item", "shrink": 0.0, "similar": "static", **BY_HAND}
        for alpha, expected in ((0.0, 4.674508), (0.03, 4.670671), (1.0, 4.576927)):
            made = holder.release(mode="nx", alpha=alpha, **options)
            found = made.predict({3: 5.0, 4: 2.0}, [5], times={3: 1, 4: 2})
            assert found == {5: pytest.approx(expected, abs=1e-6)}
        assert holder.statement().charges == 1  # one thing that promises nothing, however often it is made


@pytest.mark.parametrize("significant", [0, 6, None])
def test_similarities_of_a_prediction_count_by_how_many_rated_both(tmp_path: Path, significant: int | None) -> None:
    """Three rated 3 and 5, and as many 4 and 5: fully without a bound, half of six, and 3 / 50 of the default."""
    options: dict[str, Any] = {} if significant is None else {"significant": significant}
    with curator(tmp_path, unprotected=["nx"]) as holder:
        made = holder.release(mode="nx", base="item", least=1, alpha=0.0, **options)
    share = {0: 1.0, 6: 0.5, None: 0.06}[significant]
    first, second = share * 0.198137, share * -0.558799
    moved = (first * (5.0 - 17 / 6) + second * (2.0 - 3.5)) / (first - second + 0.2)
    assert made.predict({3: 5.0, 4: 2.0}, [5]) == {5: pytest.approx(3.0 + moved, abs=1e-5)}


def test_a_reader_of_the_source_is_measured_against_the_source(tmp_path: Path) -> None:
    with (
        curator(tmp_path, apart(), unprotected=["nx"]) as holder,
        pytest.warns(UserWarning, match="nobody rated in both"),
    ):
        made = holder.release(mode="nx", **BY_HAND)
    means = made._table.means()
    average = {item: made.predict({}, [item])[item] for item in (3, 4, 5)}
    told = made.predict({0: 3.5})
    for item in (3, 4, 5):
        assert told[item] == pytest.approx(average[item] + 3.5 - means[0])
    assert made._table.table.shape == (8, 6)
    own = made.predict({3: 3.5}, [5])[
        5
    ]  # a rating of the target is measured against the target: 2.8333, 3.5 and 3 on average
    cosine = 0.198137
    level = 3.5 - means[1]
    expected = average[5] + level + cosine * (3.5 - average[3] - level) / (cosine + 0.2)
    assert own == pytest.approx(expected, abs=1e-5)


def test_without_anybody_in_both_domains_there_is_one_warning_and_the_base(tmp_path: Path) -> None:
    with curator(tmp_path, apart(), unprotected=["nx", "published"]) as holder:
        for mode in ("nx", "published"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = holder.release(mode=mode, **BY_HAND)
                predicted = made.predict(READER)
                made.predict(READER)
            assert [str(one.message)[:26] for one in caught] == ["nobody rated in both domai"]
            assert made.replacements == {}
            assert made.alter_ego(READER) == {}
            base = made.predict({})
            shift = {round(predicted[item] - base[item], 9) for item in predicted}
            assert shift == ({0.0} if mode == "published" else shift)


def test_recommendations_are_the_best_that_are_not_in_the_profile(nx: NXMap) -> None:
    found = nx.predict(READER)
    assert nx.recommend(READER, 2) == tuple(sorted(found, key=lambda item: -found[item])[:2])
    assert 3 not in nx.recommend({**READER, 3: 5.0}, 3)
    for k in (0, 1.5, -1):
        with pytest.raises(InvalidParameter, match="k must"):
            nx.recommend(READER, k)  # type: ignore[arg-type]


def test_a_profile_says_how_its_owner_rates_items(nx: NXMap) -> None:
    with pytest.raises(InvalidInput, match="a profile must be a mapping"):
        nx.predict([3, 4])  # type: ignore[arg-type]
    for wrong in (float("nan"), 5.5, 0.0, "five"):
        with pytest.raises(InvalidInput, match="on the scale, from 1 to 5"):
            nx.predict({0: wrong})  # type: ignore[dict-item]


def test_items_are_asked_for_in_a_list_of_ids_of_the_target(nx: NXMap, tmp_path: Path) -> None:
    assert nx.predict(READER, ["5", 3]) == nx.predict(READER, [5, 3])
    assert list(nx.predict(READER, ["5", 3])) == [5, 3]
    for unknown in (77, "77", "05", 5.0, True, None):
        with pytest.raises(UnknownName, match="an item that you asked for is in neither catalogue"):
            nx.predict(READER, [3, unknown])
    for of_source in (0, 2, "2"):
        with pytest.raises(UnknownName, match="only items of the target are predicted"):
            nx.predict(READER, [3, of_source])
    with curator(tmp_path, ledger=tmp_path / "moments.db") as holder:
        model = holder.release(1.0, 1e-6)
    assert list(model.predict(READER, [5, 3])) == [5, 3]
    for made in (nx, model):
        for single in (5, "5", b"5", 5.0):
            with pytest.raises(InvalidInput, match="items must be a list of ids"):
                made.predict(READER, single)  # type: ignore[arg-type]


# ---- what promises nothing


@pytest.mark.parametrize(("mode", "promise"), [("nx", NX), ("published", PUBLISHED)])
def test_what_promises_nothing_is_refused_unless_it_was_agreed_by_name(tmp_path: Path, mode: str, promise: Any) -> None:
    with curator(tmp_path) as holder:
        with pytest.raises(GuaranteeRefused, match=rf"unprotected=\['{mode}'\]"):
            holder.release(mode=mode)
        assert holder.statement().charges == 0
    other = "published" if mode == "nx" else "nx"
    with (
        curator(tmp_path, ledger=tmp_path / "other.db", unprotected=[other]) as holder,
        pytest.raises(GuaranteeRefused),
    ):
        holder.release(mode=mode)
    with curator(tmp_path, ledger=tmp_path / "named.db", unprotected=[mode]) as holder:
        made = holder.release(mode=mode, **BY_HAND)
        assert made.guarantee == promise
        assert made.guarantee.promises_nothing
        assert "no guarantee" in repr(made)
        assert holder.statement().charges == 1
        assert holder.statement().promised.promises_nothing


def test_it_leaves_the_whole_budget_to_what_promises_something(tmp_path: Path) -> None:
    with curator(tmp_path, world(80, 12), unprotected=["nx"], budget=Budget(1.0, 1e-6)) as holder:
        holder.release(mode="nx")
        assert holder.release(1.0, 1e-6).guarantee.epsilon <= 1.0


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("nx", {"k": 0}),
        ("nx", {"similar": "some"}),
        ("nx", {"base": "none"}),
        ("nx", {"alpha": -1.0}),
        ("nx", {"shrink": float("nan")}),
        ("nx", {"edges": 0}),
        ("nx", {"significant": -1}),
        ("nx", {"by": "size"}),
        ("nx", {"least": 0}),
        ("nx", {"replacement_epsilon": 1.0}),
        ("published", {"replacement_epsilon": 0.0}),
        ("published", {"similar_epsilon": -1.0}),
        ("published", {"rho": 1.0}),
        ("published", {"kept": 0}),
        ("published", {"k": 0}),
        ("published", {"alpha": -0.1}),
    ],
    ids=str,
)
def test_settings_are_refused_before_anything_is_noted(tmp_path: Path, mode: str, options: dict[str, Any]) -> None:
    with curator(tmp_path, unprotected=["nx", "published"]) as holder:
        with pytest.raises(InvalidParameter):
            holder.release(mode=mode, **options)
        assert holder.statement().charges == 0


# ---- as published


def published(folder: Path, **options: Any) -> PublishedXMap:
    noise = options.pop("noise", ReplayedNoise(3))
    named = ["published", ReplayedNoise.caveat]
    with curator(folder, world(), unprotected=named, noise=noise) as holder:
        made = holder.release(mode="published", **options)
    assert isinstance(made, PublishedXMap)
    return made


def test_published_replacements_with_much_epsilon_are_those_of_nx(tmp_path: Path) -> None:
    made = published(tmp_path, replacement_epsilon=1e6, significant=0)
    with curator(tmp_path, world(), ledger=tmp_path / "nx.db", unprotected=["nx"]) as holder:
        plain = holder.release(mode="nx", significant=0).replacements
    agree = [made.replacements.get(item) == target for item, target in plain.items()]
    assert len(agree) > 20
    assert np.mean(agree) >= 0.9  # it ranks by |X-SIM|, so that a strongly dissimilar item may be among ten


def test_published_noise_is_drawn_once_for_each_item_and_kept(tmp_path: Path) -> None:
    noise = CountedNoise()
    made = published(tmp_path, noise=noise, k=5)
    reader = dict.fromkeys(list(made.replacements)[:10], 4.0)
    items = made._table.target.ids.tolist()
    first, draws = made.predict(reader, items[:6]), noise.draws
    assert made.predict(reader, items[:6]) == first
    assert noise.draws == draws
    assert {item: made.predict(reader)[item] for item in items[:6]} == first
    assert noise.draws > draws


def test_published_noise_matters(tmp_path: Path) -> None:
    reader = dict.fromkeys(range(1, 12), 4.0) | {1: 1.0}
    small_noise = published(tmp_path, replacement_epsilon=1e6, similar_epsilon=1e6).predict(reader)
    large_noise = published(tmp_path, replacement_epsilon=1e6, similar_epsilon=1e-3).predict(reader)
    apart = [abs(small_noise[item] - large_noise[item]) for item in small_noise]
    assert np.mean(apart) > 0.1
    assert all(0.5 <= value <= 5.0 for value in large_noise.values())


def test_published_prediction_is_the_papers_formula(tmp_path: Path) -> None:
    """mean_i + sum s (r - mean_j) / sum |s| over the drawn items that the profile has."""
    made = published(tmp_path, k=8)
    items, target = made._items.means, made._table.target
    reader = {int(item): 5.0 if item % 2 else 2.0 for item in target.ids[:30]}
    for code, item in enumerate(target.ids[30:].tolist(), start=30):
        found = made.predict(reader, [item])[item]
        chosen, cosine = made._drawn[code]
        own = [(s, reader[int(target.ids[j])] - items[j]) for j, s in zip(chosen, cosine, strict=True) if j < 30]
        offset = sum(s * d for s, d in own) / sum(abs(s) for s, _ in own) if own else 0.0
        assert found == pytest.approx(np.clip(items[code] + offset, 0.5, 5.0))


@pytest.mark.parametrize(("alpha", "expected"), [(0.0, 4.674508), (None, 4.670671), (1.0, 4.576927)])
def test_published_predictions_weigh_ratings_by_their_age(tmp_path: Path, alpha: float | None, expected: float) -> None:
    """As by hand above: with so much epsilon that no noise is left. By default alpha is .03."""
    options: dict[str, Any] = {} if alpha is None else {"alpha": alpha}
    with curator(tmp_path, unprotected=["published"]) as holder:
        made = holder.release(mode="published", similar_epsilon=1e9, least=1, **options)
    assert made.predict({3: 5.0, 4: 2.0}, [5], times={3: 1, 4: 2}) == {5: pytest.approx(expected, abs=1e-6)}
    assert made.predict({3: 5.0, 4: 2.0}, [5]) == {5: pytest.approx(4.674508, abs=1e-6)}  # no times, no age


def test_what_is_not_said_is_as_the_paper_has_it(tmp_path: Path) -> None:
    made = published(tmp_path)
    assert made._replacement == PublishedReplacement(epsilon=0.3, kept=10)
    assert made._similar == PublishedSimilarItems(k=50, epsilon=0.8, rho=0.1, lowest=0.0)


def test_by_default_any_of_the_ten_strongest_comes_as_a_replacement(tmp_path: Path) -> None:
    ranks = set()
    for seed in range(4):
        made = published(tmp_path, noise=ReplayedNoise(seed), edges=40)  # so that X-SIM is known of more than ten
        held = made._table
        strength = np.abs(Graph(edges=40).x_sim(held.table, held.n_source).values.toarray())
        ranks |= {int((strength[item] > strength[item, made._codes[item]]).sum()) for item in range(held.n_source)}
    assert ranks == set(range(10))


def test_by_default_similarities_have_noise_of_their_sensitivity_by_half_of_the_epsilon(tmp_path: Path) -> None:
    """Laplace noise of scale SS / .4 is as large on average; 40 items with up to 39 others each."""
    made = published(tmp_path)
    made.predict({})
    exact, sizes = similarities(centred(made._table.table[:, made._table.n_source :]), np.arange(40)), []
    for item, (others, cosine) in made._drawn.items():
        scale = np.maximum(exact.sensitivity[item, others], 0.0) / 0.4
        noise = np.abs(cosine - exact.cosine[item, others])
        assert noise[scale == 0.0].tolist() == pytest.approx([0.0] * int((scale == 0.0).sum()), abs=1e-12)
        sizes.extend((noise[scale > 0.0] / scale[scale > 0.0]).tolist())
    assert len(sizes) > 800
    assert np.mean(sizes) == pytest.approx(1.0, abs=0.15)


def test_ratings_that_lie_elsewhere_have_no_map(tmp_path: Path) -> None:
    from tacit.curator.cross_domain.domains import BothDomains

    both = BothDomains.of(small())
    with curator(tmp_path, both, unprotected=["nx", "published"]) as holder:
        for mode in ("nx", "published", "prs_valid"):
            with pytest.raises(InvalidParameter, match="use mode 'moments'"):
                holder.release(mode=mode)
        assert holder.statement().charges == 0


def test_ratings_known_by_rating_alone_may_be_mapped_inside(tmp_path: Path) -> None:
    hidden = np.ones(3, dtype=np.bool_)
    with curator(tmp_path, small(rated_only=hidden), unprotected=["nx"]) as holder:
        assert holder.release(mode="nx", **BY_HAND).replacements == {0: 3, 1: 3}


def test_two_domains_may_be_given_as_two_sets_of_ratings(tmp_path: Path) -> None:
    from tacit.curator import Curator

    films, books = ratings(TABLE[:, :3], 0, "films"), ratings(TABLE[:, 3:], 3, "books")
    with Curator(films, books, begin(tmp_path / "curator.db"), unprotected=["nx"]) as holder:
        assert holder.release(mode="nx", **BY_HAND).replacements == {0: 3, 1: 3}
        assert holder.statement().subject == "users of books and films"
        assert repr(holder) == "Curator('films and books': two domains)"
