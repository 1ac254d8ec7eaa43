"""Trace one number of an answer to its inputs and their sources."""
