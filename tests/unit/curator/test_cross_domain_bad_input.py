"""Bad input of two domains, one row each: what is refused, what is cleaned, and what is predicted all the same."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.curator import Curator
from tacit.curator.cross_domain import Transfers
from tacit.curator.cross_domain.domains import union
from tacit.data import COUNTS, MISSING_TIME, STARS, TwoDomains, from_arrays, read_amazon
from tacit.errors import InvalidData, InvalidParameter, RatingOutsideScale
from tacit.models.cross_domain.similarities import edges_of
from tests.unit.curator.cross_domain_world import BY_HAND, TABLE, curator, small

READER = {0: 5.0, 1: 4.0}


def nx(folder: Path, data: Any = None, **options: Any) -> Any:
    with curator(folder, data, unprotected=["nx"]) as holder:
        return holder.release(mode="nx", **{**BY_HAND, **options})


def no_straddlers(folder: Path) -> None:
    table = TABLE.copy()
    table[[2, 3, 6], 1] = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = nx(folder, small(table), base="item")
        assert made.replacements == {}
        assert made.predict(READER) == made.predict({}) == {3: pytest.approx(17 / 6), 4: 3.5, 5: 3.0}
    assert len(caught) == 1


def duplicates(folder: Path) -> None:
    columns = (["a"] * 3, ["i", "i", "j"], [1.0, 2.0, 3.0])
    for times, kept in (([9, 1, 1], [1, 3]), ([5, 5, 5], [2, 3])):
        assert from_arrays(*columns, times, scale=STARS, duplicates="latest").values.tolist() == kept


def constant_raters(folder: Path) -> None:
    """A rater whose ratings are all alike makes no cosine; but two people who like both items make S = 2 of one rater more."""
    table = np.array([[5, 1, 5, 1], [1, 5, 1, 5], [4, 0, 4, 0]])
    plain, more = (edges_of(union(small(part, cut=2))[0], shrink=0) for part in (table[:2], table))
    assert plain.cosine.tolist() == pytest.approx(more.cosine.tolist())
    assert more.significance.sum() == plain.significance.sum() + 2  # items 0 and 2, both ways
    alike = union(small(np.array([[4, 4, 4, 4], [2, 2, 2, 2]]), cut=2))[0]
    assert edges_of(alike, shrink=0).items.size == 0  # norms of 0: no edges at all


def missing_times(folder: Path) -> None:
    made = nx(folder, alpha=1.0)
    profile = {3: 5.0, 4: 2.0}
    without = made.predict(profile, [5])
    assert made.predict(profile, [5], times={}) == without  # all are missing: their age has no effect
    first_missing = made.predict(profile, [5], times={4: 7})
    assert first_missing == made.predict(profile, [5], times={3: 1, 4: 7}) != without  # what is missing sorts first
    assert MISSING_TIME < 1


def outside_the_scale(folder: Path) -> None:
    for value, error in ((7.0, RatingOutsideScale), (np.nan, InvalidData), (np.inf, InvalidData)):
        with pytest.raises(error, match="row 2"):
            from_arrays(["a", "b"], ["i", "i"], [1.0, value], scale=STARS)
    assert from_arrays(["a", "b"], ["i", "i"], [0.0, 7.0], scale=STARS, outside="clip").values.tolist() == [1, 5]


def two_ratings(folder: Path) -> None:
    """Two ratings about their own mean are (x, -x): whoever has no more counts nowhere, unless that is asked for."""
    pairs = np.array([[5, 1, 0, 0], [1, 5, 0, 0], [0, 0, 5, 1], [0, 0, 2, 4]])
    edges = edges_of(union(small(pairs, cut=2))[0], shrink=0)
    assert (edges.cosine <= 0.0).all()
    assert union(small(pairs, cut=2), 3)[0].nnz == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert nx(folder, small(pairs, cut=2), least=5).predict({}) == {2: 3.0, 3: 3.0}  # no rating counts


def item_in_two_domains(folder: Path) -> None:
    domains = small()
    with pytest.raises(InvalidData, match="an item is in both domains"):
        Curator(domains.source, replace(domains.target, catalogue=domains.source.catalogue), folder / "curator.db")
    assert not (folder / "curator.db").exists()


def unknown_domain(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match="source must be movies or books"):
        read_amazon(folder, source="music")
    for wrong in ("music", 3, small()):
        with pytest.raises(InvalidParameter, match=r"Curator\(source, target, ledger='curator\.db'\)"):
            Curator(small().source, wrong, folder / "curator.db")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="TwoDomains"):
        Curator("music", ledger=folder / "curator.db")  # type: ignore[arg-type]


def k_below_one(folder: Path) -> None:
    for options in ({"k": 0}, {"edges": 0}, {"k": 2.5}):
        with pytest.raises(InvalidParameter, match="whole number at least 1"):
            nx(folder, **options)


def refused_budget(epsilon: float, delta: float, match: str) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        with curator(folder) as holder:
            for mode in ("moments", "prs_valid", "nx", "published"):
                with pytest.raises(InvalidParameter, match=match):
                    holder.release(epsilon, delta, mode=mode)
            assert holder.statement().charges == 0

    return check


def empty_alter_ego(folder: Path) -> None:
    made = nx(folder, base="item")
    assert made.alter_ego({2: 5.0}) == {}
    assert made.predict({2: 5.0}) == made.predict({}) == {3: pytest.approx(17 / 6), 4: 3.5, 5: 3.0}


def no_candidate_list(folder: Path) -> None:
    with curator(folder, small(rated_only=np.ones(3, dtype=np.bool_))) as holder:
        for mode in ("moments", "prs_valid"):
            with pytest.raises(InvalidParameter, match="came without a list of items"):
                holder.release(mode=mode)
        assert holder.statement().charges == 0


def no_rating_bounds(folder: Path) -> None:
    with curator(folder, small(scale=COUNTS)) as holder:
        for mode in ("moments", "prs_valid"):
            with pytest.raises(InvalidParameter, match="have no upper bound"):
                holder.release(mode=mode)
        assert holder.statement().charges == 0


def bounds_are_not_taken_from_the_ratings(folder: Path) -> None:
    """The same scale whatever was rated: what is refused, and what is charged, does not depend on the largest rating."""
    for name, most in (("one", 5), ("two", 2)):
        with curator(folder, small(np.minimum(TABLE, most)), ledger=folder / name) as holder:
            assert isinstance(holder._part, Transfers)
            assert holder._part.domains.listed.scale == STARS


ROWS: dict[str, Callable[[Path], None]] = {
    "no straddlers: no replacement, the base, one warning": no_straddlers,
    "duplicates: the latest wins, of equal times the last row": duplicates,
    "constant raters: no similarity, S still counts, no edges of norm 0": constant_raters,
    "missing times: first; all missing: no decay": missing_times,
    "not finite or out of range: an error with its row, or clipped": outside_the_scale,
    "users of two ratings: left out": two_ratings,
    "an item in two domains": item_in_two_domains,
    "an unknown domain": unknown_domain,
    "k below 1": k_below_one,
    "epsilon 0": refused_budget(0.0, 1e-6, "epsilon must"),
    "epsilon below 0": refused_budget(-1.0, 1e-6, "epsilon must"),
    "delta 0": refused_budget(1.0, 0.0, "delta must"),
    "delta 1": refused_budget(1.0, 1.0, "delta must"),
    "an empty alter ego: the base": empty_alter_ego,
    "a private mode without a public list": no_candidate_list,
    "a private mode without rating bounds": no_rating_bounds,
    "bounds are never inferred": bounds_are_not_taken_from_the_ratings,
}


@pytest.mark.parametrize("row", ROWS)
def test_bad_input(tmp_path: Path, row: str) -> None:
    ROWS[row](tmp_path)


def test_users_are_matched_by_their_ids() -> None:
    domains = small(user_ids=np.array([f"u{place}" for place in range(8)]))
    turned = domains.target.select_users(np.arange(7, -1, -1))
    aligned = TwoDomains.align(domains.source, turned)
    assert union(aligned)[0].toarray().tolist() == TABLE.tolist()
