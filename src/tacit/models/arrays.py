"""Short names for the numpy arrays that the models compute with."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]  # counts, positions, and items where a table has many of them
Codes: TypeAlias = NDArray[np.int32]  # items by their position in a catalogue
