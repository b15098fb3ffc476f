"""Federated prototypes carried by Flower: the coordinator's side is a ServerApp, an entity's side a ClientApp that sees no rows.

Flower has an environment of its own (``pip install -c flower-constraints.txt 'tacit[flower]'``); nothing else in tacit imports it.
"""
