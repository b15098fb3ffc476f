"""Similarities of items as a table of edges, then layers, paths and X-SIM, all by joins.

An edge has first, second (codes, first < second), cosine, significance and share.

The arithmetic is that of `tacit.models.cross_domain.similarities`, as a join of the ratings with themselves on the
user. The cost is the sum over users of their squared number of ratings: ``most_each`` limits the few users that would
dominate it.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tacit.checks import whole
from tacit.engines.spark.tables import settled
from tacit.models.cross_domain.edges import DIGITS, MIXED, RANGE, ROUNDING, By, checked_order
from tacit.models.cross_domain.similarities import SHRINK, Layer

EDGE = ("first", "second", "cosine", "significance", "share")


def edges(ratings: DataFrame, *, shrink: int = SHRINK, most_each: int | None = None) -> DataFrame:
    """The edges between items, each once, from ratings with user, code, value and time; one for each user and item.

    An edge has a cosine other than 0 and a significance above 0. ``shrink`` is W, 0 for none: min(co-raters, W) / W.
    """
    shrink = whole("shrink", shrink, least=0)
    table = ratings.select("user", "code", "value", "time")
    if most_each is not None:
        table = capped(table, most_each)
    deviations = _deviations(table)
    items = settled(_item_statistics(deviations))
    means = F.broadcast(items.select("code", "mean"))
    likes = (_difference("value", "mean") >= 0.0).alias("likes")
    opinions = deviations.join(means, "code").select("user", "code", "z", likes)
    return settled(_similar_pairs(opinions, items, shrink))


def both_ways(edges: DataFrame) -> DataFrame:
    """Every edge, from both of its ends."""
    turned = edges.select(F.col("second").alias("first"), F.col("first").alias("second"), *EDGE[2:])
    return edges.select(*EDGE).unionByName(turned)


def capped(table: DataFrame, most_each: int) -> DataFrame:
    """At most ``most_each`` ratings of every user, the latest, by the rule of `tacit.models.cross_domain.edges.capped`.

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


def _deviations(table: DataFrame) -> DataFrame:
    """Adds ``z``, the rating minus the mean of the user's profile. Sums of float32 are exact, so their order is free."""
    own = Window.partitionBy("user")
    means = table.withColumn("mean", F.sum("value").over(own) / F.count("*").over(own))
    return means.select("user", "code", "value", _difference("value", "mean").alias("z"))


def _item_statistics(deviations: DataFrame) -> DataFrame:
    return deviations.groupBy("code").agg(
        (F.sum("value") / F.count("*")).alias("mean"),
        F.sqrt(F.sum(F.col("z") * F.col("z"))).alias("norm"),
        F.count("*").alias("raters"),
    )


def _difference(value: str, mean: str) -> Column:
    """Value minus mean, exactly 0 if they differ by rounding only, as in `tacit.models.cross_domain.edges.centred`."""
    gap = F.col(value) - F.col(mean)
    most = (F.abs(F.col(value)) + F.abs(F.col(mean))) * F.lit(ROUNDING)
    return F.when(F.abs(gap) <= most, F.lit(0.0)).otherwise(gap)


def _similar_pairs(opinions: DataFrame, items: DataFrame, shrink: int) -> DataFrame:
    first, second = (
        opinions.select("user", F.col("code").alias(code), F.col("z").alias(z), F.col("likes").alias(likes))
        for code, z, likes in (("first", "z1", "likes1"), ("second", "z2", "likes2"))
    )
    pairs = (
        first.join(second, "user")
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


def layers(edges: DataFrame, items: DataFrame, n_source: int) -> DataFrame:
    """``items`` with the ``layer`` of each (`tacit.models.cross_domain.similarities.Layer`)."""
    ends = both_ways(edges).select("first", "second")
    across = _in_source("first", n_source) != _in_source("second", n_source)
    layer_of = settled(
        ends.where(across).select(F.col("first").alias("code")).distinct().withColumn("layer", _literal(Layer.BRIDGE))
    )
    within = ends.where(~across)
    for inner, outer in ((Layer.BRIDGE, Layer.NEAR), (Layer.NEAR, Layer.FAR)):
        reached = layer_of.where(F.col("layer") == int(inner)).select(F.col("code").alias("second"))
        touching = within.join(reached, "second").select(F.col("first").alias("code")).distinct()
        new = touching.join(layer_of, "code", "left_anti").withColumn("layer", _literal(outer))
        layer_of = settled(layer_of.unionByName(new))
    named = items.select("item", "domain", "code").join(layer_of, "code", "left")
    return settled(named.withColumn("layer", F.coalesce("layer", _literal(Layer.UNREACHABLE))))


def pruned(edges: DataFrame, layers: DataFrame, n_source: int, k: int = 10, by: By = "signed") -> dict[str, DataFrame]:
    """The `tacit.models.cross_domain.similarities.Legs` by name: the k best edges of each item; ties go to the lower
    item."""
    k, by = whole("k", k, least=1), checked_order(by)
    own = layers.select("code", "layer")
    all_edges = settled(
        both_ways(edges)
        .join(own.select(F.col("code").alias("first"), F.col("layer").alias("outer")), "first")
        .join(own.select(F.col("code").alias("second"), F.col("layer").alias("inner")), "second")
        .withColumn("source", _in_source("first", n_source))
        .withColumn("across", _in_source("first", n_source) != _in_source("second", n_source))
    )

    # Equal for two cosines that differ by rounding only, as in `tacit.models.cross_domain.edges.goodness`.
    rounded = F.rint(F.col("cosine") * F.lit(10.0**DIGITS))
    goodness = F.abs(rounded) if by == "absolute" else rounded
    best = Window.partitionBy("first").orderBy(goodness.desc(), "second")

    def leg(outer: Layer, inner: Layer, *, source: bool, across: bool = False) -> DataFrame:
        joins = (F.col("outer") == int(outer)) & (F.col("inner") == int(inner))
        edges = all_edges.where(joins & (F.col("source") == source) & (F.col("across") == across))
        return settled(edges.withColumn("_rank", F.row_number().over(best)).where(F.col("_rank") <= k).select(*EDGE))

    return {
        "far_source": leg(Layer.FAR, Layer.NEAR, source=True),
        "near_source": leg(Layer.NEAR, Layer.BRIDGE, source=True),
        "bridge": leg(Layer.BRIDGE, Layer.BRIDGE, source=True, across=True),
        "near_target": leg(Layer.NEAR, Layer.BRIDGE, source=False),
        "far_target": leg(Layer.FAR, Layer.NEAR, source=False),
    }


def x_sim(legs: dict[str, DataFrame]) -> DataFrame:
    """X-SIM of all pairs that a path joins: source and target (codes of the union), ``x_sim`` and ``certainty``.

    For a path: s_p = sum S_e s_e / sum S_e, c_p = product of the shares; X-SIM = sum c_p s_p / sum c_p.
    """
    bridge = _path_parts(legs["bridge"])
    out = _paths_inward(legs["far_source"], legs["near_source"], bridge.select("first"))
    back = _paths_inward(legs["far_target"], legs["near_target"], bridge.select(F.col("second").alias("first")))
    turned = back.select(F.col("second").alias("first"), F.col("first").alias("second"), *_PARTS)
    paths = _join_paths(_join_paths(out, bridge), turned)
    mean = F.col("certainty") * F.col("weighted") / F.col("weight")
    sums = paths.groupBy(F.col("first").alias("source"), F.col("second").alias("target")).agg(
        F.sum(mean).alias("similar"), F.sum("certainty").alias("certainty")
    )
    value = F.least(F.greatest(F.col("similar") / F.col("certainty"), F.lit(-1.0)), F.lit(1.0))
    return settled(sums.select("source", "target", value.alias("x_sim"), "certainty"))


def replacements(pairs: DataFrame) -> DataFrame:
    """The most similar target item of each source item that has one (X-SIM above 0); ties go to the lower item."""
    good = F.rint(F.col("x_sim") * 10.0**DIGITS)  # 0 if a sum cancels except for rounding
    best = Window.partitionBy("source").orderBy(good.desc(), "target")
    ranked = pairs.where(good > 0).withColumn("_rank", F.row_number().over(best))
    return ranked.where("_rank = 1").drop("_rank")


_PARTS = ("weighted", "weight", "certainty")  # sum S s, sum S and the product of shares along a part of a path


def _path_parts(leg: DataFrame) -> DataFrame:
    weighted = F.col("significance") * F.col("cosine")
    weight = F.col("significance").cast("double")
    return leg.select(
        "first", "second", weighted.alias("weighted"), weight.alias("weight"), F.col("share").alias("certainty")
    )


def _paths_inward(far: DataFrame, near: DataFrame, bridges: DataFrame) -> DataFrame:
    """Parts of paths from every item to the bridges of its domain. They have two edges, one, or none for a bridge itself."""
    no_edge = (
        bridges.distinct()
        .select("first", F.col("first").alias("second"))
        .select("*", F.lit(0.0).alias("weighted"), F.lit(0.0).alias("weight"), F.lit(1.0).alias("certainty"))
    )
    one_edge = _path_parts(near)
    return settled(no_edge.unionByName(one_edge).unionByName(_join_paths(_path_parts(far), one_edge)))


def _join_paths(first: DataFrame, second: DataFrame) -> DataFrame:
    """Every part of a path in ``first``, followed by a part in ``second`` that begins where it ends."""
    parts = (F.col(part).alias(f"{part}_2") for part in _PARTS)
    onward = second.select(F.col("first").alias("second"), F.col("second").alias("end"), *parts)
    return first.join(onward, "second").select(
        "first",
        F.col("end").alias("second"),
        (F.col("weighted") + F.col("weighted_2")).alias("weighted"),
        (F.col("weight") + F.col("weight_2")).alias("weight"),
        (F.col("certainty") * F.col("certainty_2")).alias("certainty"),
    )


def _in_source(end: str, n_source: int) -> Column:
    return F.col(end) < F.lit(n_source)


def _literal(layer: Layer) -> Column:
    return F.lit(int(layer)).cast("byte")
