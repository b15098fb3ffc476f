"""The page tells all of a report, escapes what it is told, and asks the network for nothing."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tacit.audit import AuditReport, suite
from tacit.evaluation.demonstration.demonstration import Demonstration
from tacit.evaluation.registry import SYSTEMS
from tacit.evaluation.report import Report, page, write_html
from tacit.evaluation.report.audits import audited
from tacit.evaluation.report.machine import machine
from tacit.evaluation.report.words import WORDS
from tacit.evaluation.result import Claim
from tests.unit.evaluation.told import HOSTILE, demonstration, result


class Parsed(HTMLParser):
    """Text and attributes of a page; complains where an element is not closed in its order."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def audit() -> AuditReport:
    return suite.run(["randomised-response"])


@pytest.fixture(scope="module")
def report(audit: AuditReport) -> Report:
    return Report("A title & more", (demonstration(),), (result(),), audit, command="tacit report --quick")


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return page.html(report, proofs="docs/proofs")


def test_the_page_is_well_formed_and_its_ids_are_unique(html: str) -> None:
    ids = Parsed(html).ids
    assert len(set(ids)) == len(ids)
    assert {"glance", "private-slates", "audit", "ledgers", "made"} <= set(ids)


def test_the_page_refers_to_itself_and_to_proofs_only(html: str) -> None:
    addresses = Parsed(html).addresses
    assert addresses
    assert [one for one in addresses if not one.startswith(("#", "docs/proofs/"))] == []
    assert set(re.findall(r"https?://[^\s\"')]+", html)) <= {
        "http://www.w3.org/2000/svg"
    }  # a name, which nothing fetches
    assert "@import" not in html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    sources = {word for part in policy[1].split(";") for word in part.split()[1:]}
    assert sources == {"'none'", "'unsafe-inline'", "data:"}  # nothing that is elsewhere


def test_every_anchor_leads_somewhere(html: str) -> None:
    parsed = Parsed(html)
    assert {one[1:] for one in parsed.addresses if one.startswith("#")} <= set(parsed.ids)


def test_proofs_are_linked_where_the_page_is_told_they_are_and_otherwise_named(report: Report, html: str) -> None:
    assert "docs/proofs/randomised-response.md" in Parsed(html).addresses
    bare = Parsed(page.html(report))
    assert [one for one in bare.addresses if not one.startswith("#")] == []
    assert "docs/proofs/randomised-response.md" in bare.text
    assert "every broken twin was caught. Small domains" in bare.text
    assert "the proofs are named." in bare.text
    assert "the proofs are linked." in Parsed(html).text


def test_what_it_is_told_is_shown_as_text(html: str) -> None:
    assert HOSTILE not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 3  # a method, a note, and what was said


def test_all_that_a_reader_asks_for_is_there(html: str) -> None:
    text = Parsed(html).text
    for told in (
        "1 of 2 of the paper's claims hold", "it is private", "it is not", "ours is better", "far",  # claims, and evidence
        "0.970 ± 0.002", "paper 0.500", "reference 0.960",  # figures beside others
        "Counted otherwise than published", "a step has no proof", "protects one user's rows",
        "curator: 1 charged, 1 epsilon in all", "ten item ids", "Nearly as popular",
        "seed 7", "tacit report --quick", "numpy", "processors", "randomised-response",
    ):  # fmt: skip
        assert told in text, told


def test_claims_within_a_reference_are_counted_and_those_outside_listed(html: str) -> None:
    text = Parsed(html).text
    assert "Within the tolerance of reference figures: 1 of 2 hold" in text
    assert "far" in text
    assert " near 0.01" not in text


def test_the_glance_sets_private_between_both_extremes(html: str) -> None:
    glance = html[html.index('id="glance"') : html.index('<section id="private-slates"')]
    text = Parsed(glance.partition(">")[2].rpartition("</section>")[0]).text
    assert "5.0% ± 1.0% uniform 90.0% ± 1.0% tempered 100.0% not private 89% ten item ids" in text  # the run
    assert (
        "7.0% ± 0.5% at random 97.0% ± 0.2% tempered slate, ε = 0.1 100.0%" in text
    )  # the evaluation, at its usual epsilon
    assert f"{(0.97 - 0.07) / (1.0 - 0.07):.0%}" in text


def test_what_is_not_shown_is_neither_a_yes_nor_a_no(report: Report) -> None:
    claims = (
        Claim("A Paper", "one", True, "by 2"),
        Claim("A Paper", "two", False, "a: -0.1 ± 0.2, shown in 0 of 3 [not shown]"),
        Claim("A Paper", "three", False, "by -2"),
    )
    text = page.html(replace(report, results=(replace(result(), claims=claims),)))
    assert re.findall(r'<span class="chip ([a-z-]+)">([a-z ]+)</span></td><td>(one|two|three)<', text) == [
        ("yes", "yes", "one"), ("not-shown", "not shown", "two"), ("no", "no", "three"),
    ]  # fmt: skip
    assert "1 of 3 of the paper's claims hold, 1 not shown" in Parsed(text).text
    assert "1 of 3 hold, 1 not shown" in Parsed(text).text


def test_terms_are_explained_where_their_system_is_evaluated(report: Report, html: str) -> None:
    assert "randomised response, pf" not in html  # of another system
    private_selection = replace(result(), system="private-selection", rows=(), claims=(), guarantees={})
    text = Parsed(page.html(replace(report, results=(private_selection,)))).text
    assert "Evaluation on small-world rr is randomised response, pf permute-and-flip; gamma is the cutoff." in text
    assert set(WORDS) <= set(SYSTEMS)


def test_the_glance_says_for_one_of_what_a_promise_is(report: Report, html: str) -> None:
    many = replace(demonstration(), each="impression")
    text = Parsed(page.html(replace(report, demonstrations=(many,), results=()))).text
    assert "ε = 1 per impression" in text
    assert "for each impression anew" in text
    assert "per impression" not in html


def test_a_failed_audit_is_said(audit: AuditReport, report: Report) -> None:
    broken = AuditReport((replace(audit.mechanisms[0], holds=False), *audit.mechanisms[1:]), audit.twins)
    assert not audited(broken)[0].holds
    assert audited(audit)[0].holds
    assert "A claim fails or a broken twin escaped" in page.html(replace(report, audit=broken, results=()))


def test_the_largest_loss_is_a_share_of_its_claim(audit: AuditReport) -> None:
    worst = audited(audit)[0].worst
    assert worst is not None
    assert worst == max(one.loss / one.claimed for one in audit.mechanisms)
    assert 0.99 < worst <= 1.0 + 1e-9  # randomised response attains its epsilon


def test_a_report_of_demonstrations_alone_has_no_curves_and_no_empty_sections() -> None:
    text = page.html(Report("Only shown", (demonstration(),), skipped={"cross-domain": "too few users"}))
    assert "cross-domain is not shown: too few users" in Parsed(text).text
    assert "Evaluation on" not in text
    assert 'id="audit"' not in text


def test_the_twin_holds_the_same(report: Report) -> None:
    told = report.to_json()
    assert Demonstration.from_json(told["demonstrations"][0]) == demonstration()
    assert type(result()).from_json(told["results"][0]) == result()
    assert told["curves"][0]["world"] == "small-world"
    assert told["audit"]["passed"]


def test_the_file_is_whole_and_known_as_ours(report: Report, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    write_html(replace(report, results=()), place)
    assert place.read_text().endswith("</html>")
    assert page.is_ours(place)
    assert list(tmp_path.iterdir()) == [place]
    other = tmp_path / "thesis.html"
    other.write_text("<html><head><title>mine</title></head></html>")
    assert not page.is_ours(other)


def test_a_page_outside_a_checkout_names_no_path_of_it(report: Report, tmp_path: Path) -> None:
    write_html(replace(report, results=()), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert str(page.PROOFS.parents[1]) not in text
    assert "../" not in text


def test_the_machine_is_told_without_its_name() -> None:
    import getpass
    import platform

    told = machine()
    assert {"system", "architecture", "processors"} <= set(told)
    assert platform.node() not in told.values()
    assert getpass.getuser() not in told.values()


def test_a_promise_is_never_rounded_down() -> None:
    from tacit.evaluation.report.words import promise
    from tacit.guarantees import ONE_USER, approximate

    assert promise(approximate(1.00004, 1.41e-6, ONE_USER)) == "ε = 1.001, δ = 1.5e-06"


def test_names_with_signs_of_money_are_names(tmp_path: Path) -> None:
    odd = replace(demonstration().private, method="cost $5 or $6 a_$^^$")
    shown = replace(demonstration(), ways=(demonstration().nothing, odd, demonstration().plain), private=odd)
    assert Parsed(page.html(Report("Money", (shown,)))).text.count("cost $5 or $6 a_$^^$") >= 3
