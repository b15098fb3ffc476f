"""One coding of the items of both domains, the source first, ascending by id: codes as on one machine."""

from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from tacit.data.catalogue import Catalogue
from tacit.engines.spark.session import settled
from tacit.engines.spark.tables import SOURCE, TARGET, items_table, require_same_kind
from tacit.errors import InvalidData


@dataclass(frozen=True, eq=False, repr=False)
class Items:
    """``frame`` has item, domain and code; codes below ``n_source`` are of the source."""

    frame: DataFrame
    n_source: int
    n_items: int

    def __repr__(self) -> str:
        return f"Items({self.n_source} source, {self.n_items - self.n_source} target)"

    def catalogues(self) -> tuple[Catalogue, Catalogue]:
        """Both lists on the driver. They are read, not derived from ratings: ask for them where they are public only."""
        found: dict[str, list[int | str]] = {SOURCE: [], TARGET: []}
        for row in self.frame.orderBy("code").collect():
            found[row["domain"]].append(row["item"])
        return Catalogue(np.array(found[SOURCE])), Catalogue(np.array(found[TARGET]))


def coded(listed: DataFrame) -> Items:
    """The items of a list, in any order. An item in both domains, an unknown domain or an item without id is refused."""
    table = items_table(listed).distinct()
    _require_places(table)
    by_id = Window.partitionBy("domain").orderBy("item")
    sizes = {row["domain"]: row["count"] for row in table.groupBy("domain").count().collect()}
    n_source = sizes.get(SOURCE, 0)
    first = F.when(F.col("domain") == TARGET, F.lit(n_source)).otherwise(F.lit(0))
    frame = table.withColumn("code", (F.row_number().over(by_id) - 1 + first).cast("int"))
    return Items(frame, n_source, n_source + sizes.get(TARGET, 0))


def items_of(ratings: DataFrame) -> Items:
    """All items that somebody rated. Which these are is private: not for a release that promises something."""
    return coded(settled(ratings.select("item", "domain").distinct()))


def with_codes(ratings: DataFrame, items: Items) -> DataFrame:
    """Ratings with the ``code`` of their item; those of items that are not listed are left out."""
    require_same_kind("item", ratings, items.frame)
    return ratings.drop("domain").join(F.broadcast(items.frame), "item")


def _require_places(table: DataFrame) -> None:
    known = F.coalesce(F.col("domain").isin(SOURCE, TARGET), F.lit(False))
    found = table.agg(F.max(~known).alias("unknown"), F.max(F.col("item").isNull()).alias("nameless")).first()
    if found is not None and found["nameless"]:
        raise InvalidData("a row has no item.")
    if found is not None and found["unknown"]:
        raise InvalidData(f"a row has another domain than {SOURCE!r} or {TARGET!r}.")
    require_apart(table)


def require_apart(table: DataFrame) -> None:
    """Refuses an item in both domains, whoever rated it there and how often."""
    domains = table.where(F.col("item").isNotNull()).select("item", "domain").distinct()
    if domains.groupBy("item").count().where("count > 1").limit(1).count():
        raise InvalidData("an item is in both domains; each must be in one.")
