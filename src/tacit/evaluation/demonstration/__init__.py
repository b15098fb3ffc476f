"""Five short runs on one set of ratings: each system from end to end, with real noise, messages and ledgers."""
