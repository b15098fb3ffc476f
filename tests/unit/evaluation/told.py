"""A small result and a small demonstration for the tests of pages: every kind of row, claim and guarantee once."""

from tacit.evaluation.curve import Better
from tacit.evaluation.demonstration.demonstration import Demonstration, Figure, Kind, Way
from tacit.evaluation.result import Claim, Result, Row, sizes
from tacit.guarantees import ONE_USER, Guarantee, pure

HOSTILE = "<script>alert(1)</script>"


def result() -> Result:
    at = {"epsilon": 0.1}
    rows = (
        *sizes({"users": 4832, "items": 3706}),
        Row("tempered slate", at, "popularity", 0.97, 0.002, 60),
        Row("tempered slate", {"epsilon": 0.03}, "popularity", 0.44, 0.016, 60),
        Row("reference:tempered slate", at, "popularity", 0.96),
        Row("paper:tempered slate", at, "popularity", 0.5),
        Row("natural slate", at, "popularity", 0.09, 0.007, 60),
        Row("top-k", {"epsilon": "inf"}, "popularity", 1.0),
        Row("uniform", {"epsilon": 0.0}, "popularity", 0.07, 0.005, 60),
        Row("paper:alone", at, "popularity", 0.123),
        Row("shares", {"at": 1.0}, "popularity, cumulative", 0.5),
        Row(HOSTILE, at, "coverage", 0.25, 0.01, 60),
    )
    claims = (
        Claim("A Paper", "it is private", False, "it is not"),
        Claim("A Paper", "it is useful", True, "it is"),
        Claim("tacit", "ours is better", True, "by 2"),
        Claim("reference figures", "near", True, "0.01"),
        Claim("reference figures", "far", False, "0.2"),
    )
    guarantees = {
        "published, epsilon=1.0": Guarantee(float("inf"), ONE_USER, assumes=frozenset({"a step has no proof"})),
        "tempered slate, epsilon=0.1": pure(0.1, ONE_USER),
        "tempered slate, epsilon=0.03": pure(0.03, ONE_USER),
    }
    notes = (f"Counted otherwise than published, {HOSTILE}.",)
    return Result("private-slates", "small-world", rows, claims, guarantees, 7, notes)


def demonstration() -> Demonstration:
    private = Way(
        "tempered", Kind.PRIVATE, 1.0, {"popularity": Figure(0.9, 0.01), "diversity": Figure(0.6)}, "genres are public"
    )
    plain = Way("not private", Kind.PLAIN, float("inf"), {"popularity": Figure(1.0)}, "all likes")
    nothing = Way("uniform", Kind.NOTHING, 0.0, {"popularity": Figure(0.05, 0.01)})
    return Demonstration(
        "private-slates",
        "A curator shows items that many like.",
        (("the slate", f"ten films, {HOSTILE}"),),
        pure(1.0, ONE_USER),
        "ten item ids",
        "all ratings",
        "curator: 1 charged, 1 epsilon in all",
        "popularity",
        "share of the most liked",
        Better.HIGHER,
        (nothing, private, plain),
        private,
        plain,
        nothing,
        "Nearly as popular as without privacy.",
        {"slate": [1, 2, 3]},
    )
