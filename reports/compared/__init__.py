"""A run beside its plan, for people."""
