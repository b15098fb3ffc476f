"""Plain arithmetic that no party owns: features, scorers, posterior, greedy choice, local models."""
