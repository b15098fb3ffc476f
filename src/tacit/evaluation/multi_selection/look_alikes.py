"""The same trials with other look-alikes behind the server: real users, private prototypes of them, public ones of nobody."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from tacit.curator.look_alikes import PrivateLookAlikes, genre_centre
from tacit.evaluation.multi_selection.fitting import Trained
from tacit.evaluation.multi_selection.losses import D_F, D_I, Case, Losses
from tacit.evaluation.multi_selection.parallel import losses
from tacit.evaluation.multi_selection.plan import QUICK_ETAS, SIZES, Task
from tacit.evaluation.multi_selection.population import Population
from tacit.evaluation.multi_selection.rows import loss_rows
from tacit.evaluation.multi_selection.trials import bench
from tacit.evaluation.result import Row
from tacit.guarantees import Guarantee
from tacit.mechanisms import ReplayedNoise
from tacit.messages.store import LookAlikes, Store
from tacit.server.multi_selection import Algorithm, LocalModel

DELTA = 1e-6
RAW, PUBLIC, PRIVATE = "raw", "public", "private"
RELEASES = 3  # of each epsilon: how good one is depends on its noise
AGAINST = f"against {PUBLIC} look-alikes"
Progress = Callable[[str, int, int], None]


def look_alike_rows(
    people: Population,
    fitted: Trained,
    epsilons: tuple[float, ...],
    *,
    trials: int,
    seed: int,
    workers: int,
    progress: Progress,
) -> tuple[list[Row], dict[str, Guarantee]]:
    """Losses with each kind of look-alikes, and what private ones lose less than public ones, trial by trial.

    ``public``: the centre of the catalogue's genres, spread by public noise. A release that does not beat it tells nothing.
    """
    tried = partial(_tried, people, fitted, trials=trials, seed=seed, workers=workers)
    public = PrivateLookAlikes(epsilon=1.0, delta=DELTA).around(genre_centre(people.space), people.space)
    control = tried([fitted.store.with_look_alikes(public)], progress=partial(progress, f"{PUBLIC} look-alikes"))
    raw = tried([fitted.store], progress=partial(progress, f"{RAW} look-alikes"))
    rows = [*loss_rows(raw, look_alikes=RAW), *loss_rows(control, look_alikes=PUBLIC)]
    promised: dict[str, Guarantee] = {}
    for epsilon, delta in product(epsilons, (DELTA, None)):
        wish = PrivateLookAlikes(epsilon, delta)
        stores = [fitted.store.with_look_alikes(one) for one in releases(people, wish, seed)]
        found = tried(stores, progress=partial(progress, f"look-alikes, {told_by(wish)}"))
        further: dict[str, float | str] = {"look_alikes": PRIVATE, "epsilon": epsilon, "delta": delta or 0.0}
        rows += [*loss_rows(found, **further), *_against(found, control, further)]
        promised[f"look-alikes, {told_by(wish)}"] = wish.promised(people.space)
    return rows, promised


def told_by(wish: PrivateLookAlikes) -> str:
    return f"{'grid' if wish.delta is None else 'tree'}, epsilon={wish.epsilon:g}"


def releases(people: Population, wish: PrivateLookAlikes, seed: int) -> Iterator[LookAlikes]:
    """Several releases of the same look-alikes, by noise replayed from seeds: equal seeds, equal figures."""
    centre, features = genre_centre(people.space), people.features[people.look_alikes]
    for number in range(RELEASES):
        key = np.random.SeedSequence([seed, 30, number, round(wish.epsilon * 1e6)]).generate_state(1, np.uint64)[0]
        again = replace(wish, seed=number)  # other planes and other public noise as well
        yield again.release(features, people.space, centre=centre, noise=ReplayedNoise(int(key)))


def _tried(
    people: Population,
    fitted: Trained,
    stores: list[Store],
    *,
    trials: int,
    seed: int,
    workers: int,
    progress: Callable[[int, int], None],
) -> Losses:
    """The mean over the stores of what each trial loses; users and signals are the same for all."""
    found = []
    for store in stores:
        at = bench(store, people.features[people.held_out], trials, seed=seed, truth=fitted.store)
        found.append(losses(at, _tasks(trials), workers=workers, progress=progress))
    values = {case: np.mean([one.values[case] for one in found], axis=0) for case in found[0].values}
    return Losses(found[0].users, found[0].best, values)


def _against(found: Losses, control: Losses, further: dict[str, float | str]) -> Iterator[Row]:
    both = Losses(
        found.users, found.best, {**found.values, **{_named(case): control.values[case] for case in control.values}}
    )
    for case in found.values:
        if case.k == max(SIZES) and case.measure in (D_I, D_F):
            gap = both.gap(case, _named(case))
            yield Row.of(case.method, f"{case.measure} {AGAINST}", gap, **case.setting(), **further)


def _named(case: Case) -> Case:
    return case._replace(method=f"{PUBLIC} {case.method}")


def _tasks(trials: int) -> list[Task]:
    return [
        Task(Algorithm.EXACT, QUICK_ETAS, trials, local_models=(LocalModel.RIDGE,)),
        Task(Algorithm.EXACT, (None,), trials, local_models=(LocalModel.RIDGE,)),
    ]
