"""The comparison of a run with its plan, for people."""
