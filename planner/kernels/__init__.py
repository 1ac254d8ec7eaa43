"""Measured kernels: rates by shape, per GPU and compute type, with their known spread."""
