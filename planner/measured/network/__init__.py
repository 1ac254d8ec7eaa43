"""Collectives that the user measured with nccl-tests, and what a plan takes from them."""
