"""Kernels as they were measured: rates by shape, per GPU and compute type, and what is known of their spread."""
