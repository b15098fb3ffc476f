"""Rows by what identifies them."""

from typing import TypeAlias

from tacit.evaluation.result import Row, Setting

Key: TypeAlias = tuple[str, str, tuple[tuple[str, int | float | str], ...]]


def key_of(row: Row) -> Key:
    return row.method, row.metric, settled(row.setting)


def settled(setting: Setting) -> tuple[tuple[str, int | float | str], ...]:
    """The setting in one order, whatever order it was written in."""
    return tuple(sorted(setting.items()))
