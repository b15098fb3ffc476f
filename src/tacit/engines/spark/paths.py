"""From edges to X-SIM: layers, the k best edges of each item towards the other domain, and all paths along them, by joins."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tacit.checks import whole
from tacit.engines.spark.edges import EDGE, both_ways
from tacit.engines.spark.session import settled
from tacit.models.cross_domain.edges import DIGITS, By
from tacit.models.cross_domain.layers import Layer
from tacit.models.cross_domain.legs import checked_order


def layers(edges: DataFrame, items: DataFrame, n_source: int) -> DataFrame:
    """``items`` with the ``layer`` of each (`tacit.models.cross_domain.layers.Layer`)."""
    ends = both_ways(edges).select("first", "second")
    across = _in_source("first", n_source) != _in_source("second", n_source)
    found = settled(
        ends.where(across).select(F.col("first").alias("code")).distinct().withColumn("layer", _is(Layer.BRIDGE))
    )
    within = ends.where(~across)
    for inner, outer in ((Layer.BRIDGE, Layer.NEAR), (Layer.NEAR, Layer.FAR)):
        reached = found.where(F.col("layer") == int(inner)).select(F.col("code").alias("second"))
        touching = within.join(reached, "second").select(F.col("first").alias("code")).distinct()
        new = touching.join(found, "code", "left_anti").withColumn("layer", _is(outer))
        found = settled(found.unionByName(new))
    named = items.select("item", "domain", "code").join(found, "code", "left")
    return settled(named.withColumn("layer", F.coalesce("layer", _is(Layer.UNREACHABLE))))


def pruned(edges: DataFrame, layers: DataFrame, n_source: int, k: int = 10, by: By = "signed") -> dict[str, DataFrame]:
    """The legs of `tacit.models.cross_domain.legs.Legs` by name: of each item its k best edges; ties go to the lower item."""
    k, by = whole("k", k, least=1), checked_order(by)
    own = layers.select("code", "layer")
    placed = settled(
        both_ways(edges)
        .join(own.select(F.col("code").alias("first"), F.col("layer").alias("outer")), "first")
        .join(own.select(F.col("code").alias("second"), F.col("layer").alias("inner")), "second")
        .withColumn("source", _in_source("first", n_source))
        .withColumn("across", _in_source("first", n_source) != _in_source("second", n_source))
    )

    def leg(outer: Layer, inner: Layer, *, source: bool, across: bool = False) -> DataFrame:
        places = (F.col("outer") == int(outer)) & (F.col("inner") == int(inner))
        wanted = placed.where(places & (F.col("source") == source) & (F.col("across") == across))
        best = Window.partitionBy("first").orderBy(_goodness(by).desc(), "second")
        return settled(wanted.withColumn("_rank", F.row_number().over(best)).where(F.col("_rank") <= k).select(*EDGE))

    return {
        "far_source": leg(Layer.FAR, Layer.NEAR, source=True),
        "near_source": leg(Layer.NEAR, Layer.BRIDGE, source=True),
        "bridge": leg(Layer.BRIDGE, Layer.BRIDGE, source=True, across=True),
        "near_target": leg(Layer.NEAR, Layer.BRIDGE, source=False),
        "far_target": leg(Layer.FAR, Layer.NEAR, source=False),
    }


def x_sim(legs: dict[str, DataFrame]) -> DataFrame:
    """X-SIM of all pairs that a path joins: source and target (codes of the union), ``x_sim`` and ``certainty``.

    Of a path: s_p = sum S_e s_e / sum S_e, c_p = product of the shares; X-SIM = sum c_p s_p / sum c_p.
    """
    bridge = _edge(legs["bridge"])
    out = _inward(legs["far_source"], legs["near_source"], bridge.select("first"))
    back = _inward(legs["far_target"], legs["near_target"], bridge.select(F.col("second").alias("first")))
    turned = back.select(F.col("second").alias("first"), F.col("first").alias("second"), *_PARTS)
    paths = _joined(_joined(out, bridge), turned)
    mean = F.col("certainty") * F.col("weighted") / F.col("weight")
    sums = paths.groupBy(F.col("first").alias("source"), F.col("second").alias("target")).agg(
        F.sum(mean).alias("similar"), F.sum("certainty").alias("certainty")
    )
    value = F.least(F.greatest(F.col("similar") / F.col("certainty"), F.lit(-1.0)), F.lit(1.0))
    return settled(sums.select("source", "target", value.alias("x_sim"), "certainty"))


def replacements(found: DataFrame) -> DataFrame:
    """The most similar target item of each source item, where one is similar at all (X-SIM above 0); ties: the lower one."""
    good = F.rint(F.col("x_sim") * 10.0**DIGITS)  # 0 where a sum cancels but for its rounding
    best = Window.partitionBy("source").orderBy(good.desc(), "target")
    ranked = found.where(good > 0).withColumn("_rank", F.row_number().over(best))
    return ranked.where("_rank = 1").drop("_rank")


_PARTS = ("weighted", "weight", "certainty")  # sum S s, sum S and the product of shares along a part of a path


def _edge(leg: DataFrame) -> DataFrame:
    weighted = F.col("significance") * F.col("cosine")
    weight = F.col("significance").cast("double")
    return leg.select(
        "first", "second", weighted.alias("weighted"), weight.alias("weight"), F.col("share").alias("certainty")
    )


def _inward(far: DataFrame, near: DataFrame, bridges: DataFrame) -> DataFrame:
    """Parts of paths from every item to the bridges of its domain: none at all from a bridge to itself, one edge, or two."""
    there = bridges.distinct().select("first", F.col("first").alias("second"))
    stay = there.select(
        "first", "second", F.lit(0.0).alias("weighted"), F.lit(0.0).alias("weight"), F.lit(1.0).alias("certainty")
    )
    one = _edge(near)
    return settled(stay.unionByName(one).unionByName(_joined(_edge(far), one)))


def _joined(first: DataFrame, second: DataFrame) -> DataFrame:
    """Every part of a path that ends where one of ``second`` begins, and that one after it."""
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


def _is(layer: Layer) -> Column:
    return F.lit(int(layer)).cast("byte")


def _goodness(by: By) -> Column:
    """Equal where two cosines differ by rounding only, as `tacit.models.cross_domain.edges.goodness`."""
    rounded = F.rint(F.col("cosine") * F.lit(10.0**DIGITS))
    return F.abs(rounded) if by == "absolute" else rounded
