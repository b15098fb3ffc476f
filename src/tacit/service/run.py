"""Running an application: workers, limits of connections, an orderly end."""

import os
from collections.abc import Callable
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket

from tacit.errors import InvalidParameter, ServiceFailed
from tacit.service.common_metrics import common_folder
from tacit.service.settings import Settings

SERVER, CURATOR = "tacit.service.server_app:create", "tacit.service.curator_app:create"
_BACKLOG = 2048
_KEEP_ALIVE = 15  # seconds
_GETTING_READY = 180  # seconds that a worker may take on a reload: the first one on a machine compiles
# A worker answers one request at a time: threads inside one would take the core from another worker.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run(application: str, settings: Settings, *, listening: Callable[[int], None] | None = None) -> None:
    """Serves until the process is told to stop; then finishes what is under way. ``listening`` is told the port.

    Workers are processes of their own, started anew if one of them dies. They share the disk, and mapped tables.
    """
    import uvicorn

    from tacit.service import logs
    from tacit.service.workers import Workers

    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    logs.set_up()
    with common_folder(settings.workers):
        config = uvicorn.Config(
            application,
            factory=True,
            host=settings.host,
            port=settings.port,
            workers=settings.workers,
            http="tacit.service.connections:Bounded",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=settings.proxies or None,
            backlog=_BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_worker_healthcheck=_GETTING_READY,
            timeout_graceful_shutdown=settings.grace_seconds,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
        bound = _bound(settings.host, settings.port)
        if listening is not None:
            listening(bound.getsockname()[1])
        workers = Workers(config, sockets=[bound])
        workers.run()
        if workers.could_not_start:
            raise ServiceFailed("the service could not start; the lines above say why.")


def _bound(host: str, port: int) -> socket:
    """The socket that all workers share. What is wrong with an address or a port is one line."""
    made = socket(AF_INET6 if ":" in host else AF_INET)
    try:
        made.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        made.bind((host, port))
    except OSError as problem:
        made.close()
        raise InvalidParameter(
            f"the service cannot listen at {host}, port {port} ({problem.strerror or problem}): give another by --host or --port."
        ) from None
    made.set_inheritable(True)
    return made
