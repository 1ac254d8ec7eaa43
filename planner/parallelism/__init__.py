"""How a model can be split over GPUs: one layout, many layouts as arrays, and the search space of a question."""
