"""Measurement records: their content, their files, and whether they can be trusted.

The modules define the measurement itself, its JSON Lines file, the check of a record, and the store that finds the
record of a GPU.
"""
