"""What a curator of two domains was charged and keeps."""

import json
from typing import Any

from tacit.curator import Curator
from tacit.ledger import Budget

ROOMY = Budget(100.0, 1e-4)
MODES = ("moments", "prs_valid")


def charges(holder: Curator) -> int:
    return holder.statement().charges


def stored(holder: Curator) -> list[bytes]:
    return [one.content for one in holder.ledger.stored(holder.statement().subject)]


def told(message: Any) -> str:
    return json.dumps(message.to_json(), sort_keys=True)
