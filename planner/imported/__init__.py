"""Import of measurements by other tools: their files become lines of a record, each with its source and its doubts.

`formats` reads the measurements, `steps` the training logs beside them, and `record` makes the lines.
"""
