"""Methods and settings by the names that rows carry."""

INF = "inf"  # an epsilon in a setting: JSON has no infinity
DELTA = 1e-6

OWN_MEAN = "own mean"  # of the asked user's ratings in the source: nobody else's data
GLOBAL_MEAN, ITEM_AVERAGE = "global mean", "item average"
USER_MEAN = "user mean + item offset"  # the offset is told from the mean of the target domain
USER_MEAN_SOURCE = "user mean + item offset, source mean"  # from the mean of the domain that the user's mean is of
REMOTE_USER, KNN, KNN_SHRUNK, ALS = "RemoteUser", "ItemKNN-linked", "ItemKNN-linked, shrunk", "ALS-linked"

NX_PUBLISHED = "NX-Map-ib, published form"  # the k most similar items, then those of the alter ego; item means as base
NX = "NX-Map-ib"  # the k most similar items of the alter ego; user mean + offset as base
NX_SHRUNK = "NX-Map-ib, shrunk"  # + .2 in the denominator
NX_SOURCE = "NX-Map-ib, shrunk, source mean"
NX_UB = "NX-Map-ub"  # the k most similar users, as far as they rated the item
NX_UB_RATED = "NX-Map-ub, among its raters"  # the k most similar of those who rated it
NX_MANY = {3: "NX-Map-ib, 3 replacements", 10: "NX-Map-ib, 10 replacements"}

# What was published has no finite epsilon; "epsilon a draw" is what it spends on one source item.
PRS_TOP = "X-Map-ib, PRS among ten"
PRS_VALID = "X-Map-ib, PRS among all"
PRS_TOP_NOISY = "X-Map-ib, PRS among ten, PNSA + PNCF"
PRS_VALID_NOISY = "X-Map-ib, PRS among all, PNSA + PNCF"
PRS_TOP_UB, PRS_VALID_UB = "X-Map-ub, PRS among ten", "X-Map-ub, PRS among all"
NX_NOISY = "NX-Map-ib, PNSA + PNCF"
# the same with the user's level in the base
NX_NOISY_USER = f"{NX_NOISY}, user base"
PRS_TOP_NOISY_USER, PRS_VALID_NOISY_USER = f"{PRS_TOP_NOISY}, user base", f"{PRS_VALID_NOISY}, user base"
PRS_TOP_RATED = "NX-Map-ib, PRS among ten"
PRS_VALID_RATED = "NX-Map-ib, PRS among all"
POSITIVE_RATED = "NX-Map-ib, positive part among all"  # max(X-SIM, 0), sensitivity 1

TABLE = "prs_valid, whole table"  # all source items' replacements in one budget; what predicts from them is not covered
OFFSETS = "offsets of the first release"
B1 = "B1, honest X-Map"  # the mapping at any noise; the library's falls back to offsets where nothing is seen above it
B1_CAREFUL = "B1, honest X-Map, falling back"
B2, B2_CAREFUL = "B2, bridge, edge 2", "B2, bridge"
B3_OFFSETS = "B3, offsets only"
B3 = "B3"  # the library's default: centred by a public constant
B3_OWN = "B3, own-mean centre"
MOMENTS = (OFFSETS, B1, B1_CAREFUL, B2, B2_CAREFUL, B3_OFFSETS, B3_OWN, B3)
