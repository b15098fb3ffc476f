"""Classes of items: their numbers, their members, and that they change no result."""

import numpy as np

from tacit.models.items import classes_of


def test_classes_are_numbered_by_their_smallest_item_and_members_ascend() -> None:
    vectors = np.array(
        [[9, 9], [0, 1], [9, 9], [0, 0], [0, 1], [9, 9]]
    )  # sorted by value they would be 2, 1, 2, 0, 1, 2
    classes = classes_of(vectors)
    assert classes.of.tolist() == [0, 1, 0, 2, 1, 0]
    assert classes.sizes.tolist() == [3, 2, 1]
    assert classes.starts.tolist() == [0, 3, 5, 6]
    assert classes.members.tolist() == [0, 2, 5, 1, 4, 3]
    assert classes.first.tolist() == [0, 1, 3]
    assert (len(classes), classes.n_items) == (3, 6)


def test_classes_equal_a_grouping_by_hand() -> None:
    flags = np.random.default_rng(1).random((400, 5)) < 0.4
    groups: dict[tuple[bool, ...], list[int]] = {}  # in the order in which they first appear
    for item, row in enumerate(flags.tolist()):
        groups.setdefault(tuple(row), []).append(item)
    classes = classes_of(flags)
    assert 20 < len(groups) == len(classes) <= 32
    for number, members in enumerate(groups.values()):
        assert classes.members[classes.starts[number] : classes.starts[number + 1]].tolist() == members
        assert classes.first[number] == members[0]
        assert set(classes.of[members].tolist()) == {number}
