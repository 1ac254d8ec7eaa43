"""Models that the workloads train. The files that build them import torch; their sizes and arithmetic do not."""
