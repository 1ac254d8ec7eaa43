"""The sweep of layouts, measured beside predicted: its questions, what can be known of them, their part of the page."""
