"""The service: HTTP shells around two parties, as two applications in two processes.

``server_app`` sees releases only: signals, impressions, released models. ``curator_app`` holds raw ratings. Neither imports
the other. Importing this room needs no web framework: its names are loaded when first used.
"""

from typing import TYPE_CHECKING

from tacit.loading import on_demand

if TYPE_CHECKING:
    from tacit.service import curator_app, run, server_app
    from tacit.service.settings import Settings, read_settings
    from tacit.service.versions import Version, publish

_HOMES = {
    "settings": ["Settings", "read_settings"],
    "versions": ["Version", "publish"],
}
_MODULES = [
    "curator_app",
    "run",
    "server_app",
]

__all__ = [
    "Settings",
    "Version",
    "curator_app",
    "publish",
    "read_settings",
    "run",
    "server_app",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, _HOMES, _MODULES)
