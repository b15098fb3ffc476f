"""Adapters that carry the messages of the parties: plain folders, Flower."""
