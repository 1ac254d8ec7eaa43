"""One run of the suite: which points are measured, in what order and within what time."""
