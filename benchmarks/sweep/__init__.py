"""The sweep of layouts, measured and predicted: its questions, the limits of predictability, its part of the page."""
