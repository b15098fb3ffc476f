"""The similarities of items as a table: first, second (codes, first < second), cosine, significance and share.

As in `tacit.models.cross_domain.similarities`, by a join of the ratings with themselves on the user. Its cost is the sum over
users of the square of their ratings: ``most_each`` cuts the few that would dominate it.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tacit.checks import whole
from tacit.engines.spark.session import settled
from tacit.models.cross_domain.cleaning import MIXED, RANGE
from tacit.models.cross_domain.edges import ROUNDING

EDGE = ("first", "second", "cosine", "significance", "share")


def edges(ratings: DataFrame, *, shrink: int = 50, most_each: int | None = None) -> DataFrame:
    """The edges between items, each once, from ratings with user, code, value and time; one for each user and item.

    An edge has a cosine other than 0 and a significance above 0. ``shrink`` is W, 0 for none: min(co-raters, W) / W.
    """
    shrink = whole("shrink", shrink, least=0)
    table = ratings.select("user", "code", "value", "time")
    if most_each is not None:
        table = capped(table, most_each)
    centred = _centred(table)
    items = settled(_items(centred))
    return settled(_similar(_judged(centred, items), items, shrink))


def both_ways(found: DataFrame) -> DataFrame:
    """Every edge from both of its ends."""
    turned = found.select(F.col("second").alias("first"), F.col("first").alias("second"), *EDGE[2:])
    return found.select(*EDGE).unionByName(turned)


def capped(table: DataFrame, most_each: int) -> DataFrame:
    """At most so many ratings of every user, by the rule of `tacit.models.cross_domain.cleaning.capped`: the latest ones.

    Ties go to the lower item. In a table without any times a fixed mixing of the item's code decides.
    """
    most_each = whole("most_each", most_each, least=1)
    newest = table.agg(F.max("time").alias("time")).first()
    if newest is not None and newest["time"] is not None:
        order = [F.col("time").desc_nulls_last(), F.col("code").asc()]
    else:
        order = [(F.col("code").cast("long") * F.lit(MIXED) % F.lit(RANGE)).asc()]
    ranked = table.withColumn("_rank", F.row_number().over(Window.partitionBy("user").orderBy(*order)))
    return ranked.where(F.col("_rank") <= most_each).drop("_rank")


def _centred(table: DataFrame) -> DataFrame:
    """``z``: the rating less the mean over the user's whole profile. Sums of float32 are exact, so the mean is in any order."""
    own = Window.partitionBy("user")
    means = table.withColumn("mean", F.sum("value").over(own) / F.count("*").over(own))
    return means.select("user", "code", "value", _less("value", "mean").alias("z"))


def _items(centred: DataFrame) -> DataFrame:
    return centred.groupBy("code").agg(
        (F.sum("value") / F.count("*")).alias("mean"),
        F.sqrt(F.sum(F.col("z") * F.col("z"))).alias("norm"),
        F.count("*").alias("raters"),
    )


def _judged(centred: DataFrame, items: DataFrame) -> DataFrame:
    means = F.broadcast(items.select("code", "mean"))
    return centred.join(means, "code").select("user", "code", "z", (_less("value", "mean") >= 0.0).alias("likes"))


def _less(value: str, mean: str) -> Column:
    """The difference, and exactly 0 where it is one of rounding only: as in `tacit.models.cross_domain.centred`."""
    gap = F.col(value) - F.col(mean)
    most = (F.abs(F.col(value)) + F.abs(F.col(mean))) * F.lit(ROUNDING)
    return F.when(F.abs(gap) <= most, F.lit(0.0)).otherwise(gap)


def _similar(judged: DataFrame, items: DataFrame, shrink: int) -> DataFrame:
    one = judged.select("user", F.col("code").alias("first"), F.col("z").alias("z1"), F.col("likes").alias("likes1"))
    two = judged.select("user", F.col("code").alias("second"), F.col("z").alias("z2"), F.col("likes").alias("likes2"))
    pairs = (
        one.join(two, "user")
        .where(F.col("first") < F.col("second"))
        .groupBy("first", "second")
        .agg(
            F.sum(F.col("z1") * F.col("z2")).alias("dot"),
            F.count_if(F.col("likes1") == F.col("likes2")).alias("significance"),
            F.count("*").alias("both"),
        )
        .where("significance > 0")
    )
    for end in ("first", "second"):
        own = items.select(
            F.col("code").alias(end), F.col("norm").alias(f"norm_{end}"), F.col("raters").alias(f"raters_{end}")
        )
        pairs = pairs.join(F.broadcast(own), end)
    cosine, full = F.col("dot") / (F.col("norm_first") * F.col("norm_second")), F.lit(1.0)
    if shrink:
        full = F.least(F.col("both"), F.lit(shrink)) / F.lit(shrink)
    either = F.col("raters_first") + F.col("raters_second") - F.col("both")
    share = F.col("significance") / either
    return (
        pairs.where("norm_first > 0 and norm_second > 0")
        .select("first", "second", cosine.alias("cosine"), "significance", share.alias("share"), full.alias("full"))
        .where(F.abs(F.col("cosine")) > F.lit(ROUNDING))
        .select("first", "second", (F.col("cosine") * F.col("full")).alias("cosine"), "significance", "share")
    )
