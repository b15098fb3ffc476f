import numpy as np
import pytest

from tacit.audit import AuditReport, By, suite


@pytest.fixture(scope="session")
def exact_report() -> AuditReport:
    """All that the suite enumerates; what it draws is run in tests/statistical."""
    return suite.run(by=[By.EXACT])


@pytest.fixture
def rng() -> np.random.Generator:
    """Experiment randomness for a test, the same in every run."""
    return np.random.default_rng(20_240_229)
