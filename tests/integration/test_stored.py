"""Reading back what was kept, on a real file and a real server."""

from contextlib import closing

from tacit.guarantees import ONE_USER, pure
from tacit.ledger import Budget, PrivacyLedger
from tacit.ledger.stores import postgresql

SMALL = pure(0.001, ONE_USER)


def test_what_was_kept_is_read_newest_first_on_both_stores(target, monkeypatch):
    monkeypatch.setattr(postgresql, "_AT_A_TIME", 30)
    with PrivacyLedger.create(target) as ledger:
        for subject in ("one", "other"):
            ledger.enrol(subject, Budget(10), protects=ONE_USER)
            for number in range(300):  # more than a store fetches at a time
                ledger.charge(subject, f"id-{number}", SMALL)
                if number % 3 == 0:
                    ledger.keep(subject, f"id-{number}", f"{subject} {number}".encode())
        before = ledger.head()
        found = list(ledger.stored("one"))
        assert [kept.release_id for kept in found] == [f"id-{number}" for number in range(297, -1, -3)]
        assert [kept.content for kept in found] == [f"one {number}".encode() for number in range(297, -1, -3)]
        with closing(ledger.stored("other")) as kept:  # and left early
            assert next(kept).content == b"other 297"
        assert ledger.head() == before
        ledger.charge("one", "afterwards", SMALL)
