"""Tiny hand-made files in the layout of each data set, and the means to compare ratings."""

from pathlib import Path

import numpy as np
import polars as pl

from tacit.data import Catalogue, Ratings

CSV_RATINGS = "userId,movieId,rating,timestamp\n1,10,4.0,100\n1,30,2.5,110\n7,10,0.5,90\n7,20,5.0,95\n"
CSV_FILMS = (
    "movieId,title,genres\n10,Toy Story (1995),Adventure|Children|Comedy\n"
    '20,"Matrix, The (1999)",Action|IMAX\n30,Quiet (2001),(no genres listed)\n40,Unseen (2002),Drama\n'
)


def write_latest(folder: Path, ratings: str = CSV_RATINGS, films: str | None = CSV_FILMS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "ratings.csv").write_text(ratings)
    if films is not None:
        (folder / "movies.csv").write_text(films)
    return folder


def write_100k(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "u.data").write_text("7\t2\t3\t90\n1\t1\t5\t100\n7\t1\t1\t95\n")
    comedy = "0|0|0|0|0|1" + "|0" * 13
    unknown = "1" + "|0" * 18
    items = f"1|Amélie (2001)|01-Jan-2001||http://x|{comedy}\n2|unknown||||{unknown}\n"
    (folder / "u.item").write_bytes(items.encode("latin-1"))
    (folder / "u.user").write_text("1|24|M|writer|85711\n7|33|F|other|V3N4P\n")
    return folder


def write_1m(folder: Path, *, parquet: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    if parquet:
        frame = {"user_id": [1, 1, 2], "movie_id": [9, 3, 3], "rating": [5, 3, 1], "timestamp": [200, None, 300]}
        types = {"user_id": pl.Int16, "movie_id": pl.Int16, "rating": pl.Int8, "timestamp": pl.Int64}
        pl.DataFrame(frame, schema=types).write_parquet(folder / "ratings.parquet")
    else:
        (folder / "ratings.dat").write_text("1::9::5::200\n1::3::3::100\n2::3::1::300\n")
    films = "3::Héat: Again (1995)::Children's|Crime\n5::Alone (1990)::Drama\n9::War (1991)::War\n"
    (folder / "movies.dat").write_bytes(films.encode("latin-1"))
    (folder / "users.dat").write_text("1::F::1::10::48067\n2::M::56::16::70072-1234\n")
    return folder


def write_pair(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "movies.tsv").write_text("user_id\titem_id\trating\nA1\t00x\t1.0\nA2\t00x\t5.0\nA1\t00x\t2.0\n")
    (folder / "books.tsv").write_text("user_id\titem_id\trating\nA3\t0001\t4.0\nA1\t0001\t3.0\nA1\t0002\t3.0\n")
    return folder


def write_eicu(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    medication = {
        "patientunitstayid": [12, 12, 11, 13, 13, 14],
        "drughiclseqno": [500, 500, 700, 500, None, 700],
        "drugname": [None, "ASPIRIN", None, "ASPIRIN", "SALINE", None],
    }
    pl.DataFrame(medication).write_parquet(folder / "medication.parquet")
    patient = {
        "patientunitstayid": [11, 12, 13, 14],
        "uniquepid": ["002-1", "002-1", "002-2", "002-3"],
        "hospitalid": [73, 56, 56, 80],
    }
    pl.DataFrame(patient).write_parquet(folder / "patient.parquet")
    hospital = {"hospitalid": [56, 73, 80], "region": ["West", "South", None]}
    pl.DataFrame(hospital).write_parquet(folder / "hospital.parquet")
    return folder


def write_open_bandit(folder: Path, **changes: list[object]) -> Path:
    folder.mkdir(exist_ok=True)
    log: dict[str, list[object]] = {
        "timestamp": ["2019-11-24 00:03:13.442536+00:00", "2019-11-24 00:03:36.705207+00:00"],
        "item_id": [1, 0],
        "position": [3, 1],
        "click": [0, 1],
        "propensity_score": [0.5, 0.5],
        "user-item_affinity_0": [0.0, 2.0],
        "user-item_affinity_1": [1.0, 0.0],
        **{f"user_feature_{place}": ["b", "a"] for place in range(4)},
    }
    pl.DataFrame(log | changes).write_parquet(folder / "random_men.parquet")
    context = ",item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3\n0,0,-0.5,x,y,z\n1,1,0.25,w,y,z\n"
    (folder / "item_context_men.csv").write_text(context)
    return folder


def rows(ratings: Ratings) -> list[tuple[object, object, float, int | None]]:
    """Every rating as (user id, item id, value, time), in order."""
    users = ratings.user_ids[ratings.users].tolist()
    items = ratings.catalogue.ids[ratings.items].tolist()
    times = [None] * len(ratings) if ratings.times is None else ratings.times.tolist()
    return list(zip(users, items, ratings.values.tolist(), times, strict=True))


def same(first: Ratings, second: Ratings) -> bool:
    """Equal in everything a file can carry."""
    catalogues = first.catalogue, second.catalogue
    entities = [
        (None if part.entities is None else (part.entities.kind, part.entities.names)) for part in (first, second)
    ]
    return (
        rows(first) == rows(second)
        and first.user_ids.tolist() == second.user_ids.tolist()
        and np.array_equal(catalogues[0].ids, catalogues[1].ids)
        and catalogues[0].titles == catalogues[1].titles
        and catalogues[0].vocabulary == catalogues[1].vocabulary
        and np.array_equal(catalogues[0].genres, catalogues[1].genres)
        and entities[0] == entities[1]
        and (first.entities is None or first.entities.codes.tolist() == second.entities.codes.tolist())
        and (first.scale, first.name, first.provenance) == (second.scale, second.name, second.provenance)
    )


def genres_of(catalogue: Catalogue, code: int) -> tuple[str, ...]:
    """The names of an item's genres."""
    return tuple(catalogue.vocabulary[column] for column in np.flatnonzero(catalogue.genres[code]))
