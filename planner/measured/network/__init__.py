"""Collectives that the user measured, and the network terms that plans derive from them."""
