"""Engines: plain files and Flower carry the messages of a federation; Spark sums ratings that one machine cannot hold.

`flower` and `spark` need environments of their own. Importing this package needs neither.
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.engines import flower, spark
    from tacit.engines.coordinator import CoordinatorFolder
    from tacit.engines.folders import Mailbox, new_key, read_key, read_public
    from tacit.engines.settings import (
        SettingsFile,
        entity_settings,
        open_entity,
        read_catalogue,
        read_manifest,
        read_rows,
        tuning_of,
    )
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "flower spark",
        coordinator="CoordinatorFolder",
        folders="Mailbox new_key read_key read_public",
        settings="SettingsFile entity_settings open_entity read_catalogue read_manifest read_rows tuning_of",
    )

__all__ = [
    "CoordinatorFolder",
    "Mailbox",
    "SettingsFile",
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
