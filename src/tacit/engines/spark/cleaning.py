"""One rating for each user and item, the latest; without a user's ratings in a domain where there are too few.

Rows of a distributed table have no order: of several ratings of one item at one time, or without times, the highest counts.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tacit.checks import whole
from tacit.data.scale import Scale
from tacit.engines.spark.items import require_apart
from tacit.engines.spark.tables import SOURCE, TARGET
from tacit.errors import InvalidData, RatingOutsideScale
from tacit.models.cross_domain.settings import LEAST_RATINGS


def cleaned(
    ratings: DataFrame, scale: Scale | None = None, *, least: int = LEAST_RATINGS, clip: bool = False
) -> DataFrame:
    """Ratings with user, item, value, time and domain, for models that promise nothing: what is wrong is refused.

    ``scale``: where ratings must lie; ``clip`` moves those outside to its nearer end, and leaves out what is no number.
    """
    least = whole("least", least, least=1)
    if clip and scale is None:
        raise InvalidData(
            "ratings can be clipped to a scale only: state one, scale=Scale(low, high), on the command line --scale."
        )
    if not clip:
        _require(ratings, scale)
    require_apart(ratings)  # before rows are left out
    return enough(latest(within(ratings, scale) if scale is not None else numbers(ratings)), least)


def numbers(ratings: DataFrame) -> DataFrame:
    """Only rows that say who rated what, with a finite value. Nothing is refused: a refusal would be an answer about rows."""
    return ratings.where(F.col("user").isNotNull() & F.col("item").isNotNull() & _is_finite())


def within(ratings: DataFrame, scale: Scale) -> DataFrame:
    """``numbers``, each moved to the nearer end of the scale where it lies outside."""
    low, high = F.lit(float(scale.low)), F.lit(float(scale.high))
    return numbers(ratings).withColumn("value", F.least(F.greatest("value", low), high))


def latest(ratings: DataFrame) -> DataFrame:
    """One rating for each (user, item): the latest; without a time it is earlier than any; of equal times the highest."""
    newest = Window.partitionBy("user", "item").orderBy(F.col("time").desc_nulls_last(), F.col("value").desc())
    return ratings.withColumn("_place", F.row_number().over(newest)).where("_place = 1").drop("_place")


def enough(ratings: DataFrame, least: int = LEAST_RATINGS) -> DataFrame:
    """Without a user's ratings in a domain where there are fewer than ``least``; those in the other one stay."""
    if least == 1:
        return ratings
    counted = ratings.withColumn("_count", F.count("*").over(Window.partitionBy("user", "domain")))
    return counted.where(F.col("_count") >= least).drop("_count")


def _is_finite() -> Column:
    value = F.col("value")  # no number compares as below infinity but finite ones; NaN is above all in Spark
    return value.isNotNull() & (F.abs(value) < F.lit(float("inf")))


def _require(ratings: DataFrame, scale: Scale | None) -> None:
    fits = _is_finite()
    if scale is not None:
        fits = fits & F.col("value").between(float(scale.low), float(scale.high))
    found = ratings.agg(
        F.max(F.col("user").isNull()).alias("nobody"),
        F.max(F.col("item").isNull()).alias("nothing"),
        F.max(~F.coalesce(F.col("domain").isin(SOURCE, TARGET), F.lit(False))).alias("nowhere"),
        F.max(~F.coalesce(fits, F.lit(False))).alias("outside"),
    ).first()
    if found is None or found["outside"] is None:  # no rows at all
        return
    if found["nobody"] or found["nothing"]:
        raise InvalidData("a row has no user or no item.")
    if found["nowhere"]:
        raise InvalidData(f"a row has another domain than {SOURCE!r} or {TARGET!r}.")
    if found["outside"]:
        allowed = "a finite number" if scale is None else f"on the scale {scale}"
        raise RatingOutsideScale(
            f"a rating is not {allowed}; clip=True, on the command line --clip, moves such ratings to the scale's ends."
        )
