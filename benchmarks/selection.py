"""Selecting one of k candidates, per decision and in batch, against OpenDP (exact) and diffprivlib (floats)."""

from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from benchmarks.peer import Peer
from benchmarks.timing import Row, compare
from tacit.mechanisms import (
    ExponentialMechanism,
    GumbelTopK,
    LaplaceNoisyMax,
    PermuteAndFlip,
    ProfileScores,
    RandomisedResponse,
)

_SIZES = (4, 15, 100)
_BATCH = 20_000
_EPSILON = 1.0


def run() -> list[Row]:
    dp.enable_features("contrib")
    rng = np.random.default_rng(1)
    rows: list[Row] = []
    with _Diffprivlib() as diffprivlib:
        for k in _SIZES:
            scores = rng.random(k)
            many = rng.random((_BATCH, k))
            values = rng.integers(0, k, _BATCH)
            source = ProfileScores(0.0, 1.0)
            flip, exponential = PermuteAndFlip(source, _EPSILON), ExponentialMechanism(source, _EPSILON)
            laplace, response = LaplaceNoisyMax(source, _EPSILON), RandomisedResponse(k, _EPSILON)
            opendp_flip = _opendp(dp.max_divergence(), scores)
            opendp_exponential = _opendp(dp.zero_concentrated_divergence(), scores)
            opendp_response = _opendp_response(k)
            flip_peer, exponential_peer = diffprivlib.timer("PermuteAndFlip", k), diffprivlib.timer("Exponential", k)
            picks = min(3, k)
            top, opendp_top = GumbelTopK(source, picks, _EPSILON), _opendp_top(picks, scores)
            rows += [
                compare(f"rr-one-{k}", "OpenDP make_randomized_response", lambda m=response: m.release(1), opendp_response,
                        target=1, note="seconds per decision, both exact"),
                compare(f"rr-one-{k}", "OpenDP make_noisy_max", lambda m=response: m.release(1), opendp_flip, target=10,
                        note="seconds per decision; the peer scores candidates, randomised response takes the best as given"),
                compare(f"rr-one-{k}", "diffprivlib PermuteAndFlip", lambda m=response: m.release(1), flip_peer, target=4,
                        timed_peer=True, note="seconds per decision; the peer draws in floats, and from scores"),
                compare(f"pf-one-{k}", "OpenDP make_noisy_max", lambda m=flip, s=scores: m.release(s), opendp_flip, target=2,
                        note="seconds per decision, both exact (permute-and-flip)"),
                compare(f"pf-one-{k}", "diffprivlib PermuteAndFlip", lambda m=flip, s=scores: m.release(s), flip_peer, target=1,
                        timed_peer=True, note="seconds per decision; ours exact, the peer in floats"),
                compare(f"exponential-one-{k}", "OpenDP make_noisy_max (zCDP)", lambda m=exponential, s=scores: m.release(s),
                        opendp_exponential, target=1, note="seconds per decision, both exact (exponential mechanism)"),
                compare(f"exponential-one-{k}", "diffprivlib Exponential", lambda m=exponential, s=scores: m.release(s),
                        exponential_peer, target=1, timed_peer=True, note="seconds per decision; ours exact, the peer in floats"),
                compare(f"laplace-max-one-{k}", "OpenDP make_noisy_max", lambda m=laplace, s=scores: m.release(s), opendp_flip,
                        target=1, note="seconds per decision, both exact; another noise"),
                compare(f"top-{picks}-one-{k}", "OpenDP make_noisy_top_k (zCDP)", lambda m=top, s=scores: m.release(s), opendp_top,
                        target=1, note="seconds per decision, both exact (Gumbel top-k)"),
                compare(f"top-{picks}-batch-{k}", "OpenDP make_noisy_top_k (zCDP), looped", lambda m=top, s=many: m.release_many(s),
                        opendp_top, per=(_BATCH, 1), target=10, note="seconds per decision, both exact (Gumbel top-k)"),
                compare(f"rr-batch-{k}", "OpenDP make_randomized_response, looped", lambda m=response, v=values: m.release_many(v),
                        opendp_response, per=(_BATCH, 1), target=500, note="seconds per decision, both exact"),
                compare(f"pf-batch-{k}", "OpenDP make_noisy_max, looped", lambda m=flip, s=many: m.release_many(s), opendp_flip,
                        per=(_BATCH, 1), target=50, note="seconds per decision, both exact"),
                compare(f"pf-batch-{k}", "diffprivlib PermuteAndFlip, looped", lambda m=flip, s=many: m.release_many(s), flip_peer,
                        per=(_BATCH, 1), target=50, timed_peer=True, note="seconds per decision; ours exact, the peer in floats"),
                compare(f"exponential-batch-{k}", "OpenDP make_noisy_max (zCDP), looped",
                        lambda m=exponential, s=many: m.release_many(s), opendp_exponential, per=(_BATCH, 1), target=50,
                        note="seconds per decision, both exact"),
            ]  # fmt: skip
    return rows


def _opendp(measure: dp.Measure, scores: np.ndarray) -> Callable[[], object]:
    domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    select = dp.m.make_noisy_max(domain, dp.linf_distance(T="f64"), measure, scale=2.0 / _EPSILON)
    as_list = [float(score) for score in scores]
    return lambda: select(as_list)


def _opendp_top(picks: int, scores: np.ndarray) -> Callable[[], object]:
    domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
    measure = dp.zero_concentrated_divergence()
    select = dp.m.make_noisy_top_k(domain, dp.linf_distance(T="f64"), measure, picks, scale=2.0 * picks / _EPSILON)
    as_list = [float(score) for score in scores]
    return lambda: select(as_list)


def _opendp_response(k: int) -> Callable[[], object]:
    truth = float(np.exp(_EPSILON) / (np.exp(_EPSILON) + k - 1))
    respond = dp.m.make_randomized_response(list(range(k)), truth)
    return lambda: respond(1)


class _Diffprivlib(Peer):
    """diffprivlib in its own environment: it answers one line (mechanism, k) with the seconds of one decision."""

    script = "diffprivlib_timer.py"

    def timer(self, mechanism: str, k: int) -> Callable[[], float]:
        return lambda: self.seconds({"mechanism": mechanism, "k": k})
