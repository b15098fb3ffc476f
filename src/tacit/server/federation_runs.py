"""What the coordinator makes of the replies of each stage, for each kind of run. From replies to the model nothing is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import Conflict, InvalidMessage, InvalidParameter
from tacit.messages.federated_prototypes_frame import open_frame
from tacit.messages.federated_prototypes_manifest import Manifest
from tacit.messages.federated_prototypes_model import SharedModel
from tacit.messages.federated_prototypes_replies import Code, Refused, Reply
from tacit.messages.federated_prototypes_secure import pack
from tacit.messages.federated_prototypes_steps import Step
from tacit.models.moments import SharedMoments, noise_sds, triangle
from tacit.models.nonnegative_stack import Factorisation
from tacit.models.secure_sum import SumSession
from tacit.server import moments
from tacit.server.moments import HeadChoice, choose_head, no_information, shared_moments
from tacit.server.prototypes import influence, shared_items
from tacit.server.secure_sums import SecureSums

Whole = NDArray[np.int64]


class Run(Protocol):
    """One kind of run. ``head`` is how many items the Gram matrix is about, once that is known."""

    @property
    def head(self) -> int: ...

    def take(self, reply: Reply) -> None:
        """Takes the reply of one entity in the stage that is open; raises Refused, and is then as it was."""

    def close(self, stage: str, replied: tuple[str, ...]) -> str | SharedModel:
        """Closes a stage: the name of the next one, or the model. Raises TooFewEntities, and is then as it was."""

    def step(self, stage: str, to: str) -> Step:
        """What one entity is sent in a stage after the first."""


class _Prototypes(NamedTuple):
    centres: NDArray[np.float64]
    sizes: NDArray[np.float64]


class PrototypeRun:
    """Stacks what was released and factorises it."""

    head = 0

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self._arrays: dict[
            str, Mapping[str, NDArray[np.generic]]
        ] = {}  # as they came: a table of them is made at the end
        self._items: NDArray[np.float64] | None = None

    def take(self, reply: Reply) -> None:
        self._arrays[reply.sender] = {name: array.copy() for name, array in reply.arrays.items()}

    def close(self, stage: str, replied: tuple[str, ...]) -> SharedModel:
        self._items = shared_items(self._released(replied), self._how)
        factors = self._items.astype(np.float32)
        return SharedModel(self.manifest.run, len(replied), informed=bool(factors.any()), factors=factors)

    def step(self, stage: str, to: str) -> Step:
        raise InvalidMessage("a run of prototypes has one stage, which the manifest opens.")

    def influence(self) -> dict[str, float]:
        """How far the factors move without each entity, as a part of their size."""
        if self._items is None:
            raise InvalidMessage("the influence of entities is known once there is a model.")
        return influence(self._released(tuple(self._arrays)), self._items, self._how)

    def _released(self, names: tuple[str, ...]) -> dict[str, _Prototypes]:
        return {name: _read(self._arrays[name], self.manifest.items) for name in names}

    @property
    def _how(self) -> Factorisation:
        manifest = self.manifest
        return Factorisation(
            rank=manifest.rank or 0,
            seed=manifest.seed,
            ridge=manifest.ridge,
            regulariser=str(manifest.regulariser),
            zeros_observed=bool(manifest.zeros_observed),
            most_weight=manifest.most_weight,
        )


@dataclass
class MomentsRun:
    """Two sums, and what follows from them. ``sums`` adds up in the open, or under masks."""

    manifest: Manifest
    sums: "OpenSums | MaskedSums"
    choice: HeadChoice | None = field(default=None)

    @property
    def head(self) -> int:
        return 0 if self.choice is None else self.choice.head.size

    def take(self, reply: Reply) -> None:
        self.sums.take(reply, self.manifest.items if reply.stage == "popularity" else triangle(self.head))

    def close(self, stage: str, replied: tuple[str, ...]) -> str | SharedModel:
        total = self.sums.close(stage, replied)
        if total is None:
            return self.manifest.stages[self.manifest.stages.index(stage) + 1]
        sds = noise_sds(*self.manifest.rhos, shares=total.shares, honest=self.manifest.honest)
        if self.choice is None:
            self.choice = choose_head(total.values, self.manifest.items, sds[0])
            return "gram" if self.choice.informative else self._model(total.shares, no_information(self.choice, sds[1]))
        return self._model(total.shares, shared_moments(self.choice, total.values, sds[1]))

    def step(self, stage: str, to: str) -> Step:
        if stage == "gram" and self.choice is not None:
            return Step(self.manifest.run, stage, to, head=self.choice.head)
        return Step(self.manifest.run, stage, to, body=pack(self.sums.passed_on(stage, to)))

    def without_gram(self, contributors: int) -> SharedModel | None:
        """The model of a run whose second sum never came about; None where not even the first one did."""
        if self.choice is None:
            return None
        return self._model(contributors, no_information(self.choice, noise_sds(*self.manifest.rhos)[1]))

    def influence(self) -> dict[str, float]:
        """The largest of what moves without each entity: popularity, head or pseudo-rows, as a part of its size."""
        if not isinstance(self.sums, OpenSums):
            raise InvalidParameter("the shares of a secure sum are summed: whose is how large cannot be seen.")
        if self.choice is None:
            raise InvalidMessage("the influence of entities is known once there is a model.")
        found = moments.influence(self.sums.closed["popularity"], self.sums.closed.get("gram", {}), self.manifest.rhos)
        return {name: max(moved) for name, moved in found.items()}

    def _model(self, contributors: int, shared: SharedMoments) -> SharedModel:
        return SharedModel(self.manifest.run, contributors, moments=shared)


class Total(NamedTuple):
    values: Whole
    shares: int  # in the sum


class OpenSums:
    """Every share is seen, and carries all the noise itself."""

    def __init__(self) -> None:
        self._shares: dict[str, dict[str, Whole]] = {}
        self.closed: dict[str, dict[str, Whole]] = {}  # by stage: the shares of those in the sum

    def take(self, reply: Reply, cells: int) -> None:
        self._shares.setdefault(reply.stage, {})[reply.sender] = reply.arrays["steps"].astype(np.int64)

    def close(self, stage: str, replied: tuple[str, ...]) -> Total | None:
        shares = self.closed[stage] = {name: self._shares[stage][name] for name in replied}
        return Total(np.add.reduce(list(shares.values()), dtype=np.int64), len(shares))

    def passed_on(self, stage: str, to: str) -> Mapping[str, bytes]:
        raise InvalidMessage("without secure aggregation entities are sent a head of items and nothing else.")


class MaskedSums:
    """Only totals are seen."""

    def __init__(self, manifest: Manifest) -> None:
        roster = {one.name: bytes.fromhex(one.key) for one in manifest.contributors}
        self._sums = SecureSums(SumSession(manifest.run, roster, manifest.fewest or 0, manifest.colluding or 0))
        self._survivors: dict[str, tuple[str, ...]] = {}
        self._parcels: dict[str, dict[str, bytes]] = {}

    def take(self, reply: Reply, cells: int) -> None:
        stage, body = reply.stage, reply.body
        try:
            if open_frame(body).header.get("entity") != reply.sender:
                raise InvalidMessage("a message of the secure sum comes from its own sender.")
            match stage:
                case "keys":
                    self._sums.add_keys(body)
                case "shares":
                    self._sums.add_shares(body)
                case "popularity" | "gram":
                    self._sums.add_masked(body, stage, cells)
                case _:
                    self._sums.add_unmask(body, stage.removeprefix("unmask-"))
        except (InvalidMessage, Conflict) as problem:
            raise Refused(Code.SECURE_SUM, str(problem)) from None

    def close(self, stage: str, replied: tuple[str, ...]) -> Total | None:
        if stage == "keys":
            self._sums.close_keys()
        elif stage == "shares":
            self._parcels = self._sums.close_shares()
        elif stage in ("popularity", "gram"):
            self._survivors[stage] = self._sums.close_upload(stage)
        else:
            upload = stage.removeprefix("unmask-")
            return Total(self._sums.total(upload), len(self._survivors[upload]))
        return None

    def passed_on(self, stage: str, to: str) -> Mapping[str, bytes]:
        if stage == "shares":
            return self._sums.close_keys()
        if stage == "popularity":
            return self._parcels[to]
        return dict.fromkeys(self._survivors[stage.removeprefix("unmask-")], b"")


def _read(arrays: Mapping[str, NDArray[np.generic]], items: int) -> _Prototypes:
    """The prototypes as numbers; NaN where none was released, or where an entity had no use for a prototype (size 0)."""
    sizes, values = arrays["sizes"].astype(np.float64), arrays["values"].astype(np.float64)
    if "index" not in arrays:
        centres = values.copy()
    else:
        centres = np.full((len(sizes), items), np.nan)
        np.put_along_axis(centres, arrays["index"].astype(np.int64), values, axis=1)
    centres[(sizes == 0.0) & ~np.nan_to_num(centres).any(axis=1)] = np.nan
    return _Prototypes(centres, sizes)
