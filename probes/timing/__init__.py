"""What is timed and how: trials, the protocol in time, quiet, CUDA graphs, and the statistics of samples."""
