"""The service: two HTTP applications, one for the server and one for the curator, in two processes.

``server_app`` sees releases only: signals, impressions, released models. ``curator_app`` holds raw ratings. Neither
imports the other. Names are loaded on first use, so importing this package needs no web framework.
"""

from typing import TYPE_CHECKING

from tacit.loading import lazy

if TYPE_CHECKING:
    from tacit.service import curator_app, run, server_app
    from tacit.service.settings import Settings, read_settings
    from tacit.service.versions import Version, publish
else:
    __getattr__, __dir__ = lazy(
        __name__, "curator_app run server_app", settings="Settings read_settings", versions="Version publish"
    )

__all__ = [
    "Settings",
    "Version",
    "curator_app",
    "publish",
    "read_settings",
    "run",
    "server_app",
]
