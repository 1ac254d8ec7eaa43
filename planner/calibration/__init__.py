"""Calibration: what completed runs reveal about the parameters.

It holds the hierarchical model of lineages, its fit to published runs with every lineage left out in turn, and the
changes that a user's own runs make. It returns values; commands and `make calibrate` write them.
"""
