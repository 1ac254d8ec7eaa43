"""Fit a run into the memory of a GPU: the shortage where nothing fits, and ways to train that would fit."""
