"""Several sets of ratings of the same items, by different people, as one."""

from collections.abc import Sequence

import numpy as np

from tacit.data.assemble import Columns, assemble
from tacit.data.catalogue import Catalogue
from tacit.data.clock import MISSING_TIME
from tacit.data.ids import encode
from tacit.data.provenance import Provenance
from tacit.data.ratings import Ratings
from tacit.data.scale import Scale
from tacit.data.source import Source
from tacit.errors import InvalidParameter


def mix(
    parts: Sequence[Ratings], *, catalogue: Catalogue | None = None, listed_only: bool = False, name: str = "mix"
) -> Ratings:
    """All users of all parts; an item id means the same item everywhere, a user of one part is nobody of another.

    User ids become ``"<part>:<id>"``. Titles and genres are those of ``catalogue`` (by default of the first part); items it
    does not list have none, or with ``listed_only`` are left out together with their ratings. Made for the releases of
    MovieLens, which share their film ids.
    """
    if len({part.name for part in parts}) != len(parts) or not parts:
        raise InvalidParameter("the parts of a mix must have different names, and there must be at least one.")
    listing = catalogue or parts[0].catalogue
    if len({part.catalogue.ids.dtype.kind for part in parts} | {listing.ids.dtype.kind}) != 1:
        raise InvalidParameter("item ids must be whole numbers in every part, or text in every part.")
    if listed_only:
        parts = [part.subset(np.isin(part.catalogue.ids, listing.ids)[part.items]) for part in parts]
    labels = np.concatenate([np.char.add(f"{part.name}:", part.user_ids.astype(str)) for part in parts])
    user_ids, codes = encode(labels)
    raw_items = np.concatenate([part.catalogue.ids[part.items] for part in parts])
    known = [listing.ids] if listed_only else [listing.ids, *(part.catalogue.ids for part in parts)]
    times = [np.full(len(part), MISSING_TIME) if part.times is None else part.times for part in parts]
    columns = Columns(
        users=(user_ids, np.repeat(codes, np.concatenate([part.counts for part in parts]))),
        items=encode(raw_items, np.concatenate(known)),
        values=np.concatenate([part.values for part in parts]),
        times=None if all(part.times is None for part in parts) else np.concatenate(times),
    )
    return assemble(
        columns,
        scale=_joint([part.scale for part in parts]),
        source=Source(name),
        name=name,
        catalogue=listing,
        provenance=Provenance("; ".join(dict.fromkeys(part.provenance.source for part in parts)), "that of every part"),
    )


def _joint(scales: Sequence[Scale]) -> Scale:
    """The smallest scale that holds all: stars and half stars give half stars."""
    low, high = min(scale.low for scale in scales), max(scale.high for scale in scales)
    steps = [scale.step for scale in scales]
    step = None if None in steps else min(step for step in steps if step is not None)
    if step is not None:
        gaps = [(scale.low - low) / step for scale in scales] + [(scale.step or step) / step for scale in scales]
        if any(abs(gap - round(gap)) > 1e-6 for gap in gaps):
            step = None
    return Scale(low, high, step)
