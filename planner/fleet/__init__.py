"""What a fleet of GPUs measured: one record per node or GPU, joined into one, and the members that hold the others up.

Pure functions over the lines of records; the command writes what they return.
"""
