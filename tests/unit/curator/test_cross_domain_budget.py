"""A release may use all of a budget, and never more."""

import pytest

from tacit.curator.cross_domain.domains import in_units, mu_within
from tacit.errors import InvalidParameter
from tacit.guarantees import ONE_USER
from tacit.guarantees.concentrated import delta_of_gaussian, rho_within
from tacit.ledger import Accounting, Budget, Terms
from tacit.ledger.budgets import allowance, price
from tacit.mechanisms.rating_rows import gaussian_claim


@pytest.mark.parametrize("accounting", [Accounting.BASIC, Accounting.ZCDP])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2 / 3, 1.0, 2.0, 3.1415926535])
@pytest.mark.parametrize("delta", [1e-6, 1e-6 / 3])
def test_a_release_takes_the_whole_budget_and_fits_into_it(
    epsilon: float, delta: float, accounting: Accounting
) -> None:
    terms = Terms.of(Budget(epsilon, delta), ONE_USER, accounting)
    told = in_units(epsilon, delta)[1] if accounting is Accounting.BASIC else delta
    cost = price(gaussian_claim("transfer-moments", mu_within(epsilon, delta, accounting), told), terms)
    allowed = allowance(terms.budgets[0], terms)
    assert cost.amount <= allowed.amount
    assert cost.delta <= allowed.delta
    assert cost.amount >= allowed.amount - 1  # nothing worth mentioning is left


def test_alone_a_release_is_worth_its_exact_epsilon_and_among_others_less() -> None:
    alone, among = (mu_within(1.0, 1e-6, kind) for kind in (Accounting.BASIC, Accounting.ZCDP))
    assert alone == pytest.approx(0.236704, abs=1e-6)
    assert 0.187 < among < 0.95 * alone
    assert delta_of_gaussian(alone, 1.0) <= 1e-6
    assert delta_of_gaussian(alone * (1 + 1e-9), 1.0) > 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (-1.0, 1e-6), (1.0, 0.0), (1.0, 1.0)])
@pytest.mark.parametrize("accounting", [Accounting.BASIC, Accounting.ZCDP])
def test_no_budget_is_refused(epsilon: float, delta: float, accounting: Accounting) -> None:
    with pytest.raises(InvalidParameter):
        mu_within(epsilon, delta, accounting)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-10, 1e-6), (1.0, 1e-19)])
def test_what_is_less_than_a_unit_of_the_ledger_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="too small"):
        in_units(epsilon, delta)


def test_a_rho_below_a_unit_of_the_ledger_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="too small"):
        rho_within(1e-9, 1e-12)
