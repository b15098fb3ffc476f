"""Determinantal point processes: laws by enumeration and samplers, in floats and without privacy noise of their own."""
