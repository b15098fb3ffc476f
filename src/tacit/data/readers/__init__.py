"""Readers, one file for each layout. Each returns a whole, checked value or raises; nothing is half read."""
