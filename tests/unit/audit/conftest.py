import pytest

from tacit.audit import AuditReport, By, suite


@pytest.fixture(scope="session")
def exact_report() -> AuditReport:
    """All that the suite enumerates; what it draws is run in tests/statistical."""
    return suite.run(by=[By.EXACT])
