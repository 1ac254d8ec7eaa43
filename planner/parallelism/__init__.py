"""How can a model be split over GPUs?

One layout, many layouts as arrays, and the search space that a question allows.
"""
