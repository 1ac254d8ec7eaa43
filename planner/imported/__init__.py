"""What other tools measured: their files as lines of a record, each with its source and its doubts.

`formats` reads what was measured, `steps` the logs of training beside it; `record` makes the lines.
"""
