"""The precisions, GPUs and layouts side by side."""
