"""Records of a fleet of GPUs, one per node or GPU, joined into one record, with the members that slow down the others.

The modules hold pure functions over the lines of records; the command writes their results.
"""
