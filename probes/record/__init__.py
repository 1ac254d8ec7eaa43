"""The record of a run: its options, where it ran, and one line per point, written as soon as it is known."""
