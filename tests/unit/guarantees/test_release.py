"""What may be derived from a release, and what may not."""

import copy
import pickle

import pytest

from tacit.errors import InvalidGuarantee, MixedUnits
from tacit.guarantees import ONE_PROFILE, ONE_USER, Guarantee, Loss, LossKind, nothing, pure
from tests.releases import release_of

ONE = pure(1.0, ONE_USER)


def test_post_processing_keeps_the_guarantee() -> None:
    release = release_of([3, 1, 2], ONE).map(sorted)
    assert (release.value, release.guarantee) == ([1, 2, 3], ONE)


def test_a_second_release_sees_the_first_and_both_are_paid_for() -> None:
    both = release_of(3, ONE).then(lambda first: release_of(first + 1, pure(0.5, ONE_USER)))
    assert both.value == 4
    assert both.guarantee == ONE.then(pure(0.5, ONE_USER))
    with pytest.raises(MixedUnits):
        release_of(3, ONE).then(lambda first: release_of(first, pure(0.5, ONE_PROFILE)))


def test_assumptions_are_added_unless_nothing_is_promised() -> None:
    assert release_of(1, ONE).assuming("trust").guarantee == ONE.assuming("trust")
    empty = release_of(1, nothing(ONE_USER, "replayed"))
    assert empty.assuming("trust") == empty


def test_a_release_is_stated_under_a_weaker_guarantee_only() -> None:
    weaker = pure(1.5, ONE_USER)
    assert release_of(1, ONE).under(weaker).guarantee == weaker
    assert release_of(1, ONE).under(nothing(ONE_USER, "asked for")).guarantee.promises_nothing
    stronger = (
        pure(0.5, ONE_USER),
        pure(1.0, ONE_PROFILE),
        Guarantee(1.0, ONE_USER, loss=Loss(LossKind.ZCDP, 0.1)),  # ONE has a rho of 0.5
    )
    for stated in stronger:
        with pytest.raises(InvalidGuarantee, match="promises more"):
            release_of(1, ONE).under(stated)
    with pytest.raises(InvalidGuarantee, match="promises more"):
        release_of(1, nothing(ONE_USER, "replayed")).under(ONE)
    with pytest.raises(InvalidGuarantee, match="promises more"):
        release_of(1, Guarantee(1.0, ONE_USER, delta=1e-6)).under(Guarantee(1.0, ONE_USER, delta=1e-7))


def test_a_release_passes_between_processes() -> None:
    release = release_of((1, 2), ONE)
    assert pickle.loads(pickle.dumps(release)) == release == copy.deepcopy(release)
