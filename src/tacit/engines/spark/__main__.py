"""``python -m tacit.engines.spark similarities | x-sim | moments``, on this machine or, as a file, with
``spark-submit``.

The commands read Parquet and write Parquet, or a model as JSON.

Exit status: 0 done, 1 the work failed (one line on standard error), 2 the call was wrong.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tacit.checks import positive, probability
from tacit.curator import Curator
from tacit.curator.cross_domain.domains import BothDomains
from tacit.curator.cross_domain.moments import Post
from tacit.data.ratings import Scale
from tacit.engines.spark.rows import SparkRows
from tacit.engines.spark.similarities import EDGE, edges, layers, pruned, replacements, x_sim
from tacit.engines.spark.tables import (
    SOURCE,
    cleaned,
    coded,
    items_of,
    local_session,
    ratings_table,
    read_table,
    with_codes,
    write_table,
)
from tacit.errors import InvalidParameter, TacitError
from tacit.ledger import Budget
from tacit.models.cross_domain.similarities import SHRINK, Layer
from tacit.models.cross_domain.transfer import LEAST_RATINGS

_AGAIN = (
    "\nthe same release as before, whatever the table holds now. For a release of new ratings, give a new --request-id"
)
_EXAMPLES = """examples:
  python -m tacit.engines.spark similarities ratings.parquet --out films --scale 1 5 --most-each 1000
  python -m tacit.engines.spark x-sim films --out films
  python -m tacit.engines.spark moments ratings.parquet --items items.parquet --scale 1 5 --epsilon 2 --delta 1e-6 \\
      --subject readers --ledger curator.db --out model.json

on a cluster, with tacit installed where its Python runs:
  spark-submit --master spark://... "$(python -c 'import tacit.engines.spark.__main__ as m; print(m.__file__)')" moments ...
"""
_RATINGS = "Parquet: user, item, value, and optionally time"
_BUDGET = "the budget of all releases, agreed with the first one (2 1e-6)"
_LEAST = f"the fewest ratings of a user that count in a domain ({LEAST_RATINGS})"
_POST = "the model made of the sums (factors)"
_ENDS = ("LOW", "HIGH")


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Runs one command and returns its exit status. A session that it starts is stopped at the end; a given one is
    not."""
    asked = parser().parse_args(arguments)
    own = None
    try:
        if session is None:
            session = own = _session(asked)
        sys.stdout.write(f"{asked.command(session, asked)}\n")
    except InvalidParameter as wrong_call:
        return _failed(str(wrong_call), 2)
    except (TacitError, OSError) as failure:
        return _failed(str(failure), 1)
    except (PySparkException, Py4JError) as failure:  # its message may quote rows
        condition = failure.getCondition() if isinstance(failure, PySparkException) else None
        return _failed(f"Spark failed ({condition or type(failure).__name__}); see Spark's logs.", 1)
    finally:
        if own is not None:
            own.stop()
    return 0


def _session(asked: argparse.Namespace) -> SparkSession:
    """The session of ``spark-submit``, or a new one on this machine."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.appName("tacit").getOrCreate()
    progress = {"spark.ui.showConsoleProgress": "true"} if sys.stderr.isatty() else None
    return local_session(asked.workers, memory=asked.memory, checkpoints=asked.checkpoints, further=progress)


def _failed(message: str, status: int) -> int:
    sys.stderr.write(f"tacit: {' '.join(message.split())}\n")
    return status


def similarities(session: SparkSession, asked: argparse.Namespace) -> str:
    """Computes edges from ratings, and the layer of each item."""
    scale = None if asked.scale is None else Scale(*asked.scale)
    table = ratings_table(read_table(session, asked.ratings))
    ratings = cleaned(table, scale, least=asked.least, clip=asked.clip).persist()
    items = items_of(ratings)
    similar = edges(with_codes(ratings, items), shrink=asked.shrink, most_each=asked.most_each)
    placed = layers(similar, items.frame, items.n_source)
    ratings.unpersist()
    write_table(similar, f"{asked.out}/edges")
    write_table(placed, f"{asked.out}/items")
    if not placed.where(placed["layer"] == int(Layer.BRIDGE)).limit(1).count():
        sys.stderr.write("tacit: no user rated items of both domains, so there are no paths between them.\n")
    return f"{similar.count():,} edges of {items.n_items:,} items: {asked.out}/edges, {asked.out}/items"


def extend(session: SparkSession, asked: argparse.Namespace) -> str:
    """Computes X-SIM from edges, and the replacement of each source item that has one."""
    placed = read_table(session, f"{asked.similarities}/items")
    known_edges = read_table(session, f"{asked.similarities}/edges").select(*EDGE)
    n_source = placed.where(placed["domain"] == SOURCE).count()
    pairs = x_sim(pruned(known_edges, placed, n_source, asked.k, asked.by))
    write_table(_named(pairs, placed), f"{asked.out}/x_sim")
    write_table(_named(replacements(pairs), placed), f"{asked.out}/replacements")
    return f"X-SIM of {pairs.count():,} pairs: {asked.out}/x_sim, {asked.out}/replacements"


def moments(session: SparkSession, asked: argparse.Namespace) -> str:
    """Charges a ledger, draws one private release, and writes the model made of it."""
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
        rows.ready()  # before the charge: an error during the draw would use it up, because it may reveal the draw
        options = {"request_id": asked.request_id, "least": asked.least, "post": asked.post, "users": asked.users}
        model: Any = curator.release(epsilon, delta, **options)
        again = curator.sent_again
    finally:
        curator.close()
        rows.forget()
    return f"{model.save(asked.out)}: {model!r}{_AGAIN if again else ''}"


def _require_file(out: str, ledger: str) -> None:
    """Checks, before anything is charged, that the model can be written and would not replace the ledger."""
    path = Path(out).absolute()
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidParameter("--out must name a file in a folder that exists and can be written.")
    if os.path.realpath(path) == os.path.realpath(ledger):
        raise InvalidParameter("--out and --ledger name the same file; name two.")


def _require_lasting(session: SparkSession, ledger: str) -> None:
    """Refuses a ledger that would vanish with its container: every run would start with a fresh budget.

    On Kubernetes the driver in cluster mode is set to client mode, with the setting submitInDriver.
    """
    transient = session.conf.get("spark.submit.deployMode", "client") == "cluster"
    transient |= session.conf.get("spark.kubernetes.submitInDriver", "false") == "true"
    if "://" not in ledger and transient:
        raise InvalidParameter(
            "in cluster mode the driver's files do not last, so a ledger in a file would start with a fresh budget each time. "
            "Use --deploy-mode client, or a ledger on PostgreSQL, --ledger postgresql://..."
        )


def _named(pairs: DataFrame, placed: DataFrame) -> DataFrame:
    """The pairs with the ids of items in place of their codes."""
    for side in ("source", "target"):
        own = placed.select(placed["code"].alias(side), placed["item"].alias(f"{side}_item"))
        pairs = pairs.join(own, side)
    return pairs.select("source_item", "target_item", "x_sim", "certainty")


def parser() -> argparse.ArgumentParser:
    """The arguments of the three commands."""
    arguments = argparse.ArgumentParser(
        "python -m tacit.engines.spark",
        description="Cross-domain similarities and private moments on Spark, from Parquet to Parquet.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    modes = arguments.add_subparsers(required=True, metavar="similarities | x-sim | moments")
    for add in (_similarities, _x_sim, _moments):
        part = add(modes)
        own = part.add_argument_group("on this machine (spark-submit has its own)")
        own.add_argument("--workers", type=int, default=2, metavar="N", help="the number of threads (2)")
        own.add_argument("--memory", default="2g", metavar="SIZE", help="memory of the driver and its threads (2g)")
        own.add_argument(
            "--checkpoints", metavar="FOLDER", help="keep intermediate results in this folder, not in memory"
        )
    return arguments


def _similarities(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("similarities", help="edges between items, and the items' layers; no privacy")
    part.set_defaults(command=similarities)
    part.add_argument("ratings", help=f"{_RATINGS}; domain: 'source' or 'target'")
    part.add_argument("--out", required=True, metavar="FOLDER", help="the folder for the tables edges and items")
    part.add_argument("--scale", type=float, nargs=2, metavar=_ENDS, help="ratings outside the scale are an error")
    part.add_argument("--clip", action="store_true", help="move ratings outside the scale to its nearer end")
    part.add_argument("--least", type=int, default=LEAST_RATINGS, metavar="N", help=_LEAST)
    part.add_argument("--most-each", type=int, metavar="N", help="use only so many ratings of a user, the latest (all)")
    part.add_argument(
        "--shrink",
        type=int,
        default=SHRINK,
        metavar="W",
        help=f"shrink cosines below W common raters ({SHRINK}; 0: never)",
    )
    return part


def _x_sim(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("x-sim", help="X-SIM and replacements, from similarities; no privacy")
    part.set_defaults(command=extend)
    part.add_argument("similarities", help="the folder that `similarities` wrote")
    part.add_argument("--out", required=True, metavar="FOLDER", help="the folder for the tables x_sim and replacements")
    part.add_argument("--k", type=int, default=10, metavar="K", help="the number of edges that an item keeps (10)")
    part.add_argument("--by", choices=("signed", "absolute"), default="signed", help="best by s, or by |s| (signed)")
    return part


def _moments(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("moments", help="one private release, and the model made of it")
    part.set_defaults(command=moments)
    part.add_argument("ratings", help=_RATINGS)
    part.add_argument("--items", required=True, metavar="PARQUET", help="the public list of items: item, domain")
    part.add_argument(
        "--scale", required=True, type=float, nargs=2, metavar=_ENDS, help="public; ratings are clipped to it"
    )
    part.add_argument("--epsilon", type=float, default=2.0, help="the epsilon of this release (2)")
    part.add_argument("--delta", type=float, default=1e-6, help="the delta of this release (1e-6)")
    part.add_argument(
        "--users", type=int, metavar="N", help="a public guess of the number of users; settings depend on it"
    )
    part.add_argument("--post", choices=[post.value for post in Post], default="factors", help=_POST)
    part.add_argument(
        "--ledger", required=True, metavar="FILE", help="the curator's ledger, charged before anything is drawn"
    )
    part.add_argument("--budget", type=float, nargs=2, metavar=("EPSILON", "DELTA"), help=_BUDGET)
    part.add_argument(
        "--subject", required=True, metavar="NAME", help="the name of these users in the ledger: same people, same name"
    )
    part.add_argument(
        "--request-id", metavar="ID", help="a new id is a new release; the same id gives the same release again"
    )
    part.add_argument("--least", type=int, default=LEAST_RATINGS, metavar="N", help=_LEAST)
    part.add_argument("--out", required=True, metavar="JSON", help="the file of the model")
    return part


if __name__ == "__main__":
    sys.exit(main())
