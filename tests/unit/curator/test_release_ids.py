"""Names and digests of releases in the ledger, as version 0.1.0 wrote them: another one would charge the same release twice.

They are digests of the `repr` of public classes (routes, options, mechanisms, settings), so renaming one of these shows here.
"""

from contextlib import closing
from pathlib import Path

from tacit.curator import Curator
from tacit.ledger import Budget
from tests.unit.curator import cross_domain_world, slates_world

MUCH = Budget(1e5, 1e-2)
SLATES = {
    "popularity 63fea0f45bf449c37421e20a1fae4785",
    "popularity ad49beb78e4bb63ed1b9d441de904826",
    "similarity 94400174c623b59502a52888d5cf3b1b",
}
DIGESTS = {
    "slate n": "f8644b932a3895f3378a015cdbd6199ac07f2a2ff480b76bd8b58c50a45ec92b",
    "slate r": "aa80c4b6edc2d74b53b08ac58d8554b7375c24118f7be0538d045496964b0928",
    "slate t": "9b148bae8868aa687a0abee579fcbca4231bf0bdc0797776060f064207f4df18",
    "slate w": "ded7c3f34d43563050e1ed01c44e1f769e00e00563ee8c73402485cdb3d2cecc",
}
TRANSFERS = {
    "moments 0c307427cd83600946bff9db496e67a3",
    "moments b31ebc3c2f284a25d7e6fda685339178",
    "moments cd8151c503e901e7aa40bf5b841d5593",
    "prs_valid 26ed60e99a176e74a67c0a19afd369b9",
    "prs_valid 39c21ec9cc5109b80a622271959def2f",
}
UNPROTECTED = ("nx fbbd46a0e0d889fcd197730adda7a535", "published 7f8998118c5ba833897e83c828cd2d47")


def kept(holder: Curator) -> dict[str, str]:
    """The digest of each release that the ledger keeps, by its id."""
    with closing(holder.ledger.stored(holder.statement().subject)) as releases:
        return {release.release_id: release.content.split(b"\n")[0].decode() for release in releases}


def test_slates_have_the_names_and_digests_of_the_first_version(tmp_path: Path) -> None:
    with slates_world.curator(tmp_path, budget=MUCH) as holder:
        items = holder.items.tolist()
        holder.popularity(0.5)
        holder.popularity(0.5, likes_each=3)
        holder.similarity(0.5, 1e-6)
        holder.slate(3, 0.5, route="counts", slates=None)
        holder.slate(3, 0.5, request_id="r")
        holder.slate(3, 0.5, route="natural", request_id="n", among=items[:6])
        holder.slate(3, 0.5, route="two-stage", candidates=5, request_id="t")
        holder.slate(2, 0.5, request_id="w", request={items[0]: 1.0, items[3]: 0.5, items[5]: 0.5, items[6]: 0.5})
        found = kept(holder)
    assert {release_id for release_id in found if not release_id.startswith("slate")} == SLATES
    assert {name: digest for name, digest in found.items() if name.startswith("slate")} == DIGESTS


def test_releases_of_two_domains_have_the_names_of_the_first_version(tmp_path: Path) -> None:
    with cross_domain_world.curator(tmp_path, cross_domain_world.world(60, 12), budget=MUCH) as holder:
        holder.release()
        holder.release(post="bridge", users=500)
        holder.release(post="alter-egos", least=3)
        holder.release(mode="prs_valid")
        holder.release(mode="prs_valid", sources=[1, 2], candidates=[14, 15], edges=5, by="absolute")
        assert set(kept(holder)) == TRANSFERS


def test_unprotected_releases_have_the_names_of_the_first_version(tmp_path: Path) -> None:
    with cross_domain_world.curator(
        tmp_path, cross_domain_world.world(60, 12), budget=MUCH, unprotected=["nx", "published"]
    ) as holder:
        holder.release(mode="nx")
        holder.release(mode="published")
        subject = holder.statement().subject
        assert holder.ledger.charged(subject, UNPROTECTED) == set(UNPROTECTED)
