"""What ``python -m tacit.engines.spark`` does: three commands that read Parquet and write Parquet, or a model as JSON."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tacit.checks import positive, probability
from tacit.curator import Curator
from tacit.curator.cross_domain_rows import BothDomains
from tacit.data.scale import Scale
from tacit.engines.spark.cleaning import cleaned
from tacit.engines.spark.edges import EDGE, edges
from tacit.engines.spark.items import coded, items_of, with_codes
from tacit.engines.spark.paths import layers, pruned, replacements, x_sim
from tacit.engines.spark.rows import SparkRows
from tacit.engines.spark.tables import SOURCE, ratings_table, read_table, write_table
from tacit.errors import InvalidParameter
from tacit.ledger import Budget
from tacit.models.cross_domain.layers import Layer

_AGAIN = "\nsent again as it was drawn before, whatever the table holds now. For a release of new ratings: --request-id"


def similarities(session: SparkSession, asked: argparse.Namespace) -> str:
    """Ratings to edges, and to items with their layers."""
    scale = None if asked.scale is None else Scale(*asked.scale)
    table = ratings_table(read_table(session, asked.ratings))
    ratings = cleaned(table, scale, least=asked.least, clip=asked.clip).persist()
    items = items_of(ratings)
    found = edges(with_codes(ratings, items), shrink=asked.shrink, most_each=asked.most_each)
    placed = layers(found, items.frame, items.n_source)
    ratings.unpersist()
    write_table(found, f"{asked.out}/edges")
    write_table(placed, f"{asked.out}/items")
    if not placed.where(placed["layer"] == int(Layer.BRIDGE)).limit(1).count():
        sys.stderr.write("tacit: nobody's ratings join the two domains: there will be no paths between them.\n")
    return f"{found.count():,} edges of {items.n_items:,} items: {asked.out}/edges, {asked.out}/items"


def extend(session: SparkSession, asked: argparse.Namespace) -> str:
    """Edges to X-SIM, and to the replacement of each source item that has one."""
    placed = read_table(session, f"{asked.similarities}/items")
    found_edges = read_table(session, f"{asked.similarities}/edges").select(*EDGE)
    n_source = placed.where(placed["domain"] == SOURCE).count()
    found = x_sim(pruned(found_edges, placed, n_source, asked.k, asked.by))
    write_table(_named(found, placed), f"{asked.out}/x_sim")
    write_table(_named(replacements(found), placed), f"{asked.out}/replacements")
    return f"X-SIM of {found.count():,} pairs: {asked.out}/x_sim, {asked.out}/replacements"


def moments(session: SparkSession, asked: argparse.Namespace) -> str:
    """One private release, charged to a ledger, and the model made of it."""
    _require_file(asked.out, asked.ledger)
    _require_lasting(session, asked.ledger)
    scale, epsilon, delta = Scale(*asked.scale), positive("epsilon", asked.epsilon), probability("delta", asked.delta)
    budget = None if asked.budget is None else Budget(epsilon=asked.budget[0], delta=asked.budget[1])
    items = coded(read_table(session, asked.items))
    source, target = items.catalogues()
    rows = SparkRows(read_table(session, asked.ratings), items, asked.least)
    domains = BothDomains(source, target, scale, lambda _: rows, asked.subject)
    curator = Curator(domains, ledger=asked.ledger, budget=budget, subject=asked.subject)
    try:
        rows.ready()  # before the charge: an error while drawing would use it up, as it may tell of what was drawn
        options = {"request_id": asked.request_id, "least": asked.least, "post": asked.post, "users": asked.users}
        model: Any = curator.release(epsilon, delta, **options)
        again = curator.sent_again
    finally:
        curator.close()
        rows.forget()
    return f"{model.save(asked.out)}: {model!r}{_AGAIN if again else ''}"


def _require_file(out: str, ledger: str) -> None:
    """Refuses, before anything is charged, a place where the model could not be written, or that the ledger has."""
    path = Path(out).absolute()
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidParameter("--out must name a file in a folder that exists and can be written.")
    if os.path.realpath(path) == os.path.realpath(ledger):
        raise InvalidParameter("--out and --ledger name the same place; name two.")


def _require_lasting(session: SparkSession, ledger: str) -> None:
    """Refuses a ledger that would go with its container: every run would have a new one, and a budget of its own.

    On Kubernetes the driver of cluster mode is told that it is a client, and that it was submitted in its own place.
    """
    away = session.conf.get("spark.submit.deployMode", "client") == "cluster"
    away |= session.conf.get("spark.kubernetes.submitInDriver", "false") == "true"
    if "://" not in ledger and away:
        raise InvalidParameter(
            "in cluster mode the driver runs in a place that does not last, and a ledger in a file would start anew each time: use "
            "--deploy-mode client, or a ledger on PostgreSQL, --ledger postgresql://..."
        )


def _named(found: DataFrame, placed: DataFrame) -> DataFrame:
    """With the ids of items in place of their codes."""
    for side in ("source", "target"):
        own = placed.select(placed["code"].alias(side), placed["item"].alias(f"{side}_item"))
        found = found.join(own, side)
    return found.select("source_item", "target_item", "x_sim", "certainty")
