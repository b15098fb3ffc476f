"""A batch on the server: which reports count, once; and which of the five conditions it makes sure of, or does without."""

import dataclasses
from pathlib import Path

import pytest

from tacit.device.catalogue import blind
from tacit.errors import Conflict, InvalidMessage, InvalidParameter, UnknownName
from tacit.guarantees import (
    ALL_CONDITIONS,
    ONE_PROFILE,
    ONE_USER_REPLACED,
    Guarantee,
    ShuffleCondition,
    shuffle,
)
from tacit.ledger import ImpressionLedger, MailLedger, Settlement
from tacit.messages.private_selection import Batch, Bounding, Candidate, Impression, Offer, Policy, Rule
from tacit.server.shuffled import (
    BlindTokens,
    OnDisk,
    PlainTokens,
    ShuffledSelection,
    Tokens,
    batch_guarantee,
    local_guarantee,
)
from tests.releases import message_of

CANDIDATES = (Candidate("a", 3.0), Candidate("b", 2.0), Candidate("c", 1.0), Candidate("d", 0.5))
PRICES = (40, 30, 20, 10)
POLICY = Policy(Rule.RR, 4, 1.0)
NOON, LATER = 1_800_000_000, 1_800_003_600
STATED = (ShuffleCondition.ONE_REPORT_EACH, ShuffleCondition.NO_OTHER_PATH)


@pytest.fixture
def ledger(tmp_path: Path):
    with ImpressionLedger.create(tmp_path / "server.db") as opened:
        yield opened


def shop_of(ledger: ImpressionLedger, tokens: Tokens | None = None, at: int = NOON) -> ShuffledSelection:
    shop = ShuffledSelection(ledger, tokens or PlainTokens(), clock=lambda: at * 10**6)
    shop.open("monday", POLICY, CANDIDATES, PRICES, LATER)
    return shop


def batch_of(shop: ShuffledSelection, items: list[str], applied: Policy = POLICY) -> Batch:
    """Reports with the offers' own tokens."""
    offers = [shop.offer("monday") for _ in items]
    reports = sorted(zip((offer.token for offer in offers), items, strict=True))
    return Batch("monday", offers[0].group_under(applied), tuple(reports))


def blind_batch_of(shop: ShuffledSelection, items: list[str]) -> Batch:
    reports = []
    for item in items:
        offer = shop.offer("monday")
        blinded = blind(offer)
        reports.append((blinded.finish(shop.issue("monday", blinded.request)), item))
    return Batch("monday", offer.group_under(POLICY), tuple(sorted(reports)))


class TestSettling:
    def test_a_batch_is_counted_and_priced_exactly(self, ledger: ImpressionLedger):
        settled = (shop := shop_of(ledger)).settle(batch_of(shop, ["a", "a", "c", "d"]))
        assert (settled.settlement, settled.counted, settled.refused, settled.policy) == (Settlement.OK, 4, 0, POLICY)
        assert {one.item: (one.impressions, one.micros) for one in ledger.items()} == {
            "a": (2, 80),
            "c": (1, 20),
            "d": (1, 10),
        }

    def test_a_batch_that_is_sent_again_has_no_effect(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        batch = batch_of(shop, ["a", "b"])
        assert [shop.settle(batch).settlement for _ in range(3)] == ["ok", "duplicate", "duplicate"]
        assert ledger.item("a").impressions == 1

    def test_it_has_none_after_a_restart_either(self, ledger: ImpressionLedger, tmp_path: Path):
        seed = b"s" * 32
        shop = shop_of(ledger, PlainTokens(seed))
        batch = batch_of(shop, ["a", "b"])
        shop.settle(batch)
        again = shop_of(ledger, PlainTokens(seed)).settle(batch)
        assert (again.settlement, again.counted) == (Settlement.DUPLICATE, 2)
        assert ledger.item("a").impressions == 1

    @pytest.mark.parametrize("tokens", [PlainTokens, BlindTokens])
    def test_reports_with_bad_tokens_or_items_that_were_not_offered_are_left_out(
        self, ledger: ImpressionLedger, tokens: type[PlainTokens | BlindTokens]
    ):
        shop = shop_of(ledger, tokens())
        batch = batch_of(shop, ["a", "nothing"]) if tokens is PlainTokens else blind_batch_of(shop, ["a", "nothing"])
        reports = sorted([*batch.reports, ("00" * 16, "a"), ("00" * 96, "b")])
        settled = shop.settle(dataclasses.replace(batch, reports=tuple(reports)))
        assert (settled.settlement, settled.counted, settled.refused) == (Settlement.OK, 1, 3)
        assert [(one.item, one.impressions) for one in ledger.items()] == [("a", 1)]

    def test_tokens_of_another_batch_do_not_count(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        shop.open("tuesday", POLICY, CANDIDATES, PRICES, LATER)
        other = shop.offer("tuesday")
        group = shop.offer("monday").group_under(POLICY)
        own = shop.offer("monday").token
        settled = shop.settle(Batch("monday", group, tuple(sorted([(other.token, "a"), (own, "b")]))))
        assert (settled.counted, settled.refused) == (1, 1)
        assert ledger.item("a").impressions == 0

    def test_a_batch_without_one_good_token_is_not_used_up(self, ledger: ImpressionLedger):
        """A server that was started again with another seed would settle it with nothing, for good."""
        seed = b"s" * 32
        batch = batch_of(shop_of(ledger, PlainTokens(seed)), ["a", "b"])
        with pytest.raises(InvalidMessage, match="another seed"):
            shop_of(ledger, PlainTokens()).settle(batch)
        assert shop_of(ledger, PlainTokens(seed)).settle(batch).counted == 2

    def test_of_a_conflict_nothing_is_said_to_be_counted(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        batch = batch_of(shop, ["a", "b", "c"])
        shop.settle(batch)
        again = shop.settle(dataclasses.replace(batch, reports=batch.reports[:2]))
        assert (again.settlement, again.counted, again.refused) == (Settlement.CONFLICT, 0, 2)

    def test_a_token_counts_in_one_group_only(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        batch = batch_of(shop, ["a", "b"])
        public = dataclasses.replace(batch, group=shop.offer("monday").group_under(POLICY.without_cost()))
        assert shop.settle(batch).settlement is Settlement.OK
        assert shop.settle(public).settlement is Settlement.CONFLICT
        assert ledger.item("a").impressions == 1


class TestTheViewIsFixed:
    def test_offers_of_a_batch_differ_in_their_token_only(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        first, second = shop.offer("monday"), shop.offer("monday")
        assert first.token != second.token
        assert dataclasses.replace(first, token=second.token) == second
        assert first.batch is not None
        assert first.batch.prices == PRICES
        assert len(first.batch.key) == 64

    def test_a_batch_has_one_view(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        shop.open("monday", POLICY, CANDIDATES, PRICES, LATER)
        for policy, candidates, prices, expires in (
            (Policy(Rule.RR, 4, 1.5), CANDIDATES, PRICES, LATER),
            (POLICY, (*CANDIDATES[:3], Candidate("e", 0.5)), PRICES, LATER),
            (POLICY, CANDIDATES, (41, 30, 20, 10), LATER),
            (POLICY, CANDIDATES, PRICES, LATER + 1),
        ):
            with pytest.raises(Conflict, match="other content"):
                shop.open("monday", policy, candidates, prices, expires)
            restarted = ShuffledSelection(ledger, PlainTokens(), clock=lambda: NOON * 10**6)
            with pytest.raises(Conflict, match="other content"):
                restarted.open("monday", policy, candidates, prices, expires)

    def test_one_server_has_one_key_for_a_batch(self, ledger: ImpressionLedger):
        """Another key, from another seed, would split those who are offered the same."""
        shop = shop_of(ledger, BlindTokens())
        shop._tokens = BlindTokens()
        with pytest.raises(Conflict, match="another view"):
            shop.open("monday", POLICY, CANDIDATES, PRICES, LATER)

    def test_the_terms_of_a_batch_are_no_offer_that_could_be_reported(self, ledger: ImpressionLedger):
        shop_of(ledger)
        with pytest.raises(InvalidMessage):
            message_of(Impression, "batch monday", ("a",))
        assert list(ledger.items()) == []

    def test_groups_of_any_other_view_are_refused(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        offer = shop.offer("monday")
        assert offer.batch is not None
        dearer = dataclasses.replace(offer.batch, prices=(41, 30, 20, 10))
        marked = dataclasses.replace(offer.batch, key="ab" * 32)
        for group in (
            dataclasses.replace(offer, batch=dearer).group_under(POLICY),
            dataclasses.replace(offer, batch=marked).group_under(POLICY),
            offer.group_under(Policy(Rule.RR, 4, 2.0)),
            offer.group_under(Policy(Rule.UNIFORM, 4)),
            "0" * 32,
        ):
            with pytest.raises(InvalidMessage, match="does not belong to the batch"):
                shop.settle(Batch("monday", group, ((offer.token, "a"),)))
        assert list(ledger.items()) == []

    def test_unknown_and_finished_batches_offer_nothing(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        request = blind(shop.offer("monday")).request
        with pytest.raises(UnknownName, match="no batch"):
            shop.offer("tuesday")
        late = ShuffledSelection(ledger, shop._tokens, clock=lambda: LATER * 10**6)
        late.open("monday", POLICY, CANDIDATES, PRICES, LATER)
        with pytest.raises(UnknownName, match="over"):
            late.offer("monday")
        with pytest.raises(UnknownName, match="over"):
            late.issue("monday", request)
        shop.issue("monday", request)

    def test_what_the_ledger_cannot_name_is_not_offered(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        with pytest.raises((InvalidMessage, InvalidParameter), match=r"printable|control characters"):
            shop.open("tuesday", Policy(Rule.RR, 2, 1.0), (Candidate("a\nb", 1.0), Candidate("c", 0.0)), (1, 1), LATER)
        with pytest.raises(InvalidParameter, match="printable"):
            shop.open("tues\nday", POLICY, CANDIDATES, PRICES, LATER)


class TestGuarantees:
    """Few reports and a small n_min, so that a batch takes no time; the bound is that of its number of counted reports."""

    ITEMS = ["a", "b", "c", "d"] * 10

    def claim(self, shop: ShuffledSelection, batch: Batch, **change: object) -> Guarantee:
        given = {"delta": 1e-3, "honest_share": 1.0, "stated": STATED, "n_min": 20, **change}
        return shop.guarantee(shop.settle(batch), **given)  # type: ignore[arg-type]

    def test_blind_tokens_and_both_statements_are_amplified(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        found = self.claim(shop, blind_batch_of(shop, self.ITEMS))
        assert found.epsilon == shuffle(1.0, 40, 1e-3, "blanket", 4) < 1.0
        assert (found.delta, found.protects) == (1e-3, ONE_USER_REPLACED)
        assert any("VOPRF(ristretto255, SHA-512) of RFC 9497" in reason for reason in found.assumes)
        assert "the shuffler does not collude with the reader" in found.assumes

    def test_plain_tokens_are_never_amplified(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        found = self.claim(shop, batch_of(shop, self.ITEMS))
        assert (found.epsilon, found.delta, found.protects) == (1.0, 0.0, ONE_PROFILE)
        assert "not amplified: UNLINKABLE_TOKENS not stated" in found.assumes

    @pytest.mark.parametrize("left_out", STATED)
    def test_what_the_operator_does_not_state_is_not_assumed(
        self, ledger: ImpressionLedger, left_out: ShuffleCondition
    ):
        shop = shop_of(ledger, BlindTokens())
        found = self.claim(
            shop, blind_batch_of(shop, self.ITEMS), stated=[one for one in STATED if one is not left_out]
        )
        assert (found.epsilon, found.delta) == (1.0, 0.0)
        assert f"not amplified: {left_out.name} not stated" in found.assumes
        assert not any("VOPRF" in reason for reason in found.assumes)

    @pytest.mark.parametrize("claimed", sorted(ALL_CONDITIONS - set(STATED), key=lambda one: one.name))
    def test_what_the_server_sees_to_cannot_be_stated_instead(
        self, ledger: ImpressionLedger, claimed: ShuffleCondition
    ):
        shop = shop_of(ledger)
        with pytest.raises(InvalidParameter, match="operator's to state"):
            self.claim(shop, batch_of(shop, self.ITEMS), stated=[*STATED, claimed])

    def test_only_counted_reports_are_cover(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        batch = blind_batch_of(shop, self.ITEMS)
        padded = sorted([*batch.reports, *((f"{number:0192x}", "a") for number in range(100))])
        found = self.claim(shop, dataclasses.replace(batch, reports=tuple(padded)))
        assert found.epsilon == shuffle(1.0, 40, 1e-3, "blanket", 4)

    def test_reports_of_the_public_group_are_no_cover_and_cost_nothing(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        batch = blind_batch_of(shop, self.ITEMS[:30])
        offers = [(offer := shop.offer("monday"), blind(offer)) for _ in range(30)]
        reports = sorted((one.finish(shop.issue("monday", one.request)), "a") for _, one in offers)
        public = Batch("monday", offers[0][0].group_under(POLICY.without_cost()), tuple(reports))
        free = self.claim(shop, public)
        assert (free.epsilon, free.delta) == (0.0, 0.0)
        assert self.claim(shop, batch).epsilon == shuffle(1.0, 30, 1e-3, "blanket", 4)
        assert ledger.item("a").impressions == 30 + 8  # counted and billed all the same

    def test_dishonest_reports_are_no_cover(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        found = self.claim(shop, blind_batch_of(shop, self.ITEMS), honest_share=0.75)
        assert found.epsilon == shuffle(1.0, 30, 1e-3, "blanket", 4)

    def test_small_groups_are_billed_and_not_amplified(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        found = self.claim(shop, blind_batch_of(shop, self.ITEMS[:19]))
        assert (found.epsilon, found.delta) == (1.0, 0.0)
        assert "not amplified: fewer than 20 honest reports" in found.assumes
        assert sum(one.impressions for one in ledger.items()) == 19

    def test_a_group_that_was_told_twice_is_not_amplified(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        batch = blind_batch_of(shop, self.ITEMS)
        settled = shop.settle(batch)
        assert shop.settle(dataclasses.replace(batch, reports=batch.reports[1:])).settlement is Settlement.CONFLICT
        found = shop.guarantee(settled, delta=1e-3, honest_share=1.0, stated=STATED, n_min=20)
        assert (found.epsilon, found.delta) == (1.0, 0.0)
        assert any("told twice" in reason for reason in found.assumes)

    def test_nor_is_it_after_a_restart_or_in_another_process(self, ledger: ImpressionLedger, tmp_path: Path):
        """Whoever sends the first version again hears ``duplicate``; what the ledger refused in between stays refused."""
        seed, place = b"s" * 32, tmp_path / "server.db"
        with MailLedger.create(tmp_path / "issued.db") as rows, ImpressionLedger.open(place) as elsewhere:
            shop = shop_of(ledger, BlindTokens(seed, OnDisk(rows)))
            batch = blind_batch_of(shop, self.ITEMS)
            assert self.claim(shop, batch).delta > 0.0
            running = shop_of(elsewhere, BlindTokens(seed, OnDisk(rows)))
            assert self.claim(running, batch).delta > 0.0
            shop.settle(dataclasses.replace(batch, reports=batch.reports[1:]))
            for other in (shop, running, shop_of(elsewhere, BlindTokens(seed, OnDisk(rows)))):
                settled = other.settle(batch)
                found = other.guarantee(settled, delta=1e-3, honest_share=1.0, stated=STATED, n_min=20)
                assert (settled.settlement, settled.counted) == (Settlement.DUPLICATE, 40)
                assert (found.epsilon, found.delta, found.protects) == (1.0, 0.0, ONE_PROFILE)
                assert any("told twice" in reason for reason in found.assumes)

    def test_nor_is_one_whose_first_version_was_refused(self, ledger: ImpressionLedger):
        """A token that was counted in the public group spoils the first version; the second is settled without it."""
        shop = shop_of(ledger, BlindTokens())
        batch = blind_batch_of(shop, self.ITEMS)
        public = shop.offer("monday").group_under(POLICY.without_cost())
        assert shop.settle(Batch("monday", public, batch.reports[:1])).settlement is Settlement.OK
        assert shop.settle(batch).settlement is Settlement.CONFLICT
        found = self.claim(shop, dataclasses.replace(batch, reports=batch.reports[1:]))
        assert (found.epsilon, found.delta) == (1.0, 0.0)

    def test_another_groups_conflict_changes_nothing(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        batch = blind_batch_of(shop, self.ITEMS)
        shop.settle(batch)
        public = shop.offer("monday").group_under(POLICY.without_cost())
        assert shop.settle(Batch("monday", public, batch.reports[:1])).settlement is Settlement.CONFLICT
        assert self.claim(shop, batch).epsilon == shuffle(1.0, 40, 1e-3, "blanket", 4)

    def test_reports_of_a_told_twice_group_add_up(self, ledger: ImpressionLedger):
        shop = shop_of(ledger, BlindTokens())
        batch = blind_batch_of(shop, self.ITEMS[:3])
        shop.settle(batch)
        shop.settle(dataclasses.replace(batch, reports=batch.reports[1:]))
        assert self.claim(shop, batch, reports_each=3).epsilon == 3.0

    def test_the_honest_share_has_to_be_said(self, ledger: ImpressionLedger):
        shop = shop_of(ledger)
        with pytest.raises(TypeError, match="honest_share"):
            shop.guarantee(shop.settle(batch_of(shop, ["a"])), delta=1e-3)  # type: ignore[call-arg]


class TestTheBoundOfABatch:
    GIVEN = {"n": 10_000, "delta": 1e-6, "honest_share": 1.0, "conditions": ALL_CONDITIONS}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("policy", "method", "k"),
        [
            (Policy(Rule.RR, 15, 3.0), "blanket", 15),
            (Policy(Rule.RR, 2, 3.0), "blanket", 2),
            (Policy(Rule.RR, 15, 3.0, d=2), "numerical", None),
            (Policy(Rule.RR, 15, 3.0, slots=2), "numerical", None),  # two draws, of 15 and of 14
            (Policy(Rule.PF, 15, 3.0, bounding=Bounding.SCALED), "numerical", None),
            (Policy(Rule.GUMBEL, 15, 3.0, bounding=Bounding.CLIPPED, width=2.0), "numerical", None),
            (Policy(Rule.LAPLACE, 15, 3.0, bounding=Bounding.SCALED), "numerical", None),
            (Policy(Rule.ENVELOPE, 2, 3.0, floors=(1 << 31, 1 << 30)), "numerical", None),
        ],
    )
    def test_the_blanket_is_for_rr_with_one_best_item_and_for_nothing_else(self, policy, method, k):
        assert batch_guarantee(policy, **self.GIVEN).epsilon == shuffle(3.0, 10_000, 1e-6, method, k)

    @pytest.mark.parametrize(
        "policy",
        [Policy(Rule.PUBLIC, 9), Policy(Rule.UNIFORM, 9), Policy(Rule.RR, 1, 3.0), Policy(Rule.RR, 3, 3.0, d=3)],
    )
    def test_what_reads_nothing_private_costs_nothing(self, policy):
        found = batch_guarantee(policy, **self.GIVEN)
        assert (found.epsilon, found.delta, found.protects) == (0.0, 0.0, ONE_PROFILE)

    def test_the_honest_share_has_to_be_said(self):
        with pytest.raises(TypeError, match="honest_share"):
            batch_guarantee(POLICY, n=10_000, delta=1e-6, conditions=ALL_CONDITIONS)  # type: ignore[call-arg]

    def test_greedy_promises_nothing_however_many_there_are(self):
        assert batch_guarantee(Policy(Rule.GREEDY, 4), **self.GIVEN).promises_nothing

    def test_the_default_least_is_a_thousand(self):
        policy = Policy(Rule.RR, 4, 1.0)
        assert batch_guarantee(policy, **{**self.GIVEN, "n": 999}).epsilon == 1.0
        assert batch_guarantee(policy, **{**self.GIVEN, "n": 1000}).epsilon < 0.12
        assert batch_guarantee(policy, **{**self.GIVEN, "n": 0}).epsilon == 1.0

    def test_if_everybody_reports_r_times_n_counts_users_at_r_epsilon(self):
        found = batch_guarantee(Policy(Rule.RR, 4, 1.0), **self.GIVEN, reports_each=3)
        assert found.epsilon == shuffle(3.0, 3333, 1e-6)
        alone = batch_guarantee(Policy(Rule.RR, 4, 1.0), **{**self.GIVEN, "n": 2}, reports_each=3)
        assert (alone.epsilon, alone.delta) == (3.0, 0.0)

    def test_if_only_some_do_it_is_a_group_of_reports(self):
        found = batch_guarantee(Policy(Rule.RR, 4, 1.0), **self.GIVEN, reports_each=3, everybody=False)
        assert found.epsilon == pytest.approx(3 * shuffle(1.0, 10_000, 1e-6, "blanket", 4), rel=1e-12)
        assert found.delta > 3e-6

    def test_the_local_guarantee_names_no_other_mechanism(self):
        assert local_guarantee(Policy(Rule.RR, 4, 1.0)).proof == "randomised-response"
        assert local_guarantee(Policy(Rule.RR, 4, 1.0, d=2)).proof != "randomised-response"
        assert local_guarantee(Policy(Rule.RR, 4, 1.0, slots=2)).proof != "randomised-response"
        assert local_guarantee(Policy(Rule.PF, 4, 1.0, bounding=Bounding.SCALED)).proof != "randomised-response"


def test_issued_tokens_are_remembered_on_the_disk(tmp_path: Path, ledger: ImpressionLedger):
    """A seed that is kept and a restart do not give a second token for one offer."""
    seed, place = b"k" * 32, tmp_path / "issued.db"
    with MailLedger.create(place) as rows:
        shop = shop_of(ledger, BlindTokens(seed, OnDisk(rows)))
        offer: Offer = shop.offer("monday")
        blinded = blind(offer)
        issued = shop.issue("monday", blinded.request)
    with MailLedger.open(place) as rows:
        shop = shop_of(ledger, BlindTokens(seed, OnDisk(rows)))
        assert blinded.finish(shop.issue("monday", blinded.request)) == blinded.finish(issued)
        with pytest.raises(Conflict, match="one offer, one report"):
            shop.issue("monday", blind(offer).request)
