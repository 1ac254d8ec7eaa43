"""Validation: how far predictions are from runs that really happened.

It reads rows of published runs, fills in what they leave open, predicts each without seeing its result, and scores.
"""
