"""Timing: trials, the measurement protocol, detection of other load, CUDA graphs, and the statistics of samples."""
