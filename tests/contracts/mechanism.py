"""What every mechanism must show, whatever it releases. A case class says how to build one; the contract does the rest.

The claim is tested by exact enumeration (every pair of neighbours, every output), the sampler by chi-square on counts, and
each of these tests is itself tested: it must refuse a broken twin that makes the same claim.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import InvalidParameter, TacitError
from tacit.guarantees import Guarantee
from tacit.mechanisms import SYSTEM_NOISE, ReplayedNoise

PROOFS = Path(__file__).parents[2] / "docs" / "proofs"
HEADINGS = ("Protects", "Does not protect", "Why it holds", "Parameters", "Known limits", "Example", "Reference")
ALARM = 1e-9  # a thousand such tests raise one false alarm in a million runs; nothing is ever retried
DRAWS = 100_000
SECRET = 4242.4242  # put into private inputs; must never be seen in a message


def log_ratio(here: NDArray[np.float64], there: NDArray[np.float64]) -> float:
    """The largest |ln p/p'| over all outputs; infinite where only one of them is possible."""
    assert here.shape == there.shape
    possible = (here > 0) | (there > 0)
    if ((here > 0) != (there > 0)).any():
        return math.inf
    return float(np.abs(np.log(here[possible]) - np.log(there[possible])).max())


def chi_square(counts: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """The p-value of counts under a law; cells that expect less than 10 are put together, forbidden ones give 0."""
    assert counts.shape == law.shape
    assert counts.dtype.kind == "i"  # counts, never frequencies: those make a chi-square test toothless
    if counts[law == 0.0].any():
        return 0.0
    expected = law / law.sum() * counts.sum()
    rare = expected < 10.0
    seen, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 10.0:  # too rare even together: it goes to the smallest of the others
        smallest = int(np.argmin(expected[:-1]))
        seen[smallest] += seen[-1]
        expected[smallest] += expected[-1]
        seen, expected = seen[:-1], expected[:-1]
    if seen.size < 2:
        return 1.0
    return float(stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), seen.size - 1))


def two_sample(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The p-value that two sets of whole numbers have one law; values seen less than 20 times are put together."""
    values, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    table = np.stack([np.bincount(part, minlength=values.size) for part in (place[: first.size], place[first.size :])])
    rare = table.sum(axis=0) < 20
    table = np.concatenate([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)], axis=1)
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


def loss_at_least(here: int, there: int, draws: int, confidence: float = 1.0 - ALARM) -> float:
    """A lower confidence bound of ln P(event | x) / P(event | x') from two counts (Clopper and Pearson)."""
    doubt = (1.0 - confidence) / 2.0
    low = stats.beta.ppf(doubt, here, draws - here + 1) if here else 0.0
    high = stats.beta.ppf(1.0 - doubt, there + 1, draws - there) if there < draws else 1.0
    return math.log(low / high) if low > 0.0 else -math.inf


def unless_refused(make: Callable[[], Any]) -> Any:
    """What ``make`` gives, or None where it refuses its parameters with a code."""
    try:
        return make()
    except InvalidParameter:
        return None


class MechanismCase(ABC):
    """How to build one mechanism on a small domain. Subclasses fill this in; both contracts below read it."""

    epsilon: float = 1.0

    @abstractmethod
    def make(self, epsilon: float) -> Any:
        """The mechanism that claims ``epsilon``."""

    @abstractmethod
    def twin(self) -> Any:
        """A mechanism with the same claim and a fault that breaks it."""

    @abstractmethod
    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """Every pair of neighbouring inputs of the small domain."""

    def law(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        """The probability of every outcome."""
        return np.asarray(mechanism.pmf(raw))

    @abstractmethod
    def reference(self, mechanism: Any, raw: Any) -> NDArray[np.float64]:
        """The same by the slow, obvious way."""

    def documented_loss(self) -> float:
        """The true worst loss on this domain in closed form: the claim itself, or what the proof page says is left over."""
        return self.epsilon

    def outcomes(self, mechanism: Any, raw: Any, noise: Any, draws: int) -> NDArray[np.int64]:
        """``draws`` releases, each as its place in ``law``."""
        return np.asarray(mechanism.release_many(np.tile(np.asarray(raw), (draws, 1)), noise).value)

    def bad_parameters(self) -> Sequence[Callable[[], object]]:
        """Calls that must be refused, besides the bad epsilons that every mechanism refuses."""
        return ()

    @abstractmethod
    def bad_inputs(self) -> Sequence[Any]:
        """Private inputs that must be refused; they hold SECRET."""

    def worst_loss(self, mechanism: Any) -> float:
        """The largest loss over all pairs and outputs."""
        known: dict[int, NDArray[np.float64]] = {}

        def law(raw: Any) -> NDArray[np.float64]:
            if id(raw) not in known:
                known[id(raw)] = self.law(mechanism, raw)
            return known[id(raw)]

        return max(log_ratio(law(here), law(there)) for here, there in list(self.pairs()))


class MechanismContract(MechanismCase):
    """Exact: no draws are needed to find these faults."""

    def test_claim_holds_for_every_pair_and_output(self) -> None:
        assert self.worst_loss(self.make(self.epsilon)) <= self.epsilon + 1e-12

    def test_claim_is_tight_or_its_slack_is_the_documented_one(self) -> None:
        assert self.worst_loss(self.make(self.epsilon)) == pytest.approx(self.documented_loss(), abs=2e-9)

    def test_broken_twin_is_caught_by_enumeration(self) -> None:
        twin = self.twin()
        assert twin.guarantee == self.make(self.epsilon).guarantee
        assert self.worst_loss(twin) > self.epsilon * 1.05

    def test_law_equals_the_slow_reference(self) -> None:
        mechanism = self.make(self.epsilon)
        for raw in self.some_inputs(12):
            law = self.law(mechanism, raw)
            np.testing.assert_allclose(law, self.reference(mechanism, raw), rtol=1e-9, atol=1e-13)
            assert law.sum() == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf, None, "1", True, 1j])
    def test_epsilon_outside_its_range_is_refused(self, epsilon: Any) -> None:
        with pytest.raises(TacitError, match=r"epsilon must be a finite number") as caught:
            self.make(epsilon)
        assert caught.value.code == "invalid-parameter"

    @pytest.mark.parametrize("epsilon", [1, np.float64(1.0), np.float32(1.0), np.int64(1)])
    def test_epsilon_of_another_number_type_works_or_is_refused_at_once(self, epsilon: Any) -> None:
        mechanism = unless_refused(lambda: self.make(epsilon))
        if mechanism is not None:
            assert mechanism.release(self.some_inputs(1)[0]).guarantee.epsilon == 1.0
            json.dumps(mechanism.guarantee.to_json())

    def test_bad_parameters_are_refused_with_a_code(self) -> None:
        for attempt in self.bad_parameters():
            with pytest.raises(TacitError) as caught:
                attempt()
            assert caught.value.code == "invalid-parameter", caught.value

    def test_bad_input_is_refused_with_a_code_and_is_not_shown(self) -> None:
        mechanism = self.make(self.epsilon)
        for raw in self.bad_inputs():
            with pytest.raises(TacitError) as caught:
                mechanism.release(raw, ReplayedNoise(1))
            assert caught.value.code == "invalid-input", raw
            assert "4242" not in str(caught.value)
            assert "4242" not in repr(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__ or caught.value.__context__ is None

    def test_release_under_system_noise_carries_the_guarantee(self) -> None:
        mechanism = self.make(self.epsilon)
        raw = self.some_inputs(1)[0]
        assert mechanism.release(raw).guarantee == mechanism.guarantee
        assert mechanism.release(raw, SYSTEM_NOISE).guarantee == mechanism.guarantee
        assert not mechanism.guarantee.promises_nothing

    def test_release_under_replayed_noise_promises_nothing_and_says_why(self) -> None:
        mechanism = self.make(self.epsilon)
        guarantee = mechanism.release(self.some_inputs(1)[0], ReplayedNoise(1)).guarantee
        assert guarantee.epsilon == math.inf
        assert guarantee.loss is None
        assert guarantee.assumes == {ReplayedNoise.caveat}
        assert guarantee.protects == mechanism.guarantee.protects

    def test_mechanism_keeps_nothing_of_its_input(self) -> None:
        one, other = self.make(self.epsilon), self.make(self.epsilon)
        before = repr(one)
        inputs = self.some_inputs(4)
        one.release(inputs[0])
        other.release(inputs[-1])
        assert repr(one) == before
        kept, other_kept = getattr(one, "__dict__", {}), getattr(other, "__dict__", {})
        assert kept.keys() == other_kept.keys()
        assert all(np.array_equal(kept[name], other_kept[name]) for name in kept)  # public tables may be kept, too

    def test_guarantee_survives_json(self) -> None:
        guarantee = self.make(self.epsilon).guarantee
        assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json()))) == guarantee

    def test_guarantee_names_a_proof_page_with_all_its_headings(self) -> None:
        mechanism = self.make(self.epsilon)
        assert mechanism.guarantee.proof == mechanism.name
        page = (PROOFS / f"{mechanism.name}.md").read_text(encoding="utf-8")
        for heading in HEADINGS:
            assert f"\n## {heading}" in page, heading

    def some_inputs(self, most: int) -> list[Any]:
        inputs = [raw for pair in self.pairs() for raw in pair]
        return inputs[:: max(1, len(inputs) // most)]


class SamplerContract(MechanismCase):
    """By draws: the sampler has the law that the enumeration above was about."""

    def chosen_input(self) -> Any:
        """The input whose law is drawn from; one whose law moves much with epsilon."""
        return next(iter(self.pairs()))[0]

    def counts(self, mechanism: Any, raw: Any, noise: Any, draws: int = DRAWS) -> NDArray[np.int64]:
        size = self.law(mechanism, raw).size
        return np.bincount(self.outcomes(mechanism, raw, noise, draws), minlength=size)

    def test_sampler_draws_from_its_pmf(self, noise: Any) -> None:
        mechanism, raw = self.make(self.epsilon), self.chosen_input()
        assert chi_square(self.counts(mechanism, raw, noise), self.law(mechanism, raw)) > ALARM

    def test_that_test_rejects_epsilon_off_by_ten_percent(self, noise: Any) -> None:
        raw = self.chosen_input()
        counts = self.counts(self.make(self.epsilon), raw, noise)
        for factor in (0.9, 1.1):
            assert chi_square(counts, self.law(self.make(self.epsilon * factor), raw)) < ALARM

    def test_audit_stays_under_the_claim_and_refuses_the_broken_twin(self, noise: Any) -> None:
        assert self.audit(self.make(self.epsilon), noise) <= self.epsilon
        assert self.audit(self.twin(), noise) > self.epsilon

    def audit(self, mechanism: Any, noise: Any) -> float:
        """A lower confidence bound of the loss at the pair and output where the law says that it is largest.

        Outputs rarer than three in ten thousand are left out: so few counts bound nothing.
        """
        worst, place, most = None, 0, -math.inf
        for pair in self.audited_pairs():
            here, there = (self.law(mechanism, raw) for raw in pair)
            loss = np.where(there >= 3e-4, np.log(here) - np.log(there), -math.inf)
            if loss.max() > most:
                worst, place, most = pair, int(loss.argmax()), float(loss.max())
        assert worst is not None
        here_count, there_count = (int(self.counts(mechanism, raw, noise)[place]) for raw in worst)
        return loss_at_least(here_count, there_count, DRAWS)

    def audited_pairs(self) -> Iterable[tuple[Any, Any]]:
        return list(self.pairs())
