"""The words of ``python -m tacit.engines.spark``."""

import argparse

from tacit.curator.cross_domain_moments import Post
from tacit.engines.spark import commands
from tacit.models.cross_domain.settings import LEAST_RATINGS
from tacit.models.cross_domain.similarities import SHRINK

_EXAMPLES = """examples:
  python -m tacit.engines.spark similarities ratings.parquet --out films --scale 1 5 --most-each 1000
  python -m tacit.engines.spark x-sim films --out films
  python -m tacit.engines.spark moments ratings.parquet --items items.parquet --scale 1 5 --epsilon 2 --delta 1e-6 \\
      --subject readers --ledger curator.db --out model.json

on a cluster, with tacit installed where its Python runs:
  spark-submit --master spark://... "$(python -c 'import tacit.engines.spark.__main__ as m; print(m.__file__)')" moments ...
"""
_RATINGS = "Parquet: user, item, value, and time, which may be missing"
_BUDGET = "of all releases, agreed at the first one (2 1e-6)"
_LEAST = f"of a user's ratings in a domain; where there are fewer, they do not count ({LEAST_RATINGS})"
_POST = "what is made of the sums (factors)"
_ENDS = ("LOW", "HIGH")


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(
        "python -m tacit.engines.spark",
        description="Cross-domain similarities and private moments on Spark, from Parquet to Parquet.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    modes = words.add_subparsers(required=True, metavar="similarities | x-sim | moments")
    for add in (_similarities, _x_sim, _moments):
        part = add(modes)
        own = part.add_argument_group("on this machine (spark-submit has its own)")
        own.add_argument("--workers", type=int, default=2, metavar="N", help="threads (2)")
        own.add_argument("--memory", default="2g", metavar="SIZE", help="of the driver and its threads (2g)")
        own.add_argument("--checkpoints", metavar="FOLDER", help="keep intermediate results there, not in memory")
    return words


def _similarities(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("similarities", help="edges between items, and the items' layers; no privacy")
    part.set_defaults(command=commands.similarities)
    part.add_argument("ratings", help=f"{_RATINGS}; domain: 'source' or 'target'")
    part.add_argument("--out", required=True, metavar="FOLDER", help="for the tables edges and items")
    part.add_argument("--scale", type=float, nargs=2, metavar=_ENDS, help="refuse ratings outside of it")
    part.add_argument("--clip", action="store_true", help="move ratings outside of the scale to its nearer end")
    part.add_argument("--least", type=int, default=LEAST_RATINGS, metavar="N", help=_LEAST)
    part.add_argument("--most-each", type=int, metavar="N", help="of a user's ratings: the latest (all)")
    part.add_argument(
        "--shrink", type=int, default=SHRINK, metavar="W", help=f"common raters of a full cosine ({SHRINK}; 0: any)"
    )
    return part


def _x_sim(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("x-sim", help="X-SIM and replacements, from similarities; no privacy")
    part.set_defaults(command=commands.extend)
    part.add_argument("similarities", help="the folder that `similarities` wrote")
    part.add_argument("--out", required=True, metavar="FOLDER", help="for the tables x_sim and replacements")
    part.add_argument("--k", type=int, default=10, metavar="K", help="edges that an item keeps (10)")
    part.add_argument("--by", choices=("signed", "absolute"), default="signed", help="best by s, or by |s| (signed)")
    return part


def _moments(modes: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    part = modes.add_parser("moments", help="one private release, and the model made of it")
    part.set_defaults(command=commands.moments)
    part.add_argument("ratings", help=_RATINGS)
    part.add_argument("--items", required=True, metavar="PARQUET", help="the public list of items: item, domain")
    part.add_argument("--scale", required=True, type=float, nargs=2, metavar=_ENDS, help="public: clips ratings")
    part.add_argument("--epsilon", type=float, default=2.0, help="of this release (2)")
    part.add_argument("--delta", type=float, default=1e-6, help="of this release (1e-6)")
    part.add_argument("--users", type=int, metavar="N", help="a public guess of how many there are: settings follow it")
    part.add_argument("--post", choices=[one.value for one in Post], default="factors", help=_POST)
    part.add_argument("--ledger", required=True, metavar="FILE", help="what is charged, before anything is drawn")
    part.add_argument("--budget", type=float, nargs=2, metavar=("EPSILON", "DELTA"), help=_BUDGET)
    part.add_argument(
        "--subject", required=True, metavar="NAME", help="who they are in the ledger: same people, same name"
    )
    part.add_argument("--request-id", metavar="ID", help="a new id is a new release; the same one is sent again")
    part.add_argument("--least", type=int, default=LEAST_RATINGS, metavar="N", help=_LEAST)
    part.add_argument("--out", required=True, metavar="JSON", help="the file of the model")
    return part
