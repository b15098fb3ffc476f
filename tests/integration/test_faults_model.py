"""The model of tests/property, against a ledger in PostgreSQL."""

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.test_ledger import LedgerMachine


def test_ledger_in_postgresql_agrees_with_its_model(postgresql) -> None:
    class InPostgresql(LedgerMachine):
        def place(self) -> str:
            return postgresql.new_database()

        def clear(self) -> None:
            postgresql.drop_databases()

    quick = settings(max_examples=12, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(InPostgresql, settings=quick)
