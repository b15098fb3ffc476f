"""Running an application: workers, limits of connections, an orderly end."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.errors import InvalidParameter, ServiceFailed
from tacit.service.settings import Settings

SERVER, CURATOR = "tacit.service.server_app:create", "tacit.service.curator_app:create"
_BACKLOG = 2048
_KEEP_ALIVE = 15  # seconds
_METRICS = "PROMETHEUS_MULTIPROC_DIR"  # as the library wants it
# A worker answers one request at a time: threads inside one would take the core from another worker.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def run(application: str, settings: Settings, *, listening: Callable[[int], None] | None = None) -> None:
    """Serves until the process is told to stop; then finishes what is under way. ``listening`` is told the port.

    Workers are processes of their own, started anew if one of them dies. They share the disk, and mapped tables.
    """
    import uvicorn
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from tacit.service import logs

    class Workers(Multiprocess):
        def terminate_all(self) -> None:
            for (
                one
            ) in self.sockets:  # who comes now is refused at once, and does not wait for an answer that never comes
                one.close()
            super().terminate_all()

    for name in _ONE_THREAD:
        os.environ.setdefault(name, "1")
    logs.set_up()
    with _common_metrics(settings.workers):
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
            timeout_graceful_shutdown=settings.grace_seconds,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
        try:
            socket = config.bind_socket()
        except SystemExit:  # uvicorn has logged the reason
            raise InvalidParameter(f"port {settings.port} at {settings.host} is taken, or may not be used.") from None
        if listening is not None:
            listening(socket.getsockname()[1])
        workers = Workers(config, sockets=[socket])
        workers.run()
        if any(one.exitcode == STARTUP_FAILURE for one in workers.processes):
            raise ServiceFailed("the service could not start; the lines above say why.")


@contextmanager
def _common_metrics(workers: int) -> Iterator[None]:
    """A folder in which several workers add up what they count. It has to be named before the library is loaded."""
    if workers == 1 or _METRICS in os.environ:
        yield
        return
    folder = Path(tempfile.mkdtemp(prefix="tacit-metrics-"))
    os.environ[_METRICS] = str(folder)
    try:
        yield
    finally:
        del os.environ[_METRICS]
        shutil.rmtree(folder, ignore_errors=True)
