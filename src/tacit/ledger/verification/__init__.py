"""Whether a ledger is what was written: from its store, or by a third party from an exported file alone."""
