"""User-based predictions, in the target and by likeness in the source, against loops over people."""

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidParameter
from tacit.evaluation.cross_domain import user_based as module
from tacit.evaluation.cross_domain.remote_user import remote_user
from tacit.evaluation.cross_domain.user_based import user_based
from tests.unit.models.cross_domain.slow_paths import Profile, drawn_ratings, matrix, profiles_of

SCALE = (1.0, 5.0)


def likeness(one: Profile, other: Profile) -> float:
    """The cosine of two profiles, each less its own mean."""
    parts = []
    for profile in (one, other):
        mean = sum(profile.values()) / len(profile) if profile else 0.0
        parts.append({item: value - mean for item, value in profile.items()})
    norms = [math.sqrt(sum(value**2 for value in part.values())) for part in parts]
    if norms[0] < 1e-12 or norms[1] < 1e-12:
        return 0.0
    return sum(parts[0][item] * parts[1][item] for item in parts[0] if item in parts[1]) / (norms[0] * norms[1])


def predict(
    own: Profile,
    tastes: list[Profile],
    target: list[Profile],
    item: int,
    *,
    k: int,
    similar: str,
    never: int | None = None,
) -> float:
    near = {b: likeness(own, taste) for b, taste in enumerate(tastes) if b != never}
    near = {b: t for b, t in near.items() if abs(t) > 1e-12 and (similar == "static" or item in target[b])}
    best = sorted(near, key=lambda b: (-round(near[b], 12), b))[:k]
    used = [b for b in best if item in target[b]]
    if not own:
        rated = [one[item] for one in target if item in one]
        everything = [value for one in target for value in one.values()]
        return sum(rated) / len(rated) if rated else sum(everything) / len(everything)
    mean = sum(own.values()) / len(own)
    if not used:
        return mean
    top = sum(near[b] * (target[b][item] - sum(target[b].values()) / len(target[b])) for b in used)
    return min(max(mean + top / sum(abs(near[b]) for b in used), SCALE[0]), SCALE[1])


def world() -> tuple[Any, Any, Any]:
    """Tastes and target ratings of 25 people, and profiles of 8 users in the items of the tastes, one of them empty."""
    rng = np.random.default_rng(8)
    tastes, target = drawn_ratings(rng, 25, 9, 0.5), drawn_ratings(rng, 25, 7, 0.4)
    asked = matrix([{}, *profiles_of(drawn_ratings(rng, 7, 9, 0.6))], 9)
    return tastes, target, asked


@pytest.mark.parametrize("similar", ["static", "rated"])
@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize("cells", [1, 60, 1 << 20])
def test_predictions_equal_loops(similar: str, k: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", cells)
    tastes, target, asked = world()
    users, items = (part.ravel() for part in np.meshgrid(np.arange(8), np.arange(7)))
    found = user_based(target, tastes).predict(asked, users, items, SCALE, k=k, similar=similar)
    for place, (user, item) in enumerate(zip(users.tolist(), items.tolist(), strict=True)):
        own, people = profiles_of(asked)[user], (profiles_of(tastes), profiles_of(target))
        expected = predict(own, *people, item, k=k, similar=similar)
        assert found[place] == pytest.approx(expected, abs=1e-12)


def test_likeness_is_sought_in_the_ratings_themselves_by_default() -> None:
    _, target, _ = world()
    asked = target[:3]
    plain = user_based(target).predict(asked, [0, 1, 2], [4, 4, 4], SCALE)
    assert plain.tolist() == user_based(target, target).predict(asked, [0, 1, 2], [4, 4, 4], SCALE).tolist()


def test_nobody_is_asked_about_herself() -> None:
    tastes, target, _ = world()
    people = profiles_of(tastes), profiles_of(target)
    alone = user_based(target, tastes).predict(
        tastes, [2, 2], [0, 3], SCALE, k=3, people=np.array([-1, -1, 2, *[-1] * 22])
    )
    expected = [predict(people[0][2], *people, item, k=3, similar="rated", never=2) for item in (0, 3)]
    assert alone == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("similar", ["static", "rated"])
def test_remote_user_asks_people_with_both_domains(similar: str) -> None:
    source, target, _ = world()
    shown = profiles_of(target)
    shown[3] = shown[11] = {}  # in the source alone: asked for, and never asked
    hidden = matrix(shown, 7)
    users, items = [3, 11, 3, 6], [0, 5, 6, 2]
    found = remote_user(source, hidden, users, items, SCALE, k=4, similar=similar)
    tastes = [taste if shown[b] else {} for b, taste in enumerate(profiles_of(source))]
    for place, (user, item) in enumerate(zip(users, items, strict=True)):
        own = profiles_of(source)[user]
        expected = predict(own, tastes, shown, item, k=4, similar=similar, never=user)
        assert found[place] == pytest.approx(expected, abs=1e-12)


def test_nobody_in_both_domains_leaves_the_users_own_mean() -> None:
    source, target = matrix([{0: 4.0, 1: 1.0}, {}], 2), matrix([{}, {0: 5.0, 1: 3.0}], 2)
    assert remote_user(source, target, [0, 0], [0, 1], SCALE).tolist() == [2.5, 2.5]


def test_repr_shows_sizes_only() -> None:
    _, target, _ = world()
    assert repr(user_based(target)) == "UserBased(25 people, 7 items)"


def test_wrong_parameters_are_refused() -> None:
    tastes, target, asked = world()
    ready = user_based(target, tastes)
    for wrong in ({"k": 0}, {"similar": "near"}):
        with pytest.raises(InvalidParameter):
            ready.predict(asked, [0], [0], SCALE, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="same 9 items"):
        ready.predict(target, [0], [0], SCALE)
    with pytest.raises(InvalidParameter, match="same people"):
        user_based(target, asked)
    with pytest.raises(InvalidParameter, match="same users"):
        remote_user(asked, target, [0], [0], SCALE)
    with pytest.raises(InvalidParameter, match="items"):
        ready.predict(asked, [0], [7], SCALE)
