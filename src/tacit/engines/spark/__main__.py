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

_AGAIN = "\nthis is the same release as before, whatever the table holds now. To release new ratings, give a new --request-id"
_EXAMPLES = """examples:
  python -m tacit.engines.spark similarities ratings.parquet --out films --scale 1 5 --most-each 1000
  python -m tacit.engines.spark x-sim films --out films
  python -m tacit.engines.spark moments ratings.parquet --items items.parquet --scale 1 5 --epsilon 2 --delta 1e-6 \\
      --subject readers --ledger curator.db --out model.json

on a cluster, with tacit installed where its Python runs:
  spark-submit --master spark://... "$(python -c 'import tacit.engines.spark.__main__ as m; print(m.__file__)')" moments ...
"""
_RATINGS = "Parquet: user, item, value, and optionally time"
_BUDGET = "the budget of all releases together, agreed with the first one (2 1e-6)"
_LEAST = f"the fewest ratings of a user that count in a domain ({LEAST_RATINGS})"
_POST = "the model made of the sums (factors)"
_ENDS = ("LOW", "HIGH")


def main(arguments: Sequence[str] | None = None, session: SparkSession | None = None) -> int:
    """Runs one command and returns its exit status. It stops a session that it started, but not one that you pass."""
    options = parser().parse_args(arguments)
    own_session = None
    try:
        if session is None:
            session = own_session = _start_session(options)
        sys.stdout.write(f"{options.command(session, options)}\n")
    except InvalidParameter as wrong_call:
        return _report(str(wrong_call), 2)
    except (TacitError, OSError) as failure:
        return _report(str(failure), 1)
    except (PySparkException, Py4JError) as failure:  # its message may quote rows
        condition = failure.getCondition() if isinstance(failure, PySparkException) else None
        return _report(f"Spark failed ({condition or type(failure).__name__}); see Spark's logs.", 1)
    finally:
        if own_session is not None:
            own_session.stop()
    return 0


def _start_session(options: argparse.Namespace) -> SparkSession:
    """The session of ``spark-submit``, or a new one on this machine."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return SparkSession.builder.appName("tacit").getOrCreate()
    progress = {"spark.ui.showConsoleProgress": "true"} if sys.stderr.isatty() else None
    return local_session(options.workers, memory=options.memory, checkpoints=options.checkpoints, further=progress)


def _report(message: str, status: int) -> int:
    sys.stderr.write(f"tacit: {' '.join(message.split())}\n")
    return status


def similarities(session: SparkSession, options: argparse.Namespace) -> str:
    """Computes edges from ratings, and the layer of each item."""
    scale = None if options.scale is None else Scale(*options.scale)
    table = ratings_table(read_table(session, options.ratings))
    ratings = cleaned(table, scale, least=options.least, clip=options.clip).persist()
    coded_items = items_of(ratings)
    similar = edges(with_codes(ratings, coded_items), shrink=options.shrink, most_each=options.most_each)
    items = layers(similar, coded_items.frame, coded_items.n_source)
    ratings.unpersist()
    write_table(similar, f"{options.out}/edges")
    write_table(items, f"{options.out}/items")
    if not items.where(items["layer"] == int(Layer.BRIDGE)).limit(1).count():
        sys.stderr.write("tacit: no user rated items of both domains, so there are no paths between them.\n")
    return f"{similar.count():,} edges of {coded_items.n_items:,} items: {options.out}/edges, {options.out}/items"


def extend(session: SparkSession, options: argparse.Namespace) -> str:
    """Computes X-SIM from edges, and the replacement of each source item that has one."""
    items = read_table(session, f"{options.similarities}/items")
    known_edges = read_table(session, f"{options.similarities}/edges").select(*EDGE)
    n_source = items.where(items["domain"] == SOURCE).count()
    pairs = x_sim(pruned(known_edges, items, n_source, options.k, options.by))
    write_table(_with_ids(pairs, items), f"{options.out}/x_sim")
    write_table(_with_ids(replacements(pairs), items), f"{options.out}/replacements")
    return f"X-SIM of {pairs.count():,} pairs: {options.out}/x_sim, {options.out}/replacements"


def moments(session: SparkSession, options: argparse.Namespace) -> str:
    """Charges a ledger, draws one private release, and writes the model made of it."""
    _require_file(options.out, options.ledger)
    _require_lasting(session, options.ledger)
    scale = Scale(*options.scale)
    epsilon, delta = positive("epsilon", options.epsilon), probability("delta", options.delta)
    budget = None if options.budget is None else Budget(epsilon=options.budget[0], delta=options.budget[1])
    items = coded(read_table(session, options.items))
    source, target = items.catalogues()
    rows = SparkRows(read_table(session, options.ratings), items, options.least)
    domains = BothDomains(source, target, scale, lambda _: rows, options.subject)
    curator = Curator(domains, ledger=options.ledger, budget=budget, subject=options.subject)
    try:
        rows.ready()  # before the charge: an error during the draw would use it up, because it may reveal the draw
        names = ("request_id", "least", "post", "users")
        model: Any = curator.release(epsilon, delta, **{name: getattr(options, name) for name in names})
        again = curator.sent_again
    finally:
        curator.close()
        rows.forget()
    return f"{model.save(options.out)}: {model!r}{_AGAIN if again else ''}"


def _require_file(out: str, ledger: str) -> None:
    """Checks, before anything is charged, that the model can be written and would not replace the ledger."""
    path = Path(out).absolute()
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidParameter("--out must name a file in a folder that exists and can be written.")
    if os.path.realpath(path) == os.path.realpath(ledger):
        raise InvalidParameter("--out and --ledger name the same file; name two.")


def _require_lasting(session: SparkSession, ledger: str) -> None:
    """Raises InvalidParameter for a ledger that would vanish with its container: every run would start with a fresh budget.

    On Kubernetes Spark sets the driver to client mode even in cluster mode; the setting submitInDriver then shows it.
    """
    is_transient = session.conf.get("spark.submit.deployMode", "client") == "cluster"
    is_transient |= session.conf.get("spark.kubernetes.submitInDriver", "false") == "true"
    if "://" not in ledger and is_transient:
        raise InvalidParameter(
            "in cluster mode the driver's files do not last, so a ledger in a file would start with a fresh budget each time. "
            "Use --deploy-mode client, or a ledger on PostgreSQL, --ledger postgresql://..."
        )


def _with_ids(pairs: DataFrame, items: DataFrame) -> DataFrame:
    """The pairs with the ids of items instead of their codes."""
    for side in ("source", "target"):
        ids = items.select(items["code"].alias(side), items["item"].alias(f"{side}_item"))
        pairs = pairs.join(ids, side)
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
    for add in (_add_similarities, _add_x_sim, _add_moments):
        local = add(modes).add_argument_group("on this machine (spark-submit has its own options)")
        local.add_argument("--workers", type=int, default=2, metavar="N", help="the number of threads (2)")
        local.add_argument("--memory", default="2g", metavar="SIZE", help="memory of the driver and its threads (2g)")
        local.add_argument(
            "--checkpoints", metavar="FOLDER", help="keep intermediate results in this folder, not in memory"
        )
    return arguments


def _add_similarities(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("similarities", help="edges between items, and the items' layers; no privacy")
    part.set_defaults(command=similarities)
    part.add_argument("ratings", help=f"{_RATINGS}; domain: 'source' or 'target'")
    part.add_argument("--out", required=True, metavar="FOLDER", help="the folder for the tables edges and items")
    part.add_argument("--scale", type=float, nargs=2, metavar=_ENDS, help="ratings outside the scale are an error")
    part.add_argument("--clip", action="store_true", help="move ratings outside the scale to its nearer end")
    part.add_argument("--least", type=int, default=LEAST_RATINGS, metavar="N", help=_LEAST)
    part.add_argument("--most-each", type=int, metavar="N", help="use at most the N latest ratings of a user (all)")
    part.add_argument(
        "--shrink",
        type=int,
        default=SHRINK,
        metavar="W",
        help=f"shrink cosines below W common raters ({SHRINK}; 0: never)",
    )
    return part


def _add_x_sim(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("x-sim", help="X-SIM and replacements, from similarities; no privacy")
    part.set_defaults(command=extend)
    part.add_argument("similarities", help="the folder that `similarities` wrote")
    part.add_argument("--out", required=True, metavar="FOLDER", help="the folder for the tables x_sim and replacements")
    part.add_argument("--k", type=int, default=10, metavar="K", help="the number of edges that an item keeps (10)")
    part.add_argument("--by", choices=("signed", "absolute"), default="signed", help="best by s, or by |s| (signed)")
    return part


def _add_moments(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
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
        "--subject", required=True, metavar="NAME", help="the name of these users in the ledger; always the same name"
    )
    part.add_argument(
        "--request-id", metavar="ID", help="a new id is a new release; the same id gives the same release again"
    )
    part.add_argument("--least", type=int, default=LEAST_RATINGS, metavar="N", help=_LEAST)
    part.add_argument("--out", required=True, metavar="JSON", help="the file of the model")
    return part


if __name__ == "__main__":
    sys.exit(main())
