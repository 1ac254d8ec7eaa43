"""Equations for the time and memory of a training step and for the totals of a run.

They are written once, as numpy functions over arrays: one layout or millions, one value or a thousand draws.
"""
