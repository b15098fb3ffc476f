"""What carries the messages of the parties: plain files in folders, Flower; what adds up ratings beyond one machine: Spark.

`flower` and `spark` have environments of their own; importing this room needs neither.
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.engines import flower, spark
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.folders import Mailbox
    from tacit.engines.keys import new_key, read_key, read_public
    from tacit.engines.row_files import read_rows
    from tacit.engines.settings import Settings, entity_settings, open_entity, read_catalogue, read_manifest, tuning_of

_HOMES = {
    "coordinator": ["CoordinatorFolder"],
    "folders": ["Mailbox"],
    "keys": ["new_key", "read_key", "read_public"],
    "row_files": ["read_rows"],
    "settings": ["Settings", "entity_settings", "open_entity", "read_catalogue", "read_manifest", "tuning_of"],
}
_MODULES = [
    "flower",
    "spark",
]

__all__ = [
    "CoordinatorFolder",
    "Mailbox",
    "Settings",
    "entity_settings",
    "flower",
    "new_key",
    "open_entity",
    "read_catalogue",
    "read_key",
    "read_manifest",
    "read_public",
    "read_rows",
    "spark",
    "tuning_of",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES, _MODULES)
