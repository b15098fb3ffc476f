"""What Prometheus may read: counts and times by route, never by caller, item or signal.

With several workers each keeps its numbers in a file of a common folder (PROMETHEUS_MULTIPROC_DIR), and any of them adds all up.
"""

import os

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from tacit.service.common_metrics import FOLDER, forget

_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

REGISTRY = CollectorRegistry()
SECONDS = Histogram(
    "tacit_request_seconds", "Time of requests.", ("route", "method", "status"), buckets=_BUCKETS, registry=REGISTRY
)
SETTLED = Counter("tacit_settled_total", "What became of reports.", ("outcome",), registry=REGISTRY)
OFFERS = Counter("tacit_offers_total", "Offers that are on the disk.", registry=REGISTRY)
TOGETHER = Histogram(
    "tacit_commit_size",
    "Requests in one transaction.",
    ("what",),
    buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500),
    registry=REGISTRY,
)
SWAPS = Counter(
    "tacit_model_swaps_total", "New versions of the model that were taken up, or not.", ("outcome",), registry=REGISTRY
)
MODEL = Gauge(
    "tacit_model_published_seconds",
    "When the version that is served was published, seconds since 1970.",
    multiprocess_mode="livemin",  # of several workers the one that is behind
    registry=REGISTRY,
)
ENGAGED = Counter("tacit_engagements_total", "What became of reported clicks.", ("outcome",), registry=REGISTRY)
PAID = Counter(
    "tacit_releases_total", "Releases that a curator sent, the first time or again.", ("kind",), registry=REGISTRY
)


def exposition() -> tuple[bytes, str]:
    """All metrics as text, and its content type."""
    if FOLDER not in os.environ:
        return generate_latest(REGISTRY), CONTENT_TYPE_LATEST
    everyone = CollectorRegistry()
    MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
    return generate_latest(everyone), CONTENT_TYPE_LATEST


def leave() -> None:
    """Of a worker that ends."""
    forget(os.getpid())
