"""Similarities, layers and X-SIM on Spark are those of one machine."""

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from tacit.engines.spark import similarities
from tacit.engines.spark.similarities import EDGE, capped, edges
from tacit.engines.spark.tables import cleaned, items_of, ratings_table, with_codes
from tacit.models.cross_domain import edges as one_cleaning
from tacit.models.cross_domain.alter_egos import replacements
from tacit.models.cross_domain.similarities import Layer, edges_of, layers, pruned
from tacit.models.cross_domain.x_sim import XSim, x_sim
from tests.spark.world import World, layered, small

ACCURACY = 1e-9


class Found:
    """What Spark finds in a world."""

    def __init__(self, session: SparkSession, world: World, *, shrink: int, most_each: int | None = None) -> None:
        ratings = cleaned(ratings_table(world.frame(session)), least=1)
        self.items = items_of(ratings)
        self.coded = with_codes(ratings, self.items)
        self.edges = edges(self.coded, shrink=shrink, most_each=most_each)
        self.layers = similarities.layers(self.edges, self.items.frame, self.items.n_source)

    def x_sim(self, k: int, by: str = "signed") -> DataFrame:
        return similarities.x_sim(similarities.pruned(self.edges, self.layers, self.items.n_source, k, by))


@pytest.fixture(scope="module")
def tiny(session: SparkSession) -> Found:
    return Found(session, small(), shrink=0)


@pytest.fixture(scope="module")
def deep(session: SparkSession) -> Found:
    return Found(session, layered(), shrink=50)


def columns(frame: DataFrame, *names: str) -> list[np.ndarray]:
    rows = sorted(tuple(row) for row in frame.select(*names).collect())
    return [np.array(column) for column in zip(*rows, strict=True)]


def same_x_sim(found: DataFrame, expected: XSim, n_source: int) -> bool:
    rows, items, values, certainty = columns(found, "source", "target", "x_sim", "certainty")
    stored = expected.values.tocoo()
    return (
        np.array_equal(rows, stored.row)
        and np.array_equal(items - n_source, stored.col)
        and np.allclose(values, stored.data, rtol=0, atol=ACCURACY)
        and np.allclose(certainty, expected.certainty.data, rtol=0, atol=ACCURACY)
    )


def test_the_known_similarities(tiny: Found) -> None:
    first, second, cosine, significance, share = columns(tiny.edges, *EDGE)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [(0, 1), (1, 3), (1, 4), (3, 4), (3, 5), (4, 5)]
    assert np.allclose(cosine, [0.487660, 0.070796, -0.348613, -0.842032, 0.211779, -0.511199], rtol=0, atol=5e-7)
    assert significance.tolist() == [2, 3, 1, 1, 2, 1]  # 0-2 and 1-2 have none: they are no edges
    assert np.allclose(share, [0.4, 0.375, 0.125, 1 / 6, 1 / 3, 1 / 6], rtol=0, atol=1e-12)


def test_the_known_layers_and_x_sim(tiny: Found) -> None:
    _, found = columns(tiny.layers, "code", "layer")
    near, bridge = int(Layer.NEAR), int(Layer.BRIDGE)
    assert found.tolist() == [near, bridge, int(Layer.UNREACHABLE), bridge, bridge, near]
    source, target, values, certainty = columns(tiny.x_sim(10), "source", "target", "x_sim", "certainty")
    assert list(zip(source.tolist(), target.tolist(), strict=True)) == [(i, j) for i in (0, 1) for j in (3, 4, 5)]
    assert np.allclose(values, [0.237541, 0.208902, 0.201423, 0.070796, -0.348613, 0.047604], rtol=0, atol=5e-7)
    assert np.allclose(certainty, [0.15, 0.05, 0.058333, 0.375, 0.125, 0.145833], rtol=0, atol=5e-7)


def test_the_known_x_sim_of_one_edge_each_and_the_known_replacements(tiny: Found) -> None:
    found = tiny.x_sim(1)
    first = {row["target"]: row["x_sim"] for row in found.where("source = 0").collect()}
    assert {item: round(value, 6) for item, value in first.items()} == {3: 0.237541, 5: 0.230181}  # none of 0 and 4
    chosen = similarities.replacements(tiny.x_sim(10)).collect()
    assert {(row["source"], row["target"]) for row in chosen} == {(0, 3), (1, 3)}


def test_edges_and_layers_equal_those_of_one_machine(deep: Found) -> None:
    world = layered()
    table, _ = world.table()
    expected = edges_of(table)
    upper = expected.rows < expected.items
    first, second, cosine, significance, share = columns(deep.edges, *EDGE)
    assert np.array_equal(first, expected.rows[upper])
    assert np.array_equal(second, expected.items[upper])
    assert np.array_equal(significance, expected.significance[upper])
    assert np.allclose(cosine, expected.cosine[upper], rtol=0, atol=ACCURACY)
    assert np.allclose(share, expected.share[upper], rtol=0, atol=ACCURACY)
    _, found = columns(deep.layers, "code", "layer")
    assert np.array_equal(found, layers(expected, world.n_source))
    for side in (found[: world.n_source], found[world.n_source :]):
        assert set(side.tolist()) == {int(layer) for layer in Layer}  # there is something of everything to compare


@pytest.mark.parametrize(("k", "by"), [(10, "signed"), (3, "absolute")])
def test_x_sim_and_replacements_equal_those_of_one_machine(deep: Found, k: int, by: str) -> None:
    world = layered()
    table, _ = world.table()
    found_edges = edges_of(table)
    legs = pruned(found_edges, layers(found_edges, world.n_source), world.n_source, k, by)  # type: ignore[arg-type]
    assert all(leg.first.size for leg in (legs.far_source, legs.near_source, legs.near_target, legs.far_target))
    expected = x_sim(legs, "enumerate")
    found = deep.x_sim(k, by)
    assert expected.values.nnz > 500
    assert same_x_sim(found, expected, world.n_source)
    chosen = replacements(expected)
    rows, items = columns(similarities.replacements(found), "source", "target")
    assert np.array_equal(rows, np.flatnonzero(chosen >= 0))
    assert np.array_equal(items - world.n_source, chosen[chosen >= 0])


@pytest.mark.parametrize("timed", [True, False])
def test_the_cap_keeps_the_ratings_that_one_machine_keeps(session: SparkSession, timed: bool) -> None:
    world = layered(users=60)
    table, times = world.table()
    kept = one_cleaning.capped(table, 5, times if timed else None).tocoo()
    assert kept.nnz < table.nnz
    ratings = ratings_table(world.frame(session, timed=timed))
    found = capped(ratings.withColumnRenamed("item", "code").drop("domain"), 5)
    users, codes, values = columns(found, "user", "code", "value")
    assert [int(user[1:]) for user in users.tolist()] == kept.row.tolist()
    assert np.array_equal(codes, kept.col)
    assert np.array_equal(values, kept.data)


def test_capped_similarities_equal_those_of_one_machine(session: SparkSession) -> None:
    world = layered(users=150)
    table, times = world.table()
    expected = edges_of(table, shrink=10, most_each=4, times=times)
    assert expected.items.size != edges_of(table, shrink=10).items.size
    cosine, significance = columns(Found(session, world, shrink=10, most_each=4).edges, "first", "second", *EDGE[2:4])[
        2:
    ]
    upper = expected.rows < expected.items
    assert np.allclose(cosine, expected.cosine[upper], rtol=0, atol=ACCURACY)
    assert np.array_equal(significance, expected.significance[upper])


def test_a_similarity_that_is_0_but_for_rounding_replaces_nothing(session: SparkSession) -> None:
    rows = [(0, 5, 1.2e-17, 1.0), (1, 5, 4e-13, 1.0), (2, 5, 6e-13, 1.0), (3, 5, -0.5, 1.0)]
    found = session.createDataFrame(rows, "source int, target int, x_sim double, certainty double")
    assert [row["source"] for row in similarities.replacements(found).collect()] == [2]


def test_without_users_in_common_there_are_no_paths(session: SparkSession) -> None:
    world = small()
    apart = ~np.isin(world.users, [2, 3, 6])
    alone = World(world.users[apart], world.items[apart], world.values[apart], world.times[apart], 6, 3)
    found = Found(session, alone, shrink=0)
    assert {row["layer"] for row in found.layers.collect()} == {int(Layer.UNREACHABLE)}
    assert found.x_sim(10).count() == 0
