"""The time of a rating: whole seconds since 1970."""

import numpy as np

MISSING_TIME = int(np.iinfo(np.int64).min)  # a rating whose time is not known sorts before all others
