"""One run of the suite: which points, in what order, within what time."""
