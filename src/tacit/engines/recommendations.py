"""An entity's recommendations in a file of its own: readable by its owner only, never a message."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tacit.entity import Entity
from tacit.entity.blend import BlendedFit
from tacit.entity.local_fit import LocalFit
from tacit.messages.private_slates_parts import Item

_ROWS = 1024


def write_best(file: Path, entity: Entity, fit: LocalFit | BlendedFit, catalogue: Sequence[Item], top: int) -> int:
    """Each user's best items that she does not have yet, best first: user, place, item, score. Returns the number of users."""
    users, table = entity.users(), entity.table()
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as content:
            rows = csv.writer(content)
            rows.writerow(["user", "place", "item", "score"])
            for first in range(0, len(users), _ROWS):
                part = slice(first, first + _ROWS)
                scores = fit.scores(users=part)
                own = table[part]
                scores[np.repeat(np.arange(len(scores)), np.diff(own.indptr)), own.indices] = -np.inf
                for user, values in zip(users[part], scores, strict=True):
                    best = np.argsort(-values, kind="stable")[:top]
                    rows.writerows(
                        (user, place, catalogue[item], f"{values[item]:.6g}")
                        for place, item in enumerate(best.tolist(), 1)
                        if np.isfinite(values[item])
                    )
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    return len(users)
