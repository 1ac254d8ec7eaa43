"""Workloads of several ranks; all ranks list the same points."""
