"""Layers and training steps measured whole: their work, the kernels that they are made of, their time and power."""
