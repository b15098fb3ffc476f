"""Methods, worlds and settings by the names that rows carry."""

ZIP1, ZIP2 = "MovieLens, ZIP digit", "MovieLens, two ZIP digits"
HOSPITALS, REGIONS = "eICU, hospitals", "eICU, regions"
SYNTHETIC, PLANTED = "synthetic lognormal", "planted groups"

CENTRAL = "central"  # all rows in one place, no privacy
INDIVIDUAL = "individual"  # every entity by itself: nothing is released
K_MEANS = "k-means, zero-filled"  # exact centres: a cell that a member lacks counts as 0
K_RATERS = "k-means, mean over raters"  # exact centres: the mean over those members who have the cell
K_RANDOM = "k-random"  # k users as they are
GRID, TREE, MOMENTS = "grid", "tree", "moments"
GRID_SIZED, TREE_SIZED = "grid, rows by size", "tree, rows by size"  # the server weighs prototypes by their noisy sizes
GRID_CLIPPED = "grid, clipped"  # with bounds on the norms of rows besides the box
MOMENTS_APART = "moments, noise per entity"  # without secure sums: every share protects by itself
MOMENTS_NOT_STOPPED = "moments, noise per entity, not stopped"  # the same noise, without the rule that stops a run
MOMENTS_ALONE = "moments alone"  # the release without an entity's own rows
MOMENTS_NO_GATE = "moments, no gate"
POPULARITY_PRIOR = "private popularity as prior"  # the whole budget for the popularity, no Gram matrix
PURE_NOISE = "moments of nobody"  # control: the same noise, no rows
NOISE_ALONE = "moments of nobody, alone"
COVARIANCE = "covariance subspace"
POPULARITY = "popularity"
ITEM_MEANS = "item mean + user bias"
USER_MEAN, GLOBAL_MEAN = "user mean", "global mean"
NO_DATA = "no data, same noise"  # control: prototypes of an entity without users
CONSTANT = "constant"  # control: all items alike
RANDOM_V = "random factors"
DP_POPULARITY, DP_POPULARITY_ONCE = "private item counts", "private item counts, noise once"
DP_MEANS, DP_MEANS_ONCE = "private item means + user bias", "private item means + user bias, noise once"
PRIOR, PRIOR_ONCE = "private item means as prior", "private item means as prior, noise once"
PRIOR_RESIDUAL, PRIOR_RESIDUAL_ONCE = "prior and residual factors", "prior and residual factors, noise once"
LOCAL_RESIDUAL = "local means and residual factors"

INF = "inf"  # an epsilon in a setting: JSON has no infinity
DELTA = 1e-6
