"""Two domains with users in common: similarities, paths between items, alter egos and what is predicted from them."""
